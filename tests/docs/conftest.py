"""The guide's snippets run on the scripted machine of the API's tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "api"))
