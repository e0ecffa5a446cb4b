"""What is asked of a store in SQL, and handed to `analysis`: the same for commands and pages."""
