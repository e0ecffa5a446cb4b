"""What a model is turned into for other engines: exports, cached by key."""
