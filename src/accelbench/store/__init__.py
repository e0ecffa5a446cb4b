"""Results of all runs: facts that are only added, the journal, DuckDB tables and views."""
