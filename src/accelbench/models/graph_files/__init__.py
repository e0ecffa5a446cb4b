"""Operators of graphs in files, in order, each with its cost at some sizes."""
