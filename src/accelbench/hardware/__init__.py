"""Detection of every platform, machine snapshots and telemetry, one vendor per file."""
