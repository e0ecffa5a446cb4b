"""The parts of a table that the open hold-out hides."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from prediction.open_holdout import splits


def test_each_device_is_hidden_once_with_its_copies(tmp_path: Path):
    rows = [
        {
            "model": f"net-{model}", "hardware_name": f"board {device}", "hardware_kind": "cpu",
            "runtime": "engine", "precision": None, "batch_size": 1,
            "latency_ms": float(10 * model + device), "extra": json.dumps({"job_id": None}),
        }
        for device in range(3)
        for model in range(1, 13)
    ]  # fmt: skip
    # Board 1 carries a result of board 0: its value, and its job.
    rows[12]["latency_ms"] = rows[0]["latency_ms"]
    rows[1]["extra"] = rows[13]["extra"] = json.dumps({"job_id": "j1"})
    rows[14]["hardware_kind"] = "gpu"
    pq.write_table(pa.Table.from_pylist(rows), path := tmp_path / "table.parquet")
    found = {
        name: [pq.read_table(file).to_pylist() for file in files]
        for name, *files in splits(path, "device", "cpu", tmp_path)
    }
    known, hidden = found["board 0"]
    assert {row["hardware_name"] for row in hidden} == {"board 0"}
    assert len(hidden) == 12
    assert len(known) == 24 - 2
    assert {row["model"] for row in known if row["hardware_name"] == "board 1"} == {
        f"net-{model}" for model in range(3, 13)
    }
    assert len(found["board 1"][1]) == 11  # of that kind of hardware
    assert len(found["board 2"][0]) == 24
