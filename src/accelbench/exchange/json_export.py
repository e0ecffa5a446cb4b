"""Results as one JSON document, of the same schema as result files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.exchange.result_schema import SCHEMA_ID


def write_json(path: Path, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write these columns of rows, a line a row."""
    with path.open("x", encoding="utf-8", newline="\n") as stream:
        stream.write(f'{{"schema": "{SCHEMA_ID}", "results": [')
        for number, row in enumerate(rows):
            stream.write(",\n" if number else "\n")
            stream.write(json.dumps({name: row[name] for name in names}, ensure_ascii=False))
        stream.write("\n]}\n")
