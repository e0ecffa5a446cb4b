"""A machine where all is well."""

from __future__ import annotations

from pathlib import Path

import pytest
from doctor_world import OUR_NEEDS, QUIET, FakeRuntime, NoPrograms, Records, answering

from accelbench.core.protocols import Device
from accelbench.hardware.doctor.world import Folder, World


@pytest.fixture
def here(tmp_path: Path) -> World:
    """A machine where all is well and nothing optional is installed."""
    have = {"numpy": "2.4.6"}
    ticks = iter(range(0, 10**9, 50))
    return World(
        store=tmp_path / "store.duckdb",
        cache=Folder("artefact cache", tmp_path / "cache", 2**30, "export X=FOLDER"),
        version_of=have.get,
        requires_of=lambda name: OUR_NEEDS if name == "accelbench" else [],
        importable=lambda module: False,
        runtimes=lambda: [("fake", FakeRuntime())],
        detect=lambda: {"cpu": [Device("cpu", "a CPU")]},
        files=Records(),
        command=answering('{"fork": true, "pidfd": true}'),
        programs=NoPrograms(),
        which=lambda name: None,
        look=lambda: QUIET,
        clock_ns=lambda: next(ticks),
        free_bytes=lambda path: 2**40,
        environment={},
        python=(3, 12, 1),
        system="linux",
    )
