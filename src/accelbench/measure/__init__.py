"""HOW it is timed: warm-up, stopping, statistics. Imports core alone; clocks are handed in."""
