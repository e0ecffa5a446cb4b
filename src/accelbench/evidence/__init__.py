"""Rules about which results count, each written once, in SQL."""
