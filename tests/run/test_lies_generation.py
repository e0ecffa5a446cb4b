"""Requests and images that leave out tokens, passes or the prompt; none is ok."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lies import by_chance_left_out, left_out, thinned
from lying import WORLD, Lie
from lying_generation import case_of, images_of, result_of, truncated

from accelbench.core.vocabulary import Timing
from accelbench.engines.pytorch.procedures import generate
from accelbench.engines.pytorch.procedures.generate import Request
from accelbench.engines.shared.sketches import DECODE_LOGITS
from accelbench.run.verify.agreement import Batches, agree, pick

LONG = 12


def thinned_requests(share):
    """A part of the requests of a block are done; the pass that times phases is honest."""
    few = thinned(share)

    def sample(honest, inputs, n, timing):
        is_split = timing is Timing.PHASES
        return honest(inputs, n, timing) if is_split else few(honest, inputs, n, timing)

    return Lie(sample=sample)


def few_passes(most):
    """Images are denoised by fewer passes than they are for."""

    def step(honest, inputs):
        procedure = honest.__self__
        return procedure._denoised(inputs, min(most, len(procedure._times)))

    return Lie(step=step)


@pytest.mark.parametrize("new_tokens", [1, 2, 4, LONG])
def test_an_honest_request_is_measured(new_tokens):
    found = result_of(Lie(), case_of(new_tokens))
    assert (found["reason"], found.get("steps_verified")) == ("ok", "ok")


@pytest.mark.parametrize("steps", [1, 2, 8])
def test_an_honest_image_is_measured(steps):
    found = result_of(Lie(), images_of(steps))
    assert (found["reason"], found.get("steps_verified")) == ("ok", "ok")


@pytest.mark.parametrize("filled", [True, False])
@pytest.mark.parametrize(
    ("most", "new_tokens"), [(1, 2), (1, 4), (2, 4), (1, LONG), (2, LONG), (4, LONG), (8, LONG)]
)
def test_fewer_tokens_than_asked_for(most, new_tokens, filled):
    """An end-of-sequence token that is not switched off does this as well."""
    found = result_of(truncated(most, filled), case_of(new_tokens))
    assert found["reason"] in {"wrong_steps", "work_skipped"}


@pytest.mark.parametrize("most", [1, 2, 4])
def test_fewer_passes_than_asked_for(most):
    assert result_of(few_passes(most), images_of(8))["reason"] in {"wrong_steps", "work_skipped"}


@pytest.mark.parametrize(
    "lie",
    [
        lambda: thinned_requests(2),
        # Not sooner: of a step of 10 µs phases are timed ten thousand times, for 8 s.
        lambda: left_out(lambda number: number % 3 != 1, skipped_ns=400_000),
        lambda: by_chance_left_out(0.5, skipped_ns=400_000),
    ],
)
def test_long_requests_that_are_left_out(lie):
    assert result_of(lie(), case_of(LONG))["reason"] in {"cached", "work_skipped"}


class PrefixCache(Request):
    """The state after a prompt is kept for the next request with the same prompt."""

    kept: dict[bytes, Any] = {}  # noqa: RUF012 - by prompt

    def prefill(self):
        prompt = bytes(self._inputs[self._ids].numpy())
        if prompt not in self.kept:
            logits = super().prefill()
            self.kept[prompt] = dict(self._carried), logits
            return logits
        WORLD.clock.advance(10_000)
        carried, logits = self.kept[prompt]
        self._carried = dict(carried)
        self.tokens[:, 0] = logits.argmax(-1)
        self._written = 1
        return logits


@pytest.mark.parametrize("new_tokens", [2, LONG])
def test_prompts_that_are_read_once_only(new_tokens, monkeypatch):
    """Of a long request the prompt is a small part, and all of `ttft_ms`."""
    PrefixCache.kept.clear()
    monkeypatch.setattr(generate, "Request", PrefixCache)
    assert result_of(Lie(), case_of(new_tokens))["reason"] == "cached"


def outputs_of(tokens, logits):
    ids = np.asarray(tokens)
    first = np.arange(len(ids) * 8, dtype=np.float32).reshape(len(ids), 8)
    return {"logits": first, "tokens": ids, DECODE_LOGITS: np.asarray(logits, np.float32)}


def test_decoded_logits_are_compared_up_to_the_first_other_token():
    """A tie of two logits may be decided either way; a wrong cache shows in the next logits."""
    draw = np.random.default_rng(1)
    right, other = (draw.standard_normal((2, 3, 8)) for _ in range(2))
    tokens = [[5, 6, 7, 8], [1, 2, 3, 4]]
    batches = Batches((0, 1), (0, 1))

    def error(ids, logits):
        return agree(
            outputs_of(ids, logits),
            pick(outputs_of(tokens, right), 0),
            pick(outputs_of(tokens, other), 0),
            "fp32",
            batches=batches,
        ).errors[DECODE_LOGITS]

    tie, wrong = right.copy(), right.copy()
    tie[0, 1:] = other[0, 1:]
    wrong[1, 0] = other[1, 0]
    assert error(tokens, right) == 0
    assert error([[5, 9, 9, 9], tokens[1]], tie) == 0
    assert error([tokens[0], [1, 9, 9, 9]], wrong) > 0.1
