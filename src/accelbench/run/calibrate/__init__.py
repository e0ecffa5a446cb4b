"""Calibrating a device: probes are planned, timed in a worker of their own, and stored."""
