"""Every cell of a store in memory, questions to it, and what lies behind one cell."""
