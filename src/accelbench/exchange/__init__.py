"""Importers and exporters, one module for each format."""
