"""The JSON Schema of aggregated_benchmarks.json.

`python -m accelbench.exchange.aggregate_schema > docs/aggregate-schema.json` publishes it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from accelbench.core.vocabulary import Provenance, Status
from accelbench.exchange.aggregate import ASIDE, ENOUGH_SAMPLES, FLAGS, QUESTION, SCHEMA_ID
from accelbench.exchange.result_schema import schema_of

_FLAGS = {
    "description": "what makes a figure doubtful: a result that it comes from is throttled or"
    f" unsteady, or has fewer than {ENOUGH_SAMPLES} samples (few_samples); none where their"
    " number is not known",
    "type": "array",
    "items": {"enum": sorted(map(str, FLAGS))},
}
_ABOUT = ("family", "architecture", "model_size", "parameters")


def aggregate_schema() -> dict[str, Any]:
    """Return the schema of the document."""
    words = {
        "id": SCHEMA_ID,
        "flags": _FLAGS,
        "statuses": [*map(str, Status), "unknown"],
        "provenances": [*map(str, Provenance), "unknown"],
    }
    columns = {"question": QUESTION, "aside": ASIDE, "about": _ABOUT}
    return schema_of("aggregate", words, columns)


def text() -> str:
    """Return the schema as it is published."""
    return json.dumps(aggregate_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
