"""aiconfigurator's table of measured servers: TTFT and TPOT by engine, system and parallelism."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accelbench.core.vocabulary import Architecture, Family
from accelbench.exchange.imports.records import Record, read_table
from accelbench.exchange.imports.result_row import Source, build_result

PATTERN = "measured_serving*.csv"

_NEEDED = (
    *("backend", "model_path", "system", "mode", "isl", "osl", "silicon_ttft_ms"),
    *("silicon_tpot_ms", "tp_size", "prefill_tp_size", "decode_tp_size"),
)
_SIZES = ("tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
_SERVER_OPTIONS = ("batch_size", *_SIZES)
_PHASE_OPTIONS = ("batch_size", "num_workers", *_SIZES)
#: Options of a server, with the table's names.
_OPTIONS = (
    *_SERVER_OPTIONS,
    *(f"prefill_{name}" for name in _PHASE_OPTIONS),
    *(f"decode_{name}" for name in _PHASE_OPTIONS),
)
_CONDITIONS = ("id", "backend_version", "gemm_quant_mode", "moe_quant_mode", "silicon_data_source")
#: The note on the origin contains the requests in flight.
_CONCURRENCY = re.compile(r"silicon_concurrency=(\d+)")


def read_rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield one row per measured server; empty cells stay unknown."""
    for line in read_table(file, _NEEDED):
        options: dict[str, Any] = {"serving": line.text("mode"), **_read_parallelism(line)}
        found = _CONCURRENCY.search(line.optional_text("silicon_data_source") or "")
        if found:
            options["concurrency"] = int(found[1])
        system = line.text("system")
        columns = {
            "model": line.text("model_path"),
            "family": Family.TEXT_GENERATION.value,
            "architecture": Architecture.DECODER_ONLY.value,
            "hardware": "rocm" if system.startswith("mi") else "cuda",
            "device_name": system,
            "runtime": line.text("backend"),
            "precision": line.optional_text("precision"),
            "scenario": "closed_loop",
            "prompt_tokens": line.whole("isl"),
            "new_tokens": line.whole("osl"),
            "options": options,
            "ttft_ms": line.number("silicon_ttft_ms", above=0),
            "tpot_ms": line.number("silicon_tpot_ms", above=0),
        }
        yield build_result(source, columns, line.texts(*_CONDITIONS), at=line)


def _read_parallelism(line: Record) -> dict[str, int]:
    return line.wholes(*(name for name in _OPTIONS if name in line.values), above=-1)
