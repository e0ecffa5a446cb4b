"""What a callable returned: whether its work is done, and what has to be waited for."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import Future
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from accelbench.core.errors import CaseError
from accelbench.runtimes.python.answers import refuse_unfinished, waiting

PENDING: Future[int] = Future()


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ({"tokens": (n for n in range(3))}, "an iterator (generator)"),
        ([1, map(str, [1])], "an iterator (map)"),
        (PENDING, "a future"),
        ([[PENDING]], "a future"),
        ((1, threading.Thread()), "a thread"),
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
