"""What it would be: roofline, learned model, intervals."""
