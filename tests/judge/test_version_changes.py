"""What software changed, in words."""

from __future__ import annotations

from accelbench.judge.versions import changes, in_short, natural, software


def of(**packages: str) -> tuple[tuple[str, str], ...]:
    return software({"conditions": {"packages": packages, "python": "3.11"}})


def test_engines_come_first_and_many_are_counted():
    told = changes(
        of(torch="2.12", numpy="1", psutil="6", abc="1", gone="3"),
        of(torch="2.13", numpy="2", psutil="7", abc="2", new="4"),
    )
    assert told[0] == "torch 2.12 → 2.13"
    assert {"gone 3 is gone", "new 4 is new"} <= set(told)
    assert in_short(told) == "torch 2.12 → 2.13, abc 1 → 2, gone 3 is gone, and 3 more"


def test_an_engine_that_is_named_with_its_version_is_told_as_it_is_named():
    before, after = ((("engine", f"torch {one} eager"),) for one in ("1.9", "1.10"))
    assert changes(before, after) == ["torch 1.9 eager → torch 1.10 eager"]


def test_where_a_side_says_nothing_nothing_changed():
    assert changes((), of(torch="2")) == changes(of(torch="2"), ()) == []
    assert changes(of(torch="2"), of(torch="2")) == []


def test_versions_are_ordered_as_numbers():
    said = ["torch 1.10 eager", "torch 1.9 eager", "torch 1.9.1 eager", "torch"]
    assert sorted(said, key=natural) == [
        "torch",
        "torch 1.9 eager",
        "torch 1.9.1 eager",
        "torch 1.10 eager",
    ]
