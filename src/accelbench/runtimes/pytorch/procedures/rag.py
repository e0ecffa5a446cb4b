"""A question answered: embedded, its passages found, an answer generated.

|start  embed|retrieve|generate: prefill  token 1|…|token n|
|<-------- time to first token ----------------->|
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import torch

from accelbench.catalog.short_steps import SHORT_TOKENS
from accelbench.core.case import Case
from accelbench.runtimes.pytorch.procedures.base import Inputs, Opened
from accelbench.runtimes.pytorch.procedures.generate import (
    GeneratedAnswer,
    Request,
    TokenStamps,
    decode_logits,
    some,
    wanted,
    write,
)
from accelbench.runtimes.shared.local import Mark

if TYPE_CHECKING:
    from accelbench.catalog.networks.rag import Rag


class RagAnswer:
    """A request of a batch of questions."""

    phases: tuple[str, ...] = ("embed", "retrieve", "generate")

    def __init__(self, case: Case, opened: Opened) -> None:
        self._makes, self._new_tokens = wanted(case)
        self._opened = opened
        self._network = cast("Rag", opened.module)
        self._stamps = TokenStamps(opened)

    @contextmanager
    def around(self) -> Iterator[None]:
        self._stamps.forget()
        with torch.inference_mode(), self._opened.autocast():
            yield

    def _reader(self, read: Inputs, new_tokens: int) -> Request:
        return Request(self._network.generator, self._makes.kind, read, new_tokens)

    def step(self, inputs: Inputs) -> GeneratedAnswer:
        hits = self._network.retrieve(self._network.embed(**inputs))
        request = self._reader(self._network.prompt(hits, **inputs), self._new_tokens)
        logits = some(request.prefill())
        decoded = write(request)
        return GeneratedAnswer(request.tokens, logits, decoded)

    def split(self, inputs: Inputs, mark: Mark) -> torch.Tensor:
        self._stamps.start()
        embedding = self._network.embed(**inputs)
        mark("embed")
        hits = self._network.retrieve(embedding)
        mark("retrieve")
        request = self._reader(self._network.prompt(hits, **inputs), self._new_tokens)
        request.prefill()
        self._stamps.token()
        write(request, self._stamps.token)
        mark("generate")
        return request.tokens

    def outputs(self, inputs: Inputs) -> Mapping[str, torch.Tensor]:
        hits = self._network.retrieve(self._network.embed(**inputs))
        read = self._network.prompt(hits, **inputs)
        request = self._reader(read, min(self._new_tokens, SHORT_TOKENS))
        logits = request.prefill()
        decoded = decode_logits(write(request))
        return {"scores": hits.scores, "logits": logits, "tokens": request.tokens, **decoded}

    def named(self, left: GeneratedAnswer) -> Mapping[str, torch.Tensor]:
        return left.named()

    def drain(self) -> Mapping[str, Any]:
        return self._stamps.drained()
