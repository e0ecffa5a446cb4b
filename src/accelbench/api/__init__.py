"""The Benchmarking guide's Python API: `from accelbench import …`."""
