"""Models as files: their operators, read from the graph without weights or a run."""
