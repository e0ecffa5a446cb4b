"""How far off are predictions of hidden models and devices, by the commands that a user types?

Of models a published table is split by the hash of their family or of their name. The known part is
imported into a database, and `accelbench predict MODEL` is asked about the hidden part. A hidden
result counts if it is of the configuration that the answer is of: the one that most results of the
device have.

Of devices each is left out once and scored by `accelbench predict --evaluate`, with results of it
that are learned from. Results that other devices carry of it, under its job or with its very value,
are left out of the known part.

    python benchmarks/prediction/open_holdout.py timm.parquet --graph-features operators.parquet
        [--hide families | models | DEVICE]
    python benchmarks/prediction/open_holdout.py boards.parquet --hide devices --anchors 10
        [--each device | setting] [--kind KIND] [--graph-features operators.parquet]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

_FOLDS = 5
#: So many models are named in one command.
_MOST_NAMED = 100
_PRECISIONS = {"amp": "amp-fp16"}
_LAYOUT = "nchw"
#: A device or setting with fewer results than this after its anchors is not scored.
_FEWEST = 10
#: What is left out together.
_EACH = {
    "device": "hardware_name",
    "setting": "concat_ws(' · ', hardware_name, hardware_kind, extra->>'num_threads',"
    " extra->>'powersave', extra->>'gpu_device')",
}
#: What a result of a model has in common with its copies on other devices.
_COPIED = "model, runtime, precision, batch_size, latency_ms"


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


def score_models(table: Path, graph_features: Path, hide: str) -> dict[str, Any]:
    """Return the scores of hidden families, models or one device, without results of it."""
    connection = duckdb.connect()
    found = connection.execute("SELECT * FROM read_parquet(?)", [str(table)])
    names = [column[0] for column in found.description]
    rows = [dict(zip(names, values, strict=True)) for values in found.fetchall()]
    graphs = {
        name
        for (name,) in duckdb.execute(
            "SELECT DISTINCT model FROM read_parquet(?)", [str(graph_features)]
        ).fetchall()
    }
    hidden = [
        row
        for row in rows
        if is_hidden(row, hide) and row["batch_size"] and row["model"].split(".")[0] in graphs
    ]
    known = [at for at, row in enumerate(rows) if not is_hidden(row, hide)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        database = folder / "known.duckdb"
        write_known(table, known, database)
        scored = list(answers(hidden, database, graph_features))
    report: dict[str, Any] = {"hide": hide, "hidden": len(hidden), "scored": len(scored)}
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
    return report


def splits(table: Path, each: str, kind: str, folder: Path) -> Iterator[tuple[str, Path, Path]]:
    """Yield each device or setting with the files of what is known and what is hidden."""
    connection = duckdb.connect()
    connection.execute("SET memory_limit = '4GB'")
    connection.execute(
        f"CREATE TABLE rows AS SELECT *, {_EACH[each]} AS hidden_as, extra->>'job_id' AS job"
        " FROM read_parquet($table) WHERE latency_ms > 0",
        {"table": str(table)},
    )
    names = connection.execute(
        "SELECT hidden_as, hardware_name FROM rows WHERE hardware_kind LIKE ?"
        " GROUP BY ALL HAVING count(*) >= ? ORDER BY ALL",
        [kind or "%", _FEWEST],
    ).fetchall()
    known, hidden = folder / "known.parquet", folder / "hidden.parquet"
    for name, device in names:
        connection.execute(
            "CREATE OR REPLACE TABLE mine AS SELECT * FROM rows"
            " WHERE hidden_as = ? AND hardware_kind LIKE ?",
            [name, kind or "%"],
        )
        connection.execute(
            "CREATE OR REPLACE TABLE others AS SELECT * FROM rows WHERE hardware_name <> $device"
            " AND coalesce(job NOT IN (SELECT job FROM mine WHERE job IS NOT NULL), true)"
            f" AND hash({_COPIED}) NOT IN (SELECT hash({_COPIED}) FROM mine)",
            {"device": device},
        )
        for source, path in (("others", known), ("mine", hidden)):
            connection.execute(
                f"COPY (SELECT * EXCLUDE (hidden_as, job) FROM {source}) TO '{path}'"
            )
        yield name, known, hidden


def score_devices(
    table: Path, graph_features: Path | None, anchors: int, each: str, kind: str
) -> dict[str, Any]:
    """Return the scores of each device or setting, left out once, and of all together."""
    scores: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, known, hidden in splits(table, each, kind, Path(scratch)):
            graphs = ("--graph-features", str(graph_features)) if graph_features else ()
            try:
                found = accelbench(
                    "predict", "--evaluate", "--train", str(known), "--test", str(hidden),
                    "--anchors", str(anchors), *graphs,
                )  # fmt: skip
            except SystemExit as refusal:  # nothing of it was measured elsewhere
                print(f"{name}: {refusal}", file=sys.stderr)
                continue
            if found["n"] >= _FEWEST:
                scores[name] = {key: found[key] for key in ("n", "mdape", "coverage90", "band90")}
                print(json.dumps({name: scores[name]}), file=sys.stderr)
    counts = np.array([one["n"] for one in scores.values()])
    whole: dict[str, Any] = {"hide": f"each {each}", "anchors": anchors, "n": int(counts.sum())}
    for key in ("mdape", "coverage90", "band90"):
        values = np.array([one[key] for one in scores.values()])
        whole[f"{key}_by_{each}"] = round(float(np.median(values)), 2)
        whole[f"{key}_by_result"] = round(float(np.median(np.repeat(values, counts))), 2)
    whole["coverage90"] = round(
        float(np.average([one["coverage90"] for one in scores.values()], weights=counts)), 1
    )
    return {**whole, "each": scores}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--graph-features", type=Path)
    parser.add_argument(
        "--hide", default="families", help="families, models, one device, or devices for each"
    )
    parser.add_argument("--anchors", type=int, default=10, help="results of each hidden device")
    parser.add_argument("--each", choices=sorted(_EACH), default="device")
    parser.add_argument("--kind", default="", help="only this kind of hardware")
    given = parser.parse_args()
    if given.hide == "devices":
        report = score_devices(
            given.table, given.graph_features, given.anchors, given.each, given.kind
        )
    else:
        if given.graph_features is None:
            parser.error("--graph-features is needed to predict hidden models")
        report = score_models(given.table, given.graph_features, given.hide)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
