"""What a profile adds up to, from times written by hand."""

import pytest

from accelbench.core.profile import OperatorTime, build_profile, group_by_kind


def example():
    spent = [
        OperatorTime("first", "MatMul", 3e6, where="cpu:0"),
        OperatorTime("first", "MatMul", 5e6, where="cpu:0"),
        OperatorTime("second", "MatMul", 4e6, calls=2, where="cpu:0"),
        OperatorTime("third", "Add", 1e6, where="cpu:0"),
        OperatorTime("third", "Add", 2e6, where="cuda:0"),
        OperatorTime("folded", "Reshape", 0, where="cpu:0"),
    ]
    return build_profile("a profiler", spent, [9_000_000, 11_000_000])


def test_a_profile_adds_up():
    found = example()
    assert (found.steps, found.wall_ms, found.walls_ms) == (2, 10.0, (9.0, 11.0))
    first = found.operators[0]
    assert (first.name, first.kind, first.calls, first.total_ms) == ("first", "MatMul", 1, 4.0)
    assert first.share == pytest.approx(0.4)

    found = [(one.name, one.where, one.total_ms) for one in example().operators]
    assert found == [
        ("first", "cpu:0", 4.0),
        ("second", "cpu:0", 2.0),
        ("third", "cuda:0", 1.0),
        ("third", "cpu:0", 0.5),
    ]

    assert example().explained_share == pytest.approx(0.75)

    found = example()
    kinds = group_by_kind(found)
    assert [(one.kind, one.where, one.calls) for one in kinds] == [
        ("MatMul", "cpu:0", 2),
        ("Add", "cuda:0", 0.5),
        ("Add", "cpu:0", 0.5),
    ]
    assert sum(one.total_ms for one in kinds) == sum(one.total_ms for one in found.operators)
    assert sum(one.share for one in kinds) == pytest.approx(found.explained_share)
