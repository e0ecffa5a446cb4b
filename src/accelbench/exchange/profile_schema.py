"""Profile files and their JSON Schema.

A case has one JSON document, with the engine's own record next to it. `python -m
accelbench.exchange.profile_schema > docs/profile-schema.json` publishes the schema.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from accelbench.core.axes import size_columns
from accelbench.core.identity import to_plain
from accelbench.exchange.result_file import result_file_name
from accelbench.exchange.result_schema import load_schema
from accelbench.exchange.writing import write_exactly, write_new
from accelbench.store.files import REAL_FILES, Files

SCHEMA_VERSION = 1
SCHEMA_ID = f"urn:accelbench:profile:{SCHEMA_VERSION}"

#: Columns of a profile's case, with the names of the result's columns.
CASE_COLUMNS = (
    "run_id", "case_id", "result_id", "model", "runtime", "hardware", "device", "device_name",
    "precision", "batch_size", *size_columns(), "mode", "compiled", "options", "threads",
    "emulated",
    "provenance", "workarounds",
)  # fmt: skip

ABOUT = (
    "Taken under a profiler in a session of its own, after everything was measured. These times"
    " carry the profiler's cost and are never mixed with measured samples."
)


def profile_schema() -> dict[str, Any]:
    """Return the JSON Schema of one case's profile."""
    return load_schema("profile", {"id": SCHEMA_ID, "about": ABOUT}, {"case": CASE_COLUMNS})


def format_schema() -> str:
    """Return the published text of the schema."""
    return json.dumps(profile_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(format_schema())


#: Folder in the output tree.
FOLDER = "profiles"


def write_profile(
    folder: Path,
    profile: Mapping[str, Any],
    record: Path | None,
    when: datetime | None = None,
    files: Files = REAL_FILES,
) -> list[Path]:
    """Write one case's profile, named like result files; return the new files.

    `record` is the engine's file; it is copied to the same name with its own suffix. Existing files
    are never overwritten.
    """
    words = [str(profile.get(name) or "unknown") for name in ("model", "hardware", "precision")]
    name = result_file_name(words[0], words[1], words[2], when or datetime.now(UTC))
    body = {"schema": SCHEMA_ID, "about": ABOUT, "profile": to_plain(profile)}
    text = json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    path = write_new(folder, name, text.encode(), files)
    if record is None:
        return [path]
    copy = path.with_name(f"{path.stem}.{record.name}")
    write_exactly(copy, partial(shutil.copyfile, record), files)
    return [path, copy]
