"""The JSON Schema of aggregated_benchmarks.json.

`python -m accelbench.exchange.aggregate_schema > docs/aggregate-schema.json` publishes it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from accelbench.core.columns import BY_NAME
from accelbench.core.vocabulary import Provenance, Status
from accelbench.exchange.aggregate import ASIDE, ENOUGH_SAMPLES, FLAGS, NAME, QUESTION, SCHEMA_ID
from accelbench.exchange.result_schema import property_of

_COUNT = {"type": "integer", "minimum": 0}
_NUMBER = {"type": ["number", "null"]}
_WORD = {"type": ["string", "null"]}
_FLAGS = {
    "description": "what makes a figure doubtful: a result that it comes from is throttled or"
    f" unsteady, or has fewer than {ENOUGH_SAMPLES} samples (few_samples); none where their"
    " number is not known",
    "type": "array",
    "items": {"enum": sorted(map(str, FLAGS))},
}
_STATISTIC = {
    "description": "p50, or mean where steps were too short to be timed singly",
    "enum": ["p50", "mean", None],
}


def aggregate_schema() -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of the document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": f"{NAME} of accelbench",
        **_object(
            {
                "schema": {"const": SCHEMA_ID},
                "generated_at": {"type": "string", "format": "date-time"},
                "files": {"description": "JSON files looked at", **_COUNT},
                "skipped_files": {
                    "description": "files that are unreadable or of another kind",
                    "type": "array",
                    "items": _object({"file": {"type": "string"}, "reason": {"type": "string"}}),
                },
                "runs": {
                    "description": "the runs whose results are in here",
                    "type": "array",
                    "items": _object(
                        dict.fromkeys(("run_id", "started_at", "git_commit", "label"), _WORD)
                    ),
                },
                "results": {"description": "results counted, each once", **_COUNT},
                "status_counts": _counts(Status, "how many results of each status"),
                "left_out": _counts(Provenance, "results neither measured nor imported"),
                "entries": {"type": "array", "items": {"$ref": "#/$defs/entry"}},
            }
        ),
        "$defs": {"entry": _entry(), "batch": _batch()},
    }


def _object(properties: Mapping[str, Any], required: bool = True) -> dict[str, Any]:
    return {
        "type": "object",
        **({"required": list(properties)} if required else {}),
        "properties": dict(properties),
        "additionalProperties": False,
    }


def _counts(words: type[Status] | type[Provenance], doc: str) -> dict[str, Any]:
    return {
        "description": doc,
        "type": "object",
        "propertyNames": {"enum": [*words, "unknown"]},
        "additionalProperties": {"type": "integer", "minimum": 1},
    }


def _best(doc: str, figures: Mapping[str, Any]) -> dict[str, Any]:
    whole = _object({**figures, "batch_size": {"type": "integer", "minimum": 1}, "flags": _FLAGS})
    return {"description": doc, **whole, "type": ["object", "null"]}


def _entry() -> dict[str, Any]:
    about = ("family", "architecture", "model_size", "parameters")
    return _object(
        {
            **{name: property_of(BY_NAME[name]) for name in QUESTION},
            "shape": {
                "description": "what else was asked, the batch size apart",
                **_object({name: property_of(BY_NAME[name]) for name in ASIDE}, required=False),
            },
            **{name: property_of(BY_NAME[name]) for name in about},
            "best_latency": _best(
                "the shortest time of one step (one batch)",
                {"latency_ms": {"type": "number"}, "latency_statistic": _STATISTIC},
            ),
            "best_throughput": _best(
                "the most items a second", {"throughput": {"type": "number"}, "unit": _WORD}
            ),
            "memory_peak": _best(
                "the most memory that any batch took, in MB of 2^20 bytes",
                {"memory_peak_mb": {"type": "number"}, "memory_source": _WORD},
            ),
            "batch_scaling_efficiency": {
                "description": "throughput at the best batch ÷ (throughput at the smallest batch"
                " × best batch ÷ smallest batch); null with one batch, and where the smallest"
                " is the best",
                **_NUMBER,
            },
            "batches": {"type": "array", "items": {"$ref": "#/$defs/batch"}},
            "results": _COUNT,
            "status_counts": _counts(Status, "how many results of each status"),
            "emulated": {
                "description": "some results come from software that stands in for the device:"
                " they are counted, and their figures are not used",
                "type": "boolean",
            },
            "flags": _FLAGS,
            "provenance": {
                "type": "array",
                "items": {"enum": [Provenance.IMPORTED, Provenance.MEASURED]},
            },
            "run_ids": {"type": "array", "items": {"type": "string"}},
        }
    )


def _batch() -> dict[str, Any]:
    return _object(
        {
            "batch_size": {"type": "integer", "minimum": 1},
            "latency_ms": {"description": "median over results", **_NUMBER},
            "latency_statistic": _STATISTIC,
            "throughput": {"description": "median over results", **_NUMBER},
            "memory_peak_mb": {"description": "the most over results", **_NUMBER},
            "memory_source": _WORD,
            "results": {"type": "integer", "minimum": 1},
            "flags": _FLAGS,
        }
    )


def text() -> str:
    """Return the schema as it is published."""
    return json.dumps(aggregate_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
