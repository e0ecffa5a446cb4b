"""Importer of timm's benchmark tables, with device and versions in the file's name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accelbench.core.plausible_values import OTHER_RATE_TOLERANCE
from accelbench.core.ranges import OPERATIONS
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import Architecture, Family, Mode
from accelbench.exchange.imports.records import MalformedError, Record, read_table
from accelbench.exchange.imports.result_row import Source, build_result

PATTERN = "benchmark-*.csv"

_NAME = re.compile(
    r"benchmark-(?P<mode>infer|train)-(?P<precision>[a-z0-9]+)-(?P<layout>nchw|nhwc)"
    r"-pt(?P<torch>\d{3})-(?:cu(?P<cuda>\d{3})|cpu)-(?P<device>[a-z0-9_]+?)(?P<compiled>-dynamo)?\.csv"
)
_MODES = {"infer": Mode.INFERENCE, "train": Mode.TRAINING}
#: `--amp` is autocast to fp16 unless another type is given.
_PRECISIONS = {"amp": "amp-fp16", "fp32": "fp32", "fp16": "fp16", "bf16": "bf16"}
_GEFORCE = re.compile(r"(?:rtx)?(\d{4})(ti|super)?")
_CORE = re.compile(r"(i\d)_?(\d+[a-z]*)")


def read_rows(file: Path, source: Source) -> Iterator[dict[str, Any] | None]:
    """Yield one row per model; None for one that did not run."""
    name = _NAME.fullmatch(file.name)
    if name is None:
        why = (
            "its name has no mode, precision and device, such as"
            " benchmark-infer-amp-nchw-pt240-cu124-rtx4090.csv"
        )
        raise MalformedError(file, None, None, why)
    if name["precision"] not in _PRECISIONS:
        raise MalformedError(
            file, None, None, f"{in_quotes(name['precision'])} is not a known precision"
        )
    prefix = name["mode"]
    common = {
        "family": Family.VISION.value,
        "architecture": Architecture.VISION.value,
        "modality": "vision",
        "hardware": "cuda" if name["cuda"] else "cpu",
        "runtime": "pytorch",
        "device_name": expand_device_name(name["device"]),
        "precision": _PRECISIONS[name["precision"]],
        "mode": _MODES[prefix].value,
        "compiled": name["compiled"] is not None,
        "options": {"layout": name["layout"]},
        "throughput_unit": "images/s",
    }
    conditions = {"torch": format_torch_version(name["torch"])}
    if name["cuda"]:
        conditions["cuda"] = f"{name['cuda'][:-1]}.{name['cuda'][-1]}"
    measured = (f"{prefix}_samples_per_sec", f"{prefix}_step_time", f"{prefix}_batch_size")
    for line in read_table(file, ("model", *measured)):
        if not any(map(line.has, measured)):
            yield None
            continue
        columns = {**common, **_read_columns(line, prefix)}
        yield build_result(source, columns, conditions, at=line, rates=OTHER_RATE_TOLERANCE)


def _read_columns(line: Record, prefix: str) -> dict[str, Any]:
    millions = line.number("param_count") if line.has("param_count") else None
    size = f"{prefix}_img_size"
    counts = {"gmacs": f"{prefix}_gmacs", "mega_activations": f"{prefix}_macts"}
    return {
        "model": line.text("model"),
        "batch_size": line.whole(f"{prefix}_batch_size"),
        "image_size": line.optional_whole(size),
        "latency_mean_ms": line.number(f"{prefix}_step_time", above=0),
        "throughput": line.number(f"{prefix}_samples_per_sec", above=0),
        "parameters": None if millions is None else round(millions * 1e6),
        "extra": {
            name: line.number(field, within=OPERATIONS)
            for name, field in counts.items()
            if line.has(field)
        },
    }


def format_torch_version(digits: str) -> str:
    """Format 240 as 2.4.0, and 113 as 1.13: versions 1 have only two parts."""
    return f"1.{digits[1:]}" if digits[0] == "1" else ".".join(digits)


def expand_device_name(word: str) -> str:
    """Return the usual name of a device; an unknown word is not changed."""
    if card := _GEFORCE.fullmatch(word):
        kind = {"ti": " Ti", "super": " SUPER", None: ""}[card[2]]
        return f"NVIDIA GeForce RTX {card[1]}{kind}"
    if chip := _CORE.fullmatch(word):
        return f"Intel Core {chip[1]}-{chip[2].upper()}"
    return word
