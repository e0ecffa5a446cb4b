"""What to use: scoring, constraints, fallbacks."""
