"""HOW a model runs on an engine: one file (or folder) a runtime."""
