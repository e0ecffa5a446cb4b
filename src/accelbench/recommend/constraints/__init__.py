"""Limits: options that keep them, and what is worth measuring under them."""
