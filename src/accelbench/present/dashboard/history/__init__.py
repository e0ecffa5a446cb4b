"""The page of histories: what became of figures from run to run."""
