"""Pages of models, devices and engines, and of two of them beside each other."""
