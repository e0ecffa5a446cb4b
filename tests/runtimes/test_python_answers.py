"""What a callable returned: whether its work is done, and what has to be waited for."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from accelbench.core.errors import CaseError
from accelbench.measure.evidence_warnings import warned_of
from accelbench.runtimes.python.answers import (
    arrays,
    digest_of_values,
    refuse_unfinished,
    uncompared,
    waiting,
)

PENDING: Future[int] = Future()


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ({"tokens": (n for n in range(3))}, "an iterator (generator)"),
        ([1, map(str, [1])], "an iterator (map)"),
        (PENDING, "a future"),
        ([[PENDING]], "a future"),
        ((1, threading.Thread()), "a thread"),
        ({1, PENDING}, "a future"),
    ],
)
def test_a_part_that_is_not_done_is_refused(answer: Any, what: str) -> None:
    with pytest.raises(CaseError) as refused:
        refuse_unfinished(answer)
    assert refused.value.message.startswith(f"it returns {what}: its work is not done")


def test_a_process_that_was_started_is_not_its_work() -> None:
    with (
        subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.DEVNULL) as process,
        pytest.raises(CaseError, match="it returns a process"),
    ):
        refuse_unfinished({"job": process})


def test_work_that_goes_on_within_an_object_is_not_done() -> None:
    @dataclass
    class Answer:
        job: Any

    with pytest.raises(CaseError, match="it returns a future"):
        refuse_unfinished(Answer({"later": PENDING}))
    with pytest.raises(CaseError, match="it returns an iterator"):
        refuse_unfinished([Answer(map(str, [1]))])
    with pytest.raises(CaseError, match="it returns a process"):
        refuse_unfinished(Answer(multiprocessing.get_context("spawn").Process()))
    refuse_unfinished([Answer(1), Answer, threading])


def test_two_parts_of_the_same_place_are_both_compared() -> None:
    assert [int(value) for value in arrays({"a.b": 1, "a": {"b": 2}}).values()] == [1, 2]
    assert [int(value) for value in arrays({1: 3, "1": 4, "1'": 5}).values()] == [3, 4, 5]


@pytest.mark.parametrize("answer", [None, 3, "text", [1, [2.0, "x"]], {"a": (1, None)}, b"bytes"])
def test_what_is_done_is_not_refused(answer: Any) -> None:
    refuse_unfinished(answer)


def test_an_array_of_jax_within_an_object_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Answer:
        def __init__(self) -> None:
            self.parts = [jnp.ones(3), 4]

    waited: list[Any] = []
    monkeypatch.setattr(jax, "block_until_ready", waited.append)
    later = Answer()
    wait = waiting(Answer())
    assert wait is not None
    wait(later)
    ((array,),) = waited
    assert array is later.parts[0]
    assert waiting({"x": jnp.ones(2)}) is jax.block_until_ready
    assert waiting([1, "x"]) is None


#: A set of texts and tuples, as a process of another hash seed has it.
_IN_A_SET = (
    "from accelbench.runtimes.python.answers import arrays, digest_of_values\n"
    "words = frozenset({'the', 'quick', 'brown', 'fox', 'jumps', ('over', 2), ('it', 3.5)})\n"
    "print(digest_of_values(arrays({'words': words})))"
)


def test_a_set_is_compared_by_what_it_holds_in_every_process() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", _IN_A_SET],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(digests) == 1

    def digest(value: Any) -> str:
        return digest_of_values(arrays(value))

    assert digest({"a", "b"}) == digest({"b", "a"}) != digest({"a", "c"})
    assert arrays({3.0, 1.0, 2.0})["output"].tolist() == [1.0, 2.0, 3.0]
    assert digest({"a": 1, "b": 2}.keys()) == digest({"b", "a"})


def test_what_is_not_compared_is_named() -> None:
    class Handle:
        __slots__ = ()

    assert uncompared([1, "x", {2.0, 3.0}, None, {"a": b"bytes"}]) == []
    assert uncompared({"a": Handle(), "b": [Handle(), 1]}) == ["Handle"]
    (warning,) = warned_of({"not_compared": ["Handle"]})
    assert warning == "Of what it returns Handle is not verified: it is neither numbers nor text."
