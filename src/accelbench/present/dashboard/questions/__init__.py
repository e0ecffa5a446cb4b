"""`recommend` and `predict` as forms, and how good predictions are."""
