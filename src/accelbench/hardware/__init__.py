"""WHERE: detection of every platform, machine snapshot, telemetry — one vendor a file."""
