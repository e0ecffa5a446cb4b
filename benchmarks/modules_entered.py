"""Modules entered: how many modules of accelbench one command passes through, and how often.

`sys.setprofile` counts the modules whose functions are called while a command answers, and the
calls that go from one module into another. Both measure how scattered the code of one answer is.

    python benchmarks/modules_entered.py --db STORE recommend bert-base
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from types import FrameType
from typing import Any

from keeping import keep

_PACKAGE = "accelbench."


def count_modules(arguments: list[str]) -> dict[str, int]:
    """Run a command in this process and count modules entered and transitions between them."""
    from accelbench.cli.main import main

    entered: set[str] = set()
    transitions = 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal transitions
        if event != "call" or frame.f_code.co_name == "<module>":
            return
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(_PACKAGE):
            return
        entered.add(name)
        caller = frame.f_back
        before = caller.f_globals.get("__name__", "") if caller else ""
        if before.startswith(_PACKAGE) and before != name:
            transitions += 1

    sys.argv = ["accelbench", *arguments]
    sys.setprofile(profile)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            main()
    finally:
        sys.setprofile(None)
    return {"modules": len(entered), "transitions": transitions}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--db", required=True)
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args()
    found = count_modules([*asked.command, "--db", asked.db])
    print(f"{' '.join(asked.command)}: {found['modules']} modules, {found['transitions']} calls")
    keep("modules_entered", {"command": asked.command, **found})


if __name__ == "__main__":
    main()
