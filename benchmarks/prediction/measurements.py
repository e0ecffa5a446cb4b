"""Measurements in the tidy schema: one row a figure, read from Parquet.

The columns that are read: model, family, params_m, gmacs, activations_m, hardware_name,
hardware_kind, runtime, precision, batch_size, img_size, mode, latency_ms, memory_mb, extra. Any
other column is left alone. `extra` is JSON; layout, threads, unit, job and date are taken from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.jsonc import JsonError, loads
from accelbench.predict.cases import LATENCY
from prediction.graphs import parquet_table

_COLUMNS = (
    "model", "family", "params_m", "gmacs", "activations_m", "hardware_name", "hardware_kind",
    "runtime", "precision", "batch_size", "img_size", "mode", "latency_ms", "memory_mb", "extra",
)  # fmt: skip
#: Without these a row says nothing of what was measured.
_REQUIRED = ("model", "hardware_name", "latency_ms")


@dataclass(frozen=True, slots=True)
class TableConfiguration:
    """What a model ran on and how: everything of a measurement but the model and its sizes."""

    hardware: str
    kind: str
    runtime: str
    precision: str
    mode: str
    layout: str
    setting: str  # threads of a CPU, the unit of a phone's chip

    @property
    def compiled(self) -> bool:
        return any(word in self.runtime for word in ("inductor", "compile", "dynamo"))

    @property
    def channels_last(self) -> bool:
        return self.layout in {"nhwc", "channels_last"}

    @property
    def version(self) -> float:
        """The runtime's version as a number that sorts: torch 2.10.1 is 2.10."""
        version = re.search(r"(\d+)\.(\d+)", self.runtime)
        return float(version[1]) + float(version[2]) / 100 if version else 0.0


@dataclass(frozen=True, slots=True)
class TableMeasurement:
    """One figure and what it is of."""

    model: str
    family: str
    image_size: int
    batch: int
    configuration: TableConfiguration
    value: float  # milliseconds a batch, or megabytes
    parameters_m: float  # NaN where the source does not say
    gmacs: float
    activations_m: float
    job: str  # the source's own name of the measuring; rows that share it are copies
    month: float = float("nan")  # of the release that measured it, counted from year 0

    @property
    def graph(self) -> tuple[str, int]:
        """Which operator graph it ran: the architecture, without the weights' tag, at a size."""
        return self.model.split(".")[0], self.image_size


def read_measurements(path: Path, target: str = LATENCY) -> list[TableMeasurement]:
    """Every row of a table that has the target's figure.

    Raises:
        UsageError: the file is no Parquet, lacks a column or has no figure of the target.
    """
    measurements = [m for row in _rows(path) if (m := _measurement(row, target)) is not None]
    if not measurements:
        raise UsageError(
            f"{path.name} has no figure of {target}.",
            "Give a table whose column latency_ms or memory_mb is filled.",
        )
    return measurements


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    more = [name for name in _COLUMNS if name not in _REQUIRED]
    table = parquet_table(path, _REQUIRED, "Give a table in the tidy schema.", more=more)
    for batch in table.to_batches(max_chunksize=8192):
        yield from batch.to_pylist()


def _measurement(row: Mapping[str, Any], target: str) -> TableMeasurement | None:
    value = row["latency_ms"] if target == LATENCY else row.get("memory_mb")
    if not value or not value > 0 or not row["model"] or not row["hardware_name"]:
        return None
    extra = _extra(row.get("extra"))
    return TableMeasurement(
        model=row["model"],
        family=row.get("family") or row["model"],
        image_size=int(row.get("img_size") or 0),
        batch=int(row.get("batch_size") or 1),
        configuration=TableConfiguration(
            hardware=row["hardware_name"],
            kind=row.get("hardware_kind") or "",
            runtime=row.get("runtime") or "",
            precision=row.get("precision") or "",
            mode=row.get("mode") or "inference",
            layout=str(extra.get("layout") or ""),
            setting=_setting(extra),
        ),
        value=float(value),
        parameters_m=_number(row.get("params_m")),
        gmacs=_number(row.get("gmacs")),
        activations_m=_number(row.get("activations_m")),
        job=str(extra.get("job_id") or ""),
        month=_month(extra.get("date")),
    )


def _extra(text: Any) -> dict[str, Any]:
    try:
        options = loads(text) if text else {}
    except JsonError:
        return {}
    return options if isinstance(options, dict) else {}


def _month(date: Any) -> float:
    """Months up to a date in ISO format, NaN where there is none."""
    parts = re.match(r"(\d{4})-(\d{2})", str(date or ""))
    return int(parts[1]) * 12.0 + int(parts[2]) if parts else float("nan")


def _setting(extra: Mapping[str, Any]) -> str:
    names = ("num_threads", "powersave", "unit", "n_gpus")
    return " ".join(f"{name}={extra[name]}" for name in names if extra.get(name) is not None)


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
