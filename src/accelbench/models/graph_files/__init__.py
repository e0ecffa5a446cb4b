"""Operators of graphs in files: read in their order, each with what it takes at some sizes."""
