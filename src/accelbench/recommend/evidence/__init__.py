"""Evidence: what a store knows of a model and of platforms."""
