"""Small made-up tables in the tidy schema: times follow a law that features can tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

#: Peak, bandwidth: of the device facts, so that scaling by them is right by construction.
SPEEDS = {
    "NVIDIA GeForce RTX 3090": (71.0, 936.0),
    "NVIDIA GeForce RTX 4090": (165.2, 1008.0),
    "NVIDIA GeForce RTX 5090": (209.5, 1792.0),
}
FAMILIES = ("wide", "deep", "slim", "mixer", "former", "cells")


def operators(rng: np.random.Generator, model: str, family: int) -> list[dict[str, Any]]:
    """Some convolutions, products and activations of a model."""
    rows = []
    for layer in range(6):
        width = int(rng.choice([32, 64, 96, 128])) * (1 + family % 3)
        size = int(rng.choice([196, 784, 3136]))
        name = ("conv", "pw", "lin")[(layer + family) % 3]
        kernel = 9 if name == "conv" else 1
        rows.append({
            "model": model, "img_size": 224, "op_class": name,
            "macs": size * width * width * kernel,
            "input_elements": size * width, "weight_elements": width * width * kernel,
            "output_elements": size * width, "m": size, "n": width, "k": width * kernel,
            "groups": 1, "kernel": kernel, "stride": 1, "count": 1 + layer % 2,
        })  # fmt: skip
        rows.append({
            "model": model, "img_size": 224, "op_class": "act", "macs": 0,
            "input_elements": size * width, "weight_elements": 0, "output_elements": size * width,
            "m": width, "n": 0, "k": 0, "groups": 1, "kernel": 1, "stride": 1, "count": 1,
        })  # fmt: skip
    return rows


def milliseconds(rows: list[dict[str, Any]], hardware: str, batch: int) -> float:
    """What a batch takes: 60 % of the peak and 70 % of the bandwidth are reached."""
    peak, bandwidth = SPEEDS[hardware]
    total = 0.0
    for row in rows:
        compute = 2 * row["macs"] / 1e9 / peak / 0.6
        moved = row["input_elements"] + row["output_elements"] + row["weight_elements"] / batch
        memory = 2 * moved / 1e6 / bandwidth / 0.7
        total += row["count"] * (compute + memory + 0.006 / batch)
    return total * batch


def made_up(folder: Path, *, a_family: int = 8, seed: int = 0) -> dict[str, Path]:
    """Tables of two cards, of a third, of a family of its own, and the signatures of all."""
    rng = np.random.default_rng(seed)
    signatures: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for number, family in enumerate(FAMILIES):
        for one in range(a_family):
            model = f"{family}_{one}"
            mine = operators(rng, model, number)
            signatures += mine
            for hardware in SPEEDS:
                latency = milliseconds(mine, hardware, 64) * rng.lognormal(0, 0.01)
                rows.append(_row(f"{model}.tag", family, hardware, mine, latency))
    known = [row for row in rows if row["hardware_name"] != "NVIDIA GeForce RTX 5090"]
    tables = {
        "signatures": signatures,
        "train": [row for row in known if row["family"] != "cells"],
        "new_family": [row for row in known if row["family"] == "cells"],
        "new_card": [
            row for row in rows if row not in known and row["family"] != "cells"
        ],
        "both_new": [row for row in rows if row not in known and row["family"] == "cells"],
    }  # fmt: skip
    paths = {name: folder / f"{name}.parquet" for name in tables}
    for name, table in tables.items():
        pq.write_table(pa.Table.from_pylist(table), paths[name])
    return paths


def _row(
    model: str, family: str, hardware: str, mine: list[dict[str, Any]], latency: float
) -> dict[str, Any]:
    return {
        "source": "made up", "model": model, "family": family,
        "params_m": sum(row["weight_elements"] for row in mine) / 1e6,
        "gmacs": sum(row["macs"] * row["count"] for row in mine) / 1e9,
        "activations_m": sum(row["output_elements"] for row in mine) / 1e6,
        "hardware_name": hardware, "hardware_kind": "cuda", "framework": "pytorch",
        "runtime": "torch 2.4.0 eager", "precision": "amp", "batch_size": 64, "img_size": 224,
        "mode": "inference", "latency_ms": latency, "throughput": 64e3 / latency,
        "memory_mb": 50 + 4 * sum(row["weight_elements"] for row in mine) / 1e6,
        "extra": json.dumps({"layout": "nchw", "compile": False}),
    }  # fmt: skip
