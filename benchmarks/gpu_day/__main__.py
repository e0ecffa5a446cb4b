"""A day with a GPU: everything about accelbench that only a CUDA GPU can show, in one file.

    python benchmarks/gpu_day --fetch-wheels wheels --python 3.12    where there is a network
    python benchmarks/gpu_day                                        on the machine with the GPU
    python benchmarks/gpu_day --dry                                  the same code on a CPU, briefly

Needs a Python with PyTorch for CUDA and transformers; nothing is installed. Exit codes: 0 every
part is ok or cannot be here, and all limits are reached; 1 otherwise; 3 without a GPU, or where
packages are missing.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

# The folder of this file would put its modules beside everybody's.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from gpu_day.bare_machine import BareMachineError, fetch, ready  # noqa: E402

BEGAN = time.monotonic()
NO_DEVICE = 3
#: Exits 0 where PyTorch sees a GPU; asked in a process of its own, since none may touch it here.
SEES = "import torch; print(torch.cuda.get_device_name() if torch.cuda.is_available() else '')"


def main() -> int:
    asked = arguments()
    if asked.fetch_wheels is not None:
        return _told(lambda: fetch(asked.fetch_wheels, asked.python))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # parts are ended on the way out
    with tempfile.TemporaryDirectory(prefix="accelbench-gpu-day-") as folder:
        without = ("nvidia-ml-py",) if asked.dry else ()
        return _told(lambda: ready(Path(folder), asked.wheels, without)) or measure(
            asked, Path(folder)
        )


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="gpu_day", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dry", action="store_true", help="on the CPU, with few repetitions")
    parser.add_argument("--only", default="", metavar="PART,…", help="only these parts")
    parser.add_argument("--seconds", type=float, default=540.0, help="wall-clock limit of it all")
    parser.add_argument("--out", type=Path, default=Path("build/gpu-day.json"), metavar="FILE")
    parser.add_argument(
        "--wheels", type=Path, default=Path("wheels"), metavar="DIR", help="of missing packages"
    )
    parser.add_argument("--fetch-wheels", type=Path, metavar="DIR", help="download them, and end")
    running = ".".join(map(str, sys.version_info[:2]))
    parser.add_argument("--python", default=running, metavar="X.Y", help="whose wheels to fetch")
    return parser.parse_args()


def _told(do: Any) -> int:
    """0, or 3 after the sentence that says what is missing."""
    try:
        do()
    except BareMachineError as error:
        print(error, file=sys.stderr)
        return NO_DEVICE
    return 0


def measure(asked: argparse.Namespace, folder: Path) -> int:
    """Run the chosen parts; everything is importable now."""
    device = "the CPU, dry form" if asked.dry else device_name()
    if not device:
        print(
            "PyTorch sees no CUDA GPU here; --dry runs the same code on the CPU.", file=sys.stderr
        )
        return NO_DEVICE
    if asked.dry:
        # Beside other work, threads of an engine wait for one another: a hundred times the time.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    # As accelbench's workers have it: NVML and CUDA then number devices alike.
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    from accelbench.engines.pytorch import PytorchRuntime
    from gpu_day.part import Day
    from gpu_day.parts import PARTS
    from gpu_day.running import run_day

    wanted = [name for name in asked.only.split(",") if name]
    unknown = set(wanted) - {part.name for part in PARTS}
    if unknown:
        names = ", ".join(part.name for part in PARTS)
        print(f"No part is called {', '.join(sorted(unknown))}. Parts: {names}.", file=sys.stderr)
        return 2
    about = {
        "benchmark": "gpu_day",
        "when": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "device": device,
        "dry": asked.dry,
        "seconds_allowed": asked.seconds,
    }
    day = Day("cpu" if asked.dry else "cuda", asked.dry, folder)
    chosen = [part for part in PARTS if not wanted or part.name in wanted]
    for name in PytorchRuntime().info.preload:  # once, for every part that is forked from here
        import_module(name)
    left = asked.seconds - (time.monotonic() - BEGAN)
    reached = run_day(chosen, day, left, asked.out, about)
    print(f"figures: {asked.out}")
    return 0 if reached else 1


def device_name() -> str:
    """The GPU that PyTorch sees first; empty where it sees none."""
    done = subprocess.run([sys.executable, "-c", SEES], capture_output=True, text=True, check=False)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
