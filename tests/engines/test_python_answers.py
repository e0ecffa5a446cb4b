"""What a callable returned: whether its work is done, and what has to be waited for."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from accelbench.core.errors import CaseError
from accelbench.engines.python import session
from accelbench.engines.python.answers import (
    arrays,
    digest_of_values,
    refuse_unfinished,
    uncompared,
)
from accelbench.engines.python.evaluation import evaluated, late_parts
from accelbench.engines.python.places import waiting
from accelbench.measure.loop import evidence_warnings

PENDING = Future()


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
def test_a_part_that_is_not_done_is_refused(answer, what):
    with pytest.raises(CaseError) as refused:
        refuse_unfinished(answer)
    assert refused.value.message.startswith(f"it returns {what}: its work is not done")


def test_a_process_that_was_started_is_not_its_work():
    with (
        subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.DEVNULL) as process,
        pytest.raises(CaseError, match="it returns a process"),
    ):
        refuse_unfinished({"job": process})


def test_work_that_goes_on_within_an_object_is_not_done():
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


def test_tensors_are_compared_by_their_values():
    one, other = (np.ma.masked_array([1, hidden], [0, 1]) for hidden in (5, 6))
    assert _digest(one) == _digest(other)
    places = torch.tensor([[0, 0], [1, 1]])
    twice = torch.sparse_coo_tensor(places, torch.tensor([1.0, 1.0]), (2, 2))
    once = torch.sparse_coo_tensor(places[:, :1], torch.tensor([2.0]), (2, 2))
    assert _digest(twice) == _digest(once)
    assert uncompared(torch.empty(2, device="meta")) == ["Tensor"]
    assert [int(value) for value in arrays({"a.b": 1, "a": {"b": 2}}).values()] == [1, 2]
    assert [int(value) for value in arrays({1: 3, "1": 4, "1'": 5}).values()] == [3, 4, 5]


@pytest.mark.parametrize("answer", [None, 3, "text", [1, [2.0, "x"]], {"a": (1, None)}, b"bytes"])
def test_what_is_done_is_not_refused(answer):
    refuse_unfinished(answer)


def test_an_array_of_jax_within_an_object_is_waited_for(monkeypatch):
    class Answer:
        def __init__(self):
            self.parts = [jnp.ones(3), 4]

    waited = []
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
    "from accelbench.engines.python.answers import arrays, digest_of_values\n"
    "words = frozenset({'the', 'quick', 'brown', 'fox', 'jumps', ('over', 2), ('it', 3.5)})\n"
    "print(digest_of_values(arrays({'words': words})))"
)


def test_a_set_is_compared_by_what_it_holds_in_every_process():
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

    def digest(value):
        return digest_of_values(arrays(value))

    assert digest({"a", "b"}) == digest({"b", "a"}) != digest({"a", "c"})
    assert arrays({3.0, 1.0, 2.0})["output"].tolist() == [1.0, 2.0, 3.0]
    assert digest({"a": 1, "b": 2}.keys()) == digest({"b", "a"})


def test_what_is_not_compared_is_named():
    class Handle:
        __slots__ = ()

    assert uncompared([1, "x", {2.0, 3.0}, None, {"a": b"bytes"}]) == []
    assert uncompared({"a": Handle(), "b": [Handle(), 1]}) == ["Handle"]
    (warning,) = evidence_warnings({"not_compared": ["Handle"]})
    assert warning == (
        "Returned values of type Handle are not verified: they are neither numbers nor text."
    )


DENSE = torch.tensor([[0.0, 2.0], [3.0, 0.0]])


def _digest(value):
    return digest_of_values(arrays(value))


@dataclass
class Slotted:
    __slots__ = ("job", "number")
    number: Any
    job: Any


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (DENSE.to_sparse(), (2 * DENSE).to_sparse()),
        (DENSE.to_sparse_csr(), (2 * DENSE).to_sparse_csr()),
        (DENSE.to_mkldnn(), (2 * DENSE).to_mkldnn()),
        (np.ma.masked_array([1, 2], [0, 0]), np.ma.masked_array([1, 2], [0, 1])),
        (np.array([(1, 2.0)], "i4,f4"), np.array([(1, 3.0)], "i4,f4")),
        (np.array([(1, 2.0)], "i4,f4")[0], np.array([(2, 2.0)], "i4,f4")[0]),
        (np.array(["2020-01-01"], "M8[D]"), np.array(["2020-01-02"], "M8[D]")),
        (np.array(["ab", "c"]), np.array(["ab", "d"])),
        (np.array([1, "a", None], object), np.array([1, "b", None], object)),
        (Slotted(1, 2), Slotted(1, 3)),
        (torch.tensor([1e300], dtype=torch.float64), torch.tensor([2e300], dtype=torch.float64)),
        (torch.tensor([1 + 2j]).conj(), torch.tensor([1 + 2j])),
        (torch.tensor([1.0], dtype=torch.bfloat16), torch.tensor([2.0], dtype=torch.bfloat16)),
    ],
)
def test_what_is_no_plain_array_is_compared_by_what_it_holds(one, other):
    """Sparse and quantised tensors ended in a TypeError, and a mask was not looked at."""
    assert uncompared(one) == []
    assert _digest(one) == _digest(one) != _digest(other)


@pytest.mark.filterwarnings("ignore")
def test_a_quantised_tensor_is_compared_by_its_values():
    made = torch.quantize_per_tensor(DENSE, 0.5, 0, torch.qint8)
    assert arrays(made)["output"].tolist() == DENSE.tolist()


def test_work_within_an_array_of_objects_or_slots_is_not_done():
    for answer in (np.array([PENDING, 1], object), Slotted(1, [PENDING])):
        with pytest.raises(CaseError, match="it returns a future"):
            refuse_unfinished(answer)


def test_what_goes_on_after_a_call_is_noticed_and_what_waits_is_not():
    assert session.left_running() == ""
    end = threading.Event()
    waits = threading.Thread(target=end.wait)
    waits.start()
    assert session.left_running() == ""
    works = threading.Thread(target=lambda: [None for _ in iter(end.is_set, True)])
    works.start()
    try:
        assert any(session.left_running() for _ in range(20))
    finally:
        end.set()
        works.join()
        waits.join()
    (warning,) = evidence_warnings({"left_running": "98% of a core"})
    assert "continue after the calls return" in warning


def test_a_timer_that_is_set_has_work_to_do_later():
    timer = threading.Timer(60.0, print)
    timer.start()
    try:
        assert session.left_running()
    finally:
        timer.cancel()
        timer.join()


def test_who_spins_for_a_while_after_its_work_has_left_nothing(monkeypatch):
    used = iter([0.9, 0.01, 0.9, 0.9, 0.9])
    clocks = iter([{}, {}, {}, {}, {7: 1.0}, {7: 1.02}])
    monkeypatch.setattr(session, "_thread_seconds", lambda: next(clocks))
    monkeypatch.setattr(session, "_busy", lambda seconds: next(used))
    monkeypatch.setattr(session.time, "sleep", lambda seconds: None)
    assert session.left_running() == ""
    assert session.left_running() == "90% of a core"
    assert session.left_running() == "90% of a core"  # of a thread of Python's, at once
    assert next(used, None) is None


class Pair(NamedTuple):
    one: Any
    two: Any


class Named(dict[str, Any]):
    """A mapping of its own name that reads as any other does."""


@pytest.mark.parametrize(
    "answer",
    [
        3,
        "text",
        [1.5, (2, None), {"a": b"bytes"}],
        np.ones(3),
        np.array([1, "a"], object),
        torch.ones(2),
        jnp.ones(2),
        Pair(np.ones(2), torch.ones(2)),
        Named(a=[1, 2]),
        Slotted(1, [2]),
        deque([1, 2]),
        memoryview(b"bytes"),
        PENDING,
    ],
)
def test_what_has_its_values_is_not_evaluated(answer):
    assert late_parts(answer) == []
    assert evaluated(answer) is answer


def test_late_parts_are_evaluated_where_they_are_and_the_rest_stays():
    class Late:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3)

    kept = np.ones(4)
    answer = {"a": [Late(), kept], "b": Slotted(Late(), 1)}
    assert late_parts(answer) == ["Late.__array__"]
    found = evaluated(answer)
    assert found["a"][1] is kept
    assert found["a"][0].tolist() == found["b"]["number"].tolist() == [0, 1, 2]
    assert late_parts(found) == []
