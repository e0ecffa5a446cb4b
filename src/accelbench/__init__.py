"""accelbench: how fast, how large, how correct and how costly is this model on this hardware."""

__version__ = "0.1.0"
