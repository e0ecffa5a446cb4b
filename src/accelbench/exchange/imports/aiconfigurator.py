"""aiconfigurator's table of measured servers: TTFT and TPOT by engine, system and parallelism."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accelbench.core.vocabulary import Architecture, Family
from accelbench.exchange.imports.records import Record, table_of
from accelbench.exchange.imports.result_row import Source, imported

PATTERN = "measured_serving*.csv"

_NEEDED = (
    *("backend", "model_path", "system", "mode", "isl", "osl", "silicon_ttft_ms"),
    *("silicon_tpot_ms", "tp_size", "prefill_tp_size", "decode_tp_size"),
)
_SIZES = ("tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
_OF_ONE = ("batch_size", *_SIZES)
_OF_TWO = ("batch_size", "num_workers", *_SIZES)
#: Options of a server, in the words of the table.
_OPTIONS = (
    *_OF_ONE,
    *(f"prefill_{name}" for name in _OF_TWO),
    *(f"decode_{name}" for name in _OF_TWO),
)
_KEPT = ("id", "backend_version", "gemm_quant_mode", "moe_quant_mode", "silicon_data_source")
#: Requests in flight stand in the note on the origin.
_CONCURRENCY = re.compile(r"silicon_concurrency=(\d+)")


def rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield one row per measured server; what the table leaves empty stays unknown."""
    for line in table_of(file, _NEEDED):
        options: dict[str, Any] = {"serving": line.text("mode"), **_parallelism(line)}
        found = _CONCURRENCY.search(line.text_if("silicon_data_source") or "")
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
            "precision": line.text_if("precision"),
            "scenario": "closed_loop",
            "prompt_tokens": line.whole("isl"),
            "new_tokens": line.whole("osl"),
            "options": options,
            "ttft_ms": line.number("silicon_ttft_ms", above=0),
            "tpot_ms": line.number("silicon_tpot_ms", above=0),
        }
        yield imported(source, columns, line.texts(*_KEPT), at=line)


def _parallelism(line: Record) -> dict[str, int]:
    return line.wholes(*(name for name in _OPTIONS if name in line.values), above=-1)
