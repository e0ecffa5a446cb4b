"""The table of results: its columns, rows, groups and address."""
