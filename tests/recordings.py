"""Recordings of behaviour that a change of structure must keep: compared, or written anew.

`ACCELBENCH_RECORD=1 pytest tests/cli/recorded tests/golden` writes them. A diff of a recording in a
commit is a change of behaviour, and has to be meant.
"""

from __future__ import annotations

import json
import os
from math import isclose
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "cli/recorded/recordings"
#: Read once: tests take our variables out of the environment.
_RECORDED_ANEW = bool(os.environ.get("ACCELBENCH_RECORD"))


def held(name: str, value: Any, folder: Path = FOLDER) -> None:
    """Assert that a value of JSON is as it was recorded."""
    path = folder / f"{name}.json"
    text = json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if _RECORDED_ANEW:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    recorded = json.loads(path.read_text(encoding="utf-8"))
    differing = [*_differences("", recorded, json.loads(text))]
    assert not differing, "\n".join(differing[:20])


def _differences(path: str, before: Any, now: Any) -> Any:
    """Each place that is not alike, as a line."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            if key not in now or key not in before:
                yield f"{path}.{key}: {'gone' if key not in now else 'new'}"
            else:
                yield from _differences(f"{path}.{key}", before[key], now[key])
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, pair in enumerate(zip(before, now, strict=True)):
            yield from _differences(f"{path}[{number}]", *pair)
    elif isinstance(before, float) and isinstance(now, float) and isclose(before, now):
        return  # the last digit is of the order in which sums were made
    elif before != now:
        yield f"{path}: {before!r} → {now!r}"


def steady(document: Any) -> Any:
    """Return a document without what differs from day to day."""
    moment = ("size_bytes", "path", "made_at", "timestamp")
    if isinstance(document, dict):
        return {name: "…" if name in moment else steady(part) for name, part in document.items()}
    return [steady(part) for part in document] if isinstance(document, list) else document


def without_prose(value: Any) -> Any:
    """A document without its sentences, which may be worded better; figures and names may not."""
    if isinstance(value, dict):
        return {name: without_prose(part) for name, part in value.items()}
    if isinstance(value, list):
        return [without_prose(part) for part in value]
    return "…" if isinstance(value, str) and value.count(" ") > 2 else value
