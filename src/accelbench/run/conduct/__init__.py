"""The conductor: takes a plan through launches to results."""
