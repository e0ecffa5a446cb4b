"""Bodies of results and files that lose power are those of the store's tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "store"))
