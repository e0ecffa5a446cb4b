"""Points by chosen axes, and how a figure is spread."""
