"""Services of commands: what one does between its options and its output."""
