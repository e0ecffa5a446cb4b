"""What others measured, read into rows of ours: one small file a format."""
