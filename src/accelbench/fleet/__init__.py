"""A run on many machines: Ray places and reserves, each node measures as a machine alone does."""
