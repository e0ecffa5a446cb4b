"""The JSON Schema of profile files.

`python -m accelbench.exchange.profile_schema > docs/profile-schema.json` publishes it.

Profiles as files: one JSON document per case, and the engine's own record next to it.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from accelbench.core.axes import columns
from accelbench.core.columns import BY_NAME
from accelbench.core.identity import plain
from accelbench.exchange.result_file import result_file_name
from accelbench.exchange.result_schema import property_of
from accelbench.exchange.writing import write_exactly, write_new
from accelbench.store.files import REAL_FILES, Files

SCHEMA_VERSION = 1
SCHEMA_ID = f"urn:accelbench:profile:{SCHEMA_VERSION}"

#: What a profile says of its case, in the words of the result's columns.
CASE_COLUMNS = (
    "run_id", "case_id", "result_id", "model", "runtime", "hardware", "device", "device_name",
    "precision", "batch_size", *columns(), "mode", "compiled", "options", "threads", "emulated",
    "provenance", "workarounds",
)  # fmt: skip

_OPERATOR: dict[str, Any] = {
    "kind": {"description": "what it does, in the engine's word", "type": "string"},
    "calls": {"description": "how often in one step", "type": "number", "exclusiveMinimum": 0},
    "total_ms": {"description": "its own time in one step", "type": "number", "minimum": 0},
    "share": {"description": "of the step's wall time", "type": "number", "minimum": 0},
    "where": {"description": "the device, or the engine's word for it", "type": "string"},
}
_NAME = {"description": "a node's name, or the shapes it was called with", "type": "string"}
_FOUND: dict[str, Any] = {
    "why_not": {
        "description": "why there is no profile; null where there is one",
        "type": ["string", "null"],
    },
    "engine": {"description": "the engine and its version", "type": ["string", "null"]},
    "profiler": {"description": "whose figures these are", "type": ["string", "null"]},
    "steps": {"description": "how many steps were profiled", "type": ["integer", "null"]},
    "wall_ms": {
        "description": "one profiled step, the mean of them, with the profiler's cost",
        "type": ["number", "null"],
    },
    "walls_ms": {"description": "each of them", "type": "array", "items": {"type": "number"}},
    "explained": {
        "description": "the share of the step that the operators add up to; more than 1 where"
        " several ran at the same time",
        "type": ["number", "null"],
    },
    "remark": {"description": "what these times are", "type": ["string", "null"]},
}
ABOUT = (
    "Taken under a profiler in a session of its own, after everything was measured. These times"
    " carry the profiler's cost and are never mixed with measured samples."
)


def profile_schema() -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of one case's profile."""
    properties = {
        **{name: property_of(BY_NAME[name]) for name in CASE_COLUMNS},
        **_FOUND,
        "kinds": _list("operators by what they do, the longest first", "kind"),
        "operators": _list("every operator that took time, the longest first", "operator"),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "Where one step's time goes, by accelbench",
        "type": "object",
        "required": ["schema", "about", "profile"],
        "properties": {
            "schema": {"const": SCHEMA_ID},
            "about": {"const": ABOUT},
            "profile": {"$ref": "#/$defs/profile"},
        },
        "additionalProperties": False,
        "$defs": {
            "profile": _whole(properties),
            "kind": _whole(_OPERATOR),
            "operator": _whole({"name": _NAME, **_OPERATOR}),
        },
    }


def _list(description: str, of: str) -> dict[str, Any]:
    return {"description": description, "type": "array", "items": {"$ref": f"#/$defs/{of}"}}


def _whole(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


def text() -> str:
    """Return the schema as it is published."""
    return json.dumps(profile_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())


#: Of the documents' output tree.
FOLDER = "profiles"


def write(
    folder: Path,
    profile: Mapping[str, Any],
    record: Path | None,
    when: datetime | None = None,
    files: Files = REAL_FILES,
) -> list[Path]:
    """Write one case's profile, named like result files; return the new files.

    `record` is what the engine wrote, copied to the same name with its own suffix. Existing files
    are never overwritten.
    """
    words = [str(profile.get(name) or "unknown") for name in ("model", "hardware", "precision")]
    name = result_file_name(words[0], words[1], words[2], when or datetime.now(UTC))
    body = {"schema": SCHEMA_ID, "about": ABOUT, "profile": plain(profile)}
    text = json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    path = write_new(folder, name, text.encode(), files)
    if record is None:
        return [path]
    beside = path.with_name(f"{path.stem}.{record.name}")
    write_exactly(beside, lambda written: _copy(record, written), files)
    return [path, beside]


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
