"""All runs, one that goes on, and one against another."""
