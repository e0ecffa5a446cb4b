"""A runtime's own options: how they are written, read, refused, and left out."""

import pytest

from accelbench.core.errors import UsageError
from accelbench.core.option_types import (
    RuntimeOption,
    Setting,
    drop_defaults,
    parse_settings,
    resolve_setting,
)

DECLARED = (
    RuntimeOption("hint", "what for", choices=("latency", "throughput"), default="latency"),
    RuntimeOption("cache", "keep it", kind="truth", default=False),
    RuntimeOption("streams", "how many", kind="number"),
    RuntimeOption("file", "which"),
    RuntimeOption("provider", "who", choices=("a", "b"), default={"cpu": "a", "cuda": "b"}),
)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (None, []),
        (["x.hint=latency"], [("x", "hint", "latency")]),
        (["x.hint=latency,y.file=a"], [("x", "hint", "latency"), ("y", "file", "a")]),
        (["x.file=a,b=c", "x.hint="], [("x", "file", "a,b=c"), ("x", "hint", "")]),
    ],
)
def test_settings_are_read_as_written(values, expected):
    assert parse_settings(values) == [Setting(*one) for one in expected]


@pytest.mark.parametrize("wrong", ["hint", "x.hint", "hint=latency", ".a=b", "x.=b", ""])
def test_what_is_no_setting_is_refused(wrong):
    with pytest.raises(UsageError, match=r"takes RUNTIME\.NAME=VALUE"):
        parse_settings([wrong])


def test_options_of_a_runtime():
    with pytest.raises(UsageError, match=r"x\.hint is set twice"):
        parse_settings(["x.hint=latency", "x.hint=throughput"])
    with pytest.raises(UsageError, match="none of its own"):
        resolve_setting(Setting("x", "hint", "latency"), ())
    values = {"hint": "latency", "cache": True, "provider": "b"}
    assert drop_defaults(values, DECLARED, "cpu") == {"cache": True, "provider": "b"}
    assert drop_defaults(values, DECLARED, "cuda") == {"cache": True}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("hint", "throughput", "throughput"),
        ("cache", "Yes", True),
        ("cache", "0", False),
        ("streams", "-1", -1),
        ("file", "anything, at all", "anything, at all"),
    ],
)
def test_a_value_is_what_the_runtime_declares(name, text, value):
    found = resolve_setting(Setting("x", name, text), DECLARED)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("hint", "fast", "takes latency or throughput, not 'fast'"),
        ("cache", "perhaps", "takes yes or no"),
        ("streams", "1.5", "takes a whole number"),
        ("streams", "", "takes a whole number"),
        ("hnt", "latency", r"has no option 'hnt'.*hint \(latency or throughput\).*file \(any text"),
    ],
)
def test_what_a_runtime_does_not_know_is_refused_with_what_it_knows(name, text, said):
    with pytest.raises(UsageError, match=said):
        resolve_setting(Setting("x", name, text), DECLARED)
