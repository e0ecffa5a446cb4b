"""Which machine a result is of."""

import pytest

from accelbench.core.errors import UsageError
from accelbench.judge.machines import Machine, chosen, machine_of

FACTS = {"machine": "lab", "cpu": "EPYC", "cpus_logical": 8, "memory_total": 64 * 2**30 - 10**8}


def test_what_a_machine_is():
    # A machine is its name cpu cpus and memory.
    one = machine_of("r1", FACTS)
    assert one == Machine("lab", "EPYC", 8, 64)
    assert machine_of("r2", {**FACTS, "effective_cpus": 1.0}) == one
    assert machine_of("r2", {**FACTS, "cpu": "Xeon"}).id != one.id
    assert machine_of("r1", None) != machine_of("r2", None)
    assert machine_of("r1", {"machine": "lab"}) == machine_of("r1", {})
    # A source is the name of its machine which tells it from others.
    timm = machine_of("r", {"source": {"name": "timm"}, "files": ["a.csv"]})
    small, large = (
        machine_of("r", {**FACTS, "cpus_logical": cpus, "source": {"name": "cellar"}})
        for cpus in (2, 64)
    )
    assert (str(timm), timm.elsewhere) == ("source timm", True)
    assert (small.name, small.cpu) == (large.name, large.cpu) == ("source cellar", "EPYC")
    assert small != large
    assert all(timm.answers(word) for word in ("timm", "source timm", timm.id))
    assert not timm.answers("lab")
    assert not machine_of("r", FACTS).answers("source lab")


def test_which_machine_is_meant():
    # The machine of the newest result is taken where none is named.
    old, new = Machine("old", "a"), Machine("new", "b")
    newest = {old: "2025", new: "2026"}
    assert chosen(newest, None) == new
    assert chosen(newest, "old") == old
    assert chosen(newest, new.id[:5]) == new
    # A name of none or of several machines is refused with what there is.
    small, large = Machine("lab", "a", 2), Machine("lab", "a", 64)
    with pytest.raises(UsageError, match="2 machines") as several:
        chosen({small: "", large: ""}, "lab")
    assert small.id in str(several.value)
    with pytest.raises(UsageError, match="no results of a machine 'attic'"):
        chosen({small: ""}, "attic")
