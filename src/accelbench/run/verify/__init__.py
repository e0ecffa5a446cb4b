"""Checks of what was measured: outputs against a reference, times against the work."""
