"""One engine, examined in a separate process: its version, import time and devices.

    python -P -m accelbench.hardware.doctor.engine RUNTIME

The last line of standard output is the answer as JSON; a crash is an answer too.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from typing import Any

from accelbench.core.plugins import ENGINES, find_entry_points, load
from accelbench.core.protocols import Device


def examine_engine(name: str) -> dict[str, Any]:
    """Return an engine's version, import time and devices."""
    runtime = load(find_entry_points(ENGINES)[name])
    os.environ.update(runtime.info.environment)
    began = time.perf_counter()
    module = import_module(runtime.info.package) if runtime.info.package else None
    imported = time.perf_counter() - began
    seen = runtime.probe()
    return {
        "version": str(getattr(module, "__version__", "")),
        "import_seconds": round(imported, 2),
        "devices": [f"{unit.hardware} ({unit.name})" for unit in seen if isinstance(unit, Device)],
    }


if __name__ == "__main__":
    said = json.dumps(examine_engine(sys.argv[1]))
    # Engines print banners, some without a line break.
    sys.stdout.write(f"\n{said}\n")
    sys.stdout.flush()
    os._exit(0)  # without an engine's exit handlers
