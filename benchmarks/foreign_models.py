"""Foreign models: is each measured and verified by two engines, or refused with its true reason?

The graphs that the onnx package ships for tests of backends, and those of `foreign_graphs.py`, each
by ONNX Runtime and OpenVINO. Counted: verified by both, by one, measured and not verified,
refused as a file, refused by every engine, and failed. A failure is no reason.

    python benchmarks/foreign_models.py [--few]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnx

from foreign_graphs import GRAPHS
from keeping import keep

_AT_ONCE = 25
_COMMON = "--hardware cpu,openvino --iterations 5 --warmup 1 --threads 1 --json --quiet"
_SHIPPED = Path(onnx.__file__).parent / "backend" / "test" / "data"


def shipped(few: bool) -> list[Path]:
    """Those of the onnx package."""
    every = sorted([*_SHIPPED.glob("*/*/model.onnx"), *_SHIPPED.glob("light/*.onnx")])
    return every[::8] if few else every


def ran(words: Iterable[str]) -> tuple[list[dict[str, Any]], str]:
    """Rows of a run, and what it said where it gave none."""
    command = [sys.executable, "-m", "accelbench", "run", *words, *_COMMON.split(), "--no-database"]
    with tempfile.TemporaryDirectory(prefix="accelbench-foreign-") as folder:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    rows = json.loads(done.stdout)["results"] if done.stdout.strip() else []
    return rows, done.stderr.strip().splitlines()[-1] if not rows and done.stderr else ""


def became(rows: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """What became of a model, and the reasons."""
    verified = [row for row in rows if row["verification"] == "ok"]
    measured = [row for row in rows if row["status"] == "ok"]
    reasons = [
        f"{row['runtime']}: {row['status']} ({row['reason']}): {row['message']}"
        for row in rows
        if row["status"] != "ok"
    ]
    reasons += [
        f"{row['runtime']}: not verified: {row['nulls']['verification_error']}"
        for row in measured
        if row["verification"] not in ("ok", "reference")
    ]
    if len(verified) > 1:
        return "verified by two engines", reasons
    if verified:
        return "verified by one", reasons
    if measured:
        return "measured, not verified", reasons
    if all(row["status"] == "unsupported" or row["reason"] == "not_real" for row in rows):
        return "refused by every engine", reasons
    return "failed", reasons


def main() -> None:
    """Run them, count, keep."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--few", action="store_true", help="every eighth of those of onnx")
    options = parser.parse_args()
    found: dict[str, tuple[str, list[str]]] = {}
    with tempfile.TemporaryDirectory(prefix="accelbench-graphs-") as folder:
        alone: list[tuple[str, list[str]]] = []
        together: list[str] = []
        for name, (write, more) in GRAPHS.items():
            path = Path(folder) / f"{name}.onnx"
            write(path)
            (
                alone.append((name, [str(path), *more.split()]))
                if more
                else together.append(str(path))
            )
        together += [str(path) for path in shipped(options.few)]
        looked = [(word, *_looked(word)) for word in together]
        found |= {name: ("refused as a file", [why]) for _, name, why in looked if why}
        able = [word for word, _, why in looked if not why]
        for first in range(0, len(able), _AT_ONCE):
            rows, error = ran(able[first : first + _AT_ONCE])
            if error:
                raise SystemExit(error)
            for name in dict.fromkeys(row["model"] for row in rows):
                # Of several batches the last speaks for all: they differ in nothing else.
                last = {row["runtime"]: row for row in rows if row["model"] == name}
                found[name] = became(list(last.values()))
        for name, words in alone:
            rows, error = ran(words)
            found[name] = became(rows) if rows else ("refused as a file", [error])
    counts = Counter(word for word, _ in found.values())
    for name, (word, reasons) in sorted(found.items(), key=lambda item: item[1][0]):
        if reasons:
            print(f"{word}: {name}")
            print(*(f"    {reason[:300]}" for reason in reasons), sep="\n")
    print(dict(counts))
    keep("foreign_models", {"models": len(found), "counts": dict(counts), "each": found})
    sys.exit(1 if counts["failed"] else 0)


def _looked(word: str) -> tuple[str, str]:
    """The name of a file's model, and why it is refused as a file."""
    from accelbench.core.errors import UsageError
    from accelbench.models.file_models.models import model_of_file, name_of

    try:
        spec = model_of_file(word)
    except UsageError as error:
        return name_of(Path(word)), f"{error.message} {error.advice}"
    return spec.id, f"a free dimension without a size: {spec.dims}" if spec.dims else ""


if __name__ == "__main__":
    main()
