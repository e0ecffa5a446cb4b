"""Charts of what was asked for, and files of them."""
