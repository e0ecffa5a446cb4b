"""Where the work ran: judged against the plan's device, whatever the runtime says was asked."""

import math

import pytest

from accelbench.core.errors import CaseError
from accelbench.run.verify.precision_proof import proved


def told(*devices, **more):
    return {"devices": list(devices), "requested": "cuda:0", "engine": "an engine", **more}


@pytest.mark.parametrize(
    "evidence",
    [
        told("cuda:0"),
        told("cuda"),  # an engine that names no ordinal
        told("cuda:0", "cpu:0", shares={"cuda:0": 0.95, "cpu:0": 0.05}),
        told("cuda:0", shares={"cuda:0": 0.999}),  # rounded
    ],
)
def test_work_that_ran_where_it_was_asked_to_is_proved(evidence):
    assert proved(evidence, "cuda:0")["requested"] == "cuda:0"


@pytest.mark.parametrize(
    ("evidence", "reason", "said"),
    [
        (None, "no_proof", "gave none"),
        ({}, "no_proof", "names no device"),
        (told(), "no_proof", "names no device"),
        (told(""), "no_proof", "one device is called ''"),
        ({"devices": "cuda:0"}, "no_proof", "names no device"),
        ({"devices": [None]}, "no_proof", "one device is called None"),
        (told("cpu:0"), "fallback", "asked for cuda:0, but the work ran on cpu:0"),
        (told("cuda:1"), "fallback", "ran on cuda:1"),
        # What the runtime believes that it was asked for is not what was asked for.
        (told("cpu:0", requested="cpu:0"), "fallback", "asked for cuda:0"),
        (told("cpu:0", requested=""), "fallback", "asked for cuda:0"),
        (told("cuda:0", "cpu:0"), "fallback", "cpu:0"),
        (
            told("cuda:0", "cpu:0", shares={"cuda:0": 0.5, "cpu:0": 0.5}),
            "fallback",
            r"cpu:0 \(50%\)",
        ),
        (told("cuda:0", shares={"cuda:0": 1.2}), "bad_evidence", "1.2 of the time"),
        (told("cuda:0", shares={"cuda:0": -0.1}), "bad_evidence", "-0.1 of the time"),
        (told("cuda:0", shares={"cuda:0": math.nan}), "bad_evidence", "nan of the time"),
        (told("cuda:0", shares={"cuda:0": True}), "bad_evidence", "True of the time"),
        (told("cuda:0", shares={"cuda:0": 0.1}), "bad_evidence", "add up to 0.1"),
        (
            told("cuda:0", "cpu:0", shares={"cuda:0": 1.0, "cpu:0": 0.5}),
            "bad_evidence",
            "add up to 1.5",
        ),
        # A share that is hidden among devices that are not named would count for nothing.
        (told("cuda:0", shares={"cuda:0": 0.5, "cpu:0": 0.5}), "bad_evidence", "not among"),
        (told("cuda:0", shares=[1.0]), "bad_evidence", "are a list"),
    ],
)
def test_nothing_else_is(evidence, reason, said):
    with pytest.raises(CaseError, match=said) as caught:
        proved(evidence, "cuda:0")
    assert caught.value.reason == reason


def test_what_was_asked_is_what_is_kept():
    kept = proved(told("cuda:0", requested="anything", details={"a": 1}), "cuda:0")
    assert kept == told("cuda:0", requested="cuda:0", details={"a": 1})
