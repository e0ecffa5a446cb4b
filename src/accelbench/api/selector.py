"""The selector among the guides' names; what chooses lives in the room `select`."""

from accelbench.recommend.selector import HardwareSelector

__all__ = ["HardwareSelector"]
