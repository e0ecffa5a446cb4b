"""Which machine a result is of."""

from __future__ import annotations

import pytest

from accelbench.analysis.machines import Machine, chosen, machine_of
from accelbench.core.errors import UsageError

FACTS = {"machine": "lab", "cpu": "EPYC", "cpus_logical": 8, "memory_total": 64 * 2**30 - 10**8}


def test_a_machine_is_its_name_cpu_cpus_and_memory():
    one = machine_of("r1", FACTS)
    assert one == Machine("lab", "EPYC", 8, 64)
    assert machine_of("r2", {**FACTS, "effective_cpus": 1.0}) == one
    assert machine_of("r2", {**FACTS, "cpu": "Xeon"}).id != one.id


def test_runs_that_recorded_no_machine_are_not_mixed():
    assert machine_of("r1", None) != machine_of("r2", None)
    assert machine_of("r1", {"machine": "lab"}) == machine_of("r1", {})


def test_the_machine_of_the_newest_result_is_taken_where_none_is_named():
    old, new = Machine("old", "a"), Machine("new", "b")
    newest = {old: "2025", new: "2026"}
    assert chosen(newest, None) == new
    assert chosen(newest, "old") == old
    assert chosen(newest, new.id[:5]) == new


def test_a_name_of_none_or_of_several_machines_is_refused_with_what_there_is():
    small, large = Machine("lab", "a", 2), Machine("lab", "a", 64)
    with pytest.raises(UsageError, match="2 machines") as several:
        chosen({small: "", large: ""}, "lab")
    assert small.id in str(several.value)
    with pytest.raises(UsageError, match="no results of a machine 'attic'"):
        chosen({small: ""}, "attic")
