"""Runs on many machines: Ray places and reserves, and each node measures as one machine does."""
