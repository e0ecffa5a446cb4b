"""The first page: what the store says."""
