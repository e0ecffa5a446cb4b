"""The matrix of results as it is asked of a store: what is not asked of this machine."""

from __future__ import annotations

from typing import NoReturn

import pytest

from accelbench.judge import machine_matrix
from accelbench.judge.machine_matrix import LocalPlatforms
from accelbench.judge.machines import Machine, machine_of

ATTIC = {"machine": "attic", "cpu": "A processor", "cpus_logical": 2, "memory_total": 2**34}


class Asked:
    """Platforms of which each is known, and none may be looked at."""

    def __contains__(self, hardware: object) -> bool:
        return True

    def __getitem__(self, hardware: str) -> NoReturn:
        raise AssertionError(f"{hardware} was looked for")


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(None, id="of several"),
        pytest.param(Machine("source somebody"), id="of a source"),
        pytest.param(Machine("cellar", "A processor", 2, 16), id="of another"),
        pytest.param(Machine("attic", "A processor", 4, 16), id="of another of its name"),
    ],
)
def test_no_platform_is_looked_for_where_results_are_of_another_machine(machine, monkeypatch):
    monkeypatch.setattr(machine_matrix, "LazyInventory", Asked)
    monkeypatch.setattr(machine_matrix, "describe_environment", lambda: ATTIC)
    assert LocalPlatforms().absences(machine, ["openvino", "cuda"]) == {}


def test_of_what_a_source_measured_not_even_this_machine_is_asked(monkeypatch):
    def asked() -> NoReturn:
        raise AssertionError("this machine was looked at")

    monkeypatch.setattr(machine_matrix, "describe_environment", asked)
    source = machine_of("r1", {**ATTIC, "source": {"name": "somebody"}})
    assert LocalPlatforms().absences(source, ["openvino"]) == {}
