"""What pages have in common: how templates are filled, their frame and their style."""
