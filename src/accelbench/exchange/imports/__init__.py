"""Importers of other programs' results, one module for each format."""
