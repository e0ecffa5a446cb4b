"""An empty store is built once in a process of tests and copied: building one takes 55 ms."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from accelbench.store import duck, schema
from accelbench.store.files import REAL_FILES, Files

_made: dict[tuple[str, ...], bytes] = {}
build_empty_store = duck.create_temporary


def _copied(path: Path, files: Files) -> Path:
    """Copy an earlier empty store. Tests of single file operations have `files` of their own."""
    if files is not REAL_FILES:
        return build_empty_store(path, files)
    kind = (str(schema.SCHEMA_VERSION), *schema.statements())
    if kind not in _made:
        made = build_empty_store(path, files)
        _made[kind] = made.read_bytes()
        return made
    with duck._temporary_name(path, files) as copy:
        copy.write_bytes(_made[kind])
    return copy


@contextlib.contextmanager
def copied_empty_stores() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duck, "create_temporary", _copied)
        yield
