"""Models in files of the user: formats, inputs, outputs and data."""
