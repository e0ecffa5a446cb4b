"""Importers and exporters: one file a format."""
