"""Results as one JSON document, of the same schema as result files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.exchange.result_schema import SCHEMA_ID
from accelbench.exchange.run_facts import RUNS


def write_json(
    path: Path,
    names: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    runs: Mapping[str, Mapping[str, Any]] | None = None,
) -> int:
    """Write what is said of runs, a line a run, and these columns of rows, a line a row.

    Returns:
        How many rows there were.
    """
    count = 0
    with path.open("x", encoding="utf-8", newline="\n") as stream:
        stream.write(f'{{"schema": "{SCHEMA_ID}",')
        if runs:
            each = (f"{_text(run)}: {_text(about)}" for run, about in runs.items())
            stream.write(f' "{RUNS}": {{\n')
            stream.write(",\n".join(each))
            stream.write("\n},")
        stream.write(' "results": [')
        for row in rows:
            stream.write(",\n" if count else "\n")
            stream.write(_text({name: row[name] for name in names}))
            count += 1
        stream.write("\n]}\n")
    return count


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
