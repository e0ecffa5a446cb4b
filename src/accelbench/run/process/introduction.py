"""An interpreter's introduction to the conductor, as a line of JSON: versions, engines, machine.

python -m accelbench.run.process.introduction
"""

from __future__ import annotations

import json
import sys

from accelbench import __version__
from accelbench.core.case import PROTOCOL_VERSION
from accelbench.core.plugins import ENGINES, find_entry_points
from accelbench.hardware.environment import describe_environment
from accelbench.run.process.wire import WIRE_VERSION


def main() -> None:
    """Print it."""
    introduction = {
        "wire": WIRE_VERSION,
        "rules": PROTOCOL_VERSION,
        "accelbench": __version__,
        "runtimes": sorted(find_entry_points(ENGINES)),
        "environment": describe_environment(),
    }
    sys.stdout.write(json.dumps(introduction) + "\n")


if __name__ == "__main__":
    main()
