"""How far off are predictions of hidden models and devices, by the commands that a user types?

A published table is split by the hash of a model's family, of its name, or by a device. The known
part is imported into a database, and `accelbench predict MODEL` is asked about the hidden part. A
hidden result counts if it is of the configuration that the answer is of: the one that most results
of the device have.

    python benchmarks/prediction/open_holdout.py timm.parquet --graph-features operators.parquet
        [--hide families | models | DEVICE]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

_FOLDS = 5
#: So many models are named in one command.
_MOST_NAMED = 100
_PRECISIONS = {"amp": "amp-fp16"}
_LAYOUT = "nchw"


def is_hidden(row: dict[str, Any], hide: str) -> bool:
    """Return whether a row of the table is hidden."""
    if hide not in ("families", "models"):
        return str(row["hardware_name"]) == hide
    name = row["family"] if hide == "families" else row["model"].split(".")[0]
    return int(hashlib.sha256(str(name).encode()).hexdigest(), 16) % _FOLDS == 0


def accelbench(*words: str) -> Any:
    """Run the command line; return the JSON document that it prints."""
    line = [sys.executable, "-m", "accelbench", *words, "--json"]
    made = subprocess.run(line, check=False, capture_output=True, text=True)
    if made.returncode:
        raise SystemExit(f"{' '.join(words[:3])} failed: {made.stderr.strip()[-500:]}")
    return json.loads(made.stdout)


def answers(
    rows: Sequence[dict[str, Any]], database: Path, graphs: Path
) -> Iterable[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each hidden row with the prediction of the same case."""
    by_device: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        key = row["hardware_name"], row["precision"], row["mode"]
        by_device.setdefault(key, []).append(row)
    for (device, precision, mode), some in by_device.items():
        names = sorted({row["model"].split(".")[0] for row in some})
        for start in range(0, len(names), _MOST_NAMED):
            named = names[start : start + _MOST_NAMED]
            mine = [row for row in some if row["model"].split(".")[0] in named]
            batches = sorted({row["batch_size"] for row in mine})
            sizes = sorted({row["img_size"] for row in mine if row["img_size"]})
            answer = accelbench(
                "predict", *named, "--hardware", device, "--mode", mode,
                "--precision", _PRECISIONS.get(precision, precision),
                "--batch-sizes", ",".join(map(str, batches)),
                "--image-sizes", ",".join(map(str, sizes)),
                "--graph-features", str(graphs), "--db", str(database),
            )  # fmt: skip
            predicted = {
                (p["model"], p["batch_size"], p["sizes"].get("image_size"), p["compiled"]): p
                for p in answer["predictions"]
            }
            for row in mine:
                extra = json.loads(row["extra"])
                compiled = bool(extra.get("compile"))
                if extra.get("layout", _LAYOUT) != _LAYOUT:
                    continue
                key = row["model"].split(".")[0], row["batch_size"], row["img_size"], compiled
                if key in predicted:
                    yield row, predicted[key]


def write_known(table: Path, places: Sequence[int], database: Path) -> None:
    """Import the rows of a table at some places into a database."""
    known = database.with_suffix(".parquet")
    connection = duckdb.connect()
    connection.execute("CREATE TABLE kept AS SELECT unnest(?::BIGINT[]) AS place", [list(places)])
    connection.execute(
        "COPY (SELECT result.* EXCLUDE (file_row_number)"
        " FROM read_parquet($path, file_row_number = true) AS result"
        f" JOIN kept ON file_row_number = place) TO '{known}'",
        {"path": str(table)},
    )
    accelbench("db", "import", "tidy", str(known), "--db", str(database))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--graph-features", type=Path, required=True)
    parser.add_argument("--hide", default="families", help="families, models or a device")
    given = parser.parse_args()
    connection = duckdb.connect()
    found = connection.execute("SELECT * FROM read_parquet(?)", [str(given.table)])
    names = [column[0] for column in found.description]
    rows = [dict(zip(names, values, strict=True)) for values in found.fetchall()]
    graphs = {
        name
        for (name,) in duckdb.execute(
            "SELECT DISTINCT model FROM read_parquet(?)", [str(given.graph_features)]
        ).fetchall()
    }
    hidden = [
        row
        for row in rows
        if is_hidden(row, given.hide) and row["batch_size"] and row["model"].split(".")[0] in graphs
    ]
    known = [at for at, row in enumerate(rows) if not is_hidden(row, given.hide)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        database = folder / "known.duckdb"
        write_known(given.table, known, database)
        scored = list(answers(hidden, database, given.graph_features))
    report: dict[str, Any] = {"hide": given.hide, "hidden": len(hidden), "scored": len(scored)}
    for kind in sorted({row["hardware_kind"] for row, _ in scored}):
        pairs = [(row, made) for row, made in scored if row["hardware_kind"] == kind]
        true = np.array([row["latency_ms"] for row, _ in pairs])
        value, low, high = (
            np.array([made[f"latency_{end}ms"] for _, made in pairs])
            for end in ("", "low_", "high_")
        )
        inside = (low <= true) & (true <= high)
        report[kind] = {
            "n": len(pairs),
            "median_error": round(float(np.median(np.abs(value / true - 1.0)) * 100), 2),
            "inside_90": round(float(inside.mean() * 100), 1),
            "median_band": round(float(np.median(high / low)), 2),
        }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
