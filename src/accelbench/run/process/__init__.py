"""Processes of a run: templates, workers, what is said to them, and their ends."""
