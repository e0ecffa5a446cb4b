"""Shared vocabulary, protocols, columns and errors. It imports nothing heavy."""
