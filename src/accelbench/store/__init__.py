"""What remains: append-only facts, the journal, DuckDB tables and views, migrations."""
