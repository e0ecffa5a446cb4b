"""How far off are predictions of values that others published for NVIDIA GPUs?

`public_nvidia.csv` has forty values of PyTorch without compilation, each with its source. Tables
are imported one after the other, and after each `accelbench predict MODEL` is asked for every
value: no import may make the predictions worse.

    python benchmarks/prediction/public_values.py --graph-features operators.parquet
        [timm.parquet ryujaehun.parquet mlperf.parquet aihub.parquet …]
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from open_holdout import accelbench

_VALUES = Path(__file__).with_name("public_nvidia.csv")


def answers(database: Path | None, graphs: Path) -> Iterator[tuple[dict[str, str], dict]]:
    """Yield each published value with the prediction of its case."""
    asked: dict[tuple[str, ...], list[dict[str, str]]] = {}
    with _VALUES.open() as file:
        for row in csv.DictReader(file):
            key = row["model"], row["device"], row["precision"], row["sequence_length"]
            asked.setdefault(key, []).append(row)
    for (model, device, precision, length), rows in asked.items():
        words = [
            "predict", model, "--hardware", device, "--precision", precision,
            "--batch-sizes", ",".join(row["batch_size"] for row in rows),
            "--graph-features", str(graphs),
        ]  # fmt: skip
        words += ["--sequence-lengths", length] if length else []
        words += ["--db", str(database)] if database else []
        predicted = {
            str(entry["batch_size"]): entry
            for entry in accelbench(*words)["predictions"]
            if entry["runtime"] == "pytorch" and not entry["compiled"]
        }
        for row in rows:
            if row["batch_size"] in predicted:
                yield row, predicted[row["batch_size"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--graph-features", type=Path, required=True)
    parser.add_argument("--each", action="store_true", help="print every value too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        database = Path(scratch) / "public.duckdb"
        for table in (None, *given.tables):
            if table is not None:
                accelbench("db", "import", "tidy", str(table), "--db", str(database))
            pairs = [*answers(database if table else None, given.graph_features)]
            true = np.array([float(row["latency_ms"]) for row, _ in pairs])
            value, low, high = (
                np.array([entry[f"latency_{end}ms"] for _, entry in pairs])
                for end in ("", "low_", "high_")
            )
            report = {
                "learned_from": table.stem if table else "nothing",
                "n": len(pairs),
                "median_error": round(float(np.median(np.abs(value / true - 1.0)) * 100), 1),
                "inside_90": round(float(((low <= true) & (true <= high)).mean() * 100), 1),
                "median_band": round(float(np.median(high / low)), 2),
            }
            print(json.dumps(report), flush=True)
            if given.each:
                for row, ms, least, most in zip(pairs, value, low, high, strict=True):
                    known = row[0]
                    print(
                        known["model"], known["device"], known["precision"], known["batch_size"],
                        known["sequence_length"], known["latency_ms"], "→",
                        f"{ms:.2f} ({least:.2f}–{most:.2f})", sep="\t",
                    )  # fmt: skip


if __name__ == "__main__":
    main()
