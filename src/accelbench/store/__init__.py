"""Results of all runs: append-only facts, the journal, DuckDB tables and views."""
