"""Results of others, read into our rows: one small file per format."""
