"""A generating session that may cheat in its timed requests, and the result of measuring it.

Time is virtual: each pass of the model advances it, by the tokens that the pass reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch
from lying import WORLD, Lie, measured, opened
from torch import nn

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError
from accelbench.core.model import Generation, InputSpec, ModelSpec
from accelbench.core.vocabulary import Architecture, Family
from accelbench.engines.pytorch.procedures.generate import (
    Generate,
    GeneratedAnswer,
    Request,
    some,
    write,
)
from accelbench.models.short_steps import SHORT_TOKENS

BATCH, PROMPT = 2, 32
#: A pass reads its weights, and computes a little for each token.
PASS_NS, TOKEN_NS = 400_000, 10_000
WORDS = 97


class Writer(nn.Module):
    """A recurrent network whose state is its cache."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 16)
        self.mix, self.head = nn.Linear(16, 16), nn.Linear(16, WORDS)

    def forward(
        self,
        input_ids: torch.Tensor,
        past_key_values: torch.Tensor | None = None,
        use_cache: bool = True,
    ) -> Any:
        tokens = input_ids.shape[1]
        WORLD.clock.advance(PASS_NS + tokens * len(input_ids) * TOKEN_NS)
        state = input_ids.new_zeros((len(input_ids), 16)).float()
        state = state if past_key_values is None else past_key_values
        for place in range(tokens):
            state = torch.tanh(self.mix(state) + self.words(input_ids[:, place]))
        return SimpleNamespace(logits=self.head(state)[:, None], past_key_values=state)


INPUT = InputSpec("input_ids", ("batch", "sequence"), "int64", 0, WORDS)
MODEL = ModelSpec(
    id="writer", family=Family.TEXT_GENERATION, architecture=Architecture.DECODER_ONLY,
    modalities=("text",), task="test", size="tiny", builder=f"{__name__}:Writer",
    parameters=3473, inputs=(INPUT,), config={},
    generation=Generation((INPUT,), PROMPT, 4),
)  # fmt: skip


def case_of(new_tokens: int) -> Case:
    shapes = Shapes(BATCH, prompt_tokens=PROMPT, new_tokens=new_tokens)
    return Case(MODEL, Target("liar", "cpu"), "fp32", shapes)


class Denoiser(nn.Module):
    """One pass of a denoiser."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(16, 16)

    def forward(self, sample: torch.Tensor, timestep: torch.Tensor) -> Any:
        WORLD.clock.advance(len(sample) * PASS_NS)
        times = (timestep / 1000).reshape(-1, 1)
        return SimpleNamespace(sample=torch.tanh(self.mix(sample) + times))


DENOISER = ModelSpec(
    id="denoiser", family=Family.VISION, architecture=Architecture.DIFFUSION,
    modalities=("vision",), task="test", size="tiny", builder=f"{__name__}:Denoiser",
    parameters=272, config={}, procedure="denoise", steps=2,
    inputs=(InputSpec("sample", ("batch", 16)), InputSpec("timestep", ("batch",), "int64", 0, 999)),
)  # fmt: skip


def images_of(steps: int) -> Case:
    return Case(DENOISER, Target("liar", "cpu"), "fp32", Shapes(BATCH, steps=steps))


def result_of(lie: Lie, case: Case, iterations: int = 30) -> dict[str, Any]:
    """Return the columns of a measured request, with the reason if it failed."""
    WORLD.__init__()
    try:
        found = measured(opened("pytorch", lie, case=case)[0], iterations, case)
    except CaseError as error:
        return {"reason": error.reason, "message": error.message}
    nulls = {"null_reasons": found["null_reasons"], "warnings": found["warnings"]}
    return {"reason": "ok", **found["metrics"], **nulls}


def procedure_of(honest: Any) -> Generate:
    """Return the procedure whose step an honest session takes."""
    found: Generate = honest.__self__
    return found


def truncated(most: int, filled: bool = True) -> Lie:
    """Requests decode fewer tokens than they are for; the rest is copied, or missing."""

    def step(honest: Any, inputs: Mapping[str, Any]) -> GeneratedAnswer:
        procedure = procedure_of(honest)
        new = procedure._new_tokens
        request = Request(procedure._opened.module, "decoder", inputs, min(new, most))
        logits = some(request.prefill())
        decoded = write(request)
        tokens = request.tokens
        if filled and new > most:
            tokens = torch.cat([tokens, tokens[:, -1:].repeat(1, new - most)], 1)
            known = logits[:, None] if decoded is None else decoded
            missing = max(0, min(new, SHORT_TOKENS) - 1 - known.shape[1])
            decoded = torch.cat([known, known[:, -1:].repeat(1, missing, 1)], 1)
        return GeneratedAnswer(tokens, logits, decoded)

    return Lie(step=step)
