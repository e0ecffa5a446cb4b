"""One whole request: the prompt read once, then a step a token; or a question answered.

|start  prefill  token 1|token 2|token 3|…|token n|
|<---- time to first -->|<------- decode -------->|

|start  embed|retrieve|generate: prefill  token 1|…|token n|
|<-------- time to first token ----------------->|
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch

from accelbench.core.case import Case
from accelbench.core.errors import UnsupportedError
from accelbench.core.model import Generation
from accelbench.engines.pytorch.procedures.base import Inputs, Opened, Procedure
from accelbench.engines.shared.local import Mark
from accelbench.engines.shared.sketches import DECODE_LOGITS, KEPT_LOGITS
from accelbench.models.inputs import encoder_outputs
from accelbench.models.short_steps import SHORT_TOKENS

if TYPE_CHECKING:
    from accelbench.models.networks.rag import Rag


#: The names under which models of transformers keep what they have read: keys and
#: values of attention, or the state of a state-space model.
_CACHES = ("past_key_values", "cache_params")


class Request:
    """A request on its way: everything that lasts from one token to the next.

    Token ids stay on the device, nothing is read back, and the mask of the
    longest prompt there will be is made once: a token sees a view of it.
    Prompts are not padded, so positions follow from how much the cache holds.
    """

    def __init__(self, module: torch.nn.Module, kind: str, inputs: Inputs, new_tokens: int) -> None:
        self._module = module
        self._inputs = inputs
        self._encodes = kind == "encoder-decoder"
        self._ids = "decoder_input_ids" if self._encodes else "input_ids"
        prompt = inputs[self._ids]
        self.tokens = prompt.new_empty((prompt.shape[0], new_tokens))
        self._written = 0
        self._prompt_tokens = int(prompt.shape[1])
        self._mask_name = "decoder_attention_mask" if self._encodes else "attention_mask"
        self._mask = self._longest_mask(inputs.get(self._mask_name), new_tokens)
        self._carried: dict[str, Any] = {}

    def _longest_mask(self, mask: torch.Tensor | None, new_tokens: int) -> torch.Tensor | None:
        if mask is None:
            return None
        longest = mask.new_ones((mask.shape[0], self._prompt_tokens + new_tokens))
        longest[:, : self._prompt_tokens] = mask
        return longest

    def prefill(self) -> torch.Tensor:
        """Read the prompt, write the first token; return the logits that it was chosen by.

        An encoder reads its input here, once, and only here are image and sound looked at.
        Only the last position's logits are asked for: with 128 prompt tokens and GPT-2's
        vocabulary all of them would be 26 MB a row that nobody reads. Decoders beside an
        encoder cannot be asked; their prompts have a few tokens.
        """
        keeps_few = "logits_to_keep" in inspect.signature(self._module.forward).parameters
        extra = {"logits_to_keep": 1} if keeps_few else {}
        output = self._module(**self._inputs, **extra, use_cache=True)
        name = next((n for n in _CACHES if getattr(output, n, None) is not None), None)
        if name is None:
            raise UnsupportedError(
                "no_cache",
                f"{type(self._module).__name__} keeps nothing between tokens, so it cannot"
                " generate token by token.",
                "Measure a forward pass: --new-tokens 0.",
            )
        self._carried = {name: getattr(output, name), "use_cache": True}
        if name != "past_key_values":
            self._mask = None  # a state has swallowed what was masked
        if self._encodes:
            self._carried |= encoder_outputs(output, self._inputs)
        return self._choose(output)

    def decode(self) -> torch.Tensor:
        fed = {self._ids: self.tokens[:, self._written - 1 : self._written]}
        if self._mask is not None:
            fed[self._mask_name] = self._mask[:, : self._prompt_tokens + self._written]
        return self._choose(self._module(**fed, **self._carried))

    def _choose(self, output: Any) -> torch.Tensor:
        logits: torch.Tensor = output.logits[:, -1]
        self.tokens[:, self._written] = logits.argmax(-1)
        self._written += 1
        return logits


@dataclass(frozen=True)
class GeneratedAnswer:
    """What is left of a request."""

    tokens: torch.Tensor
    logits: torch.Tensor  # some of those that the first token was chosen by
    decoded: torch.Tensor | None  # the same of the next tokens

    def named(self) -> dict[str, torch.Tensor]:
        return {"tokens": self.tokens, "logits": self.logits, **decode_logits(self.decoded)}


def decode_logits(decoded: torch.Tensor | None) -> dict[str, torch.Tensor]:
    """Return the logits of decoded tokens under their name, if there are any."""
    return {} if decoded is None else {DECODE_LOGITS: decoded}


def some(logits: torch.Tensor) -> torch.Tensor:
    """Return a few logits of each item: all of them, kept for a whole request, would be memory."""
    return logits[:, :KEPT_LOGITS].clone()


class TokenStamps:
    """Time stamps of each token of each request, counted from the request's start."""

    def __init__(self, opened: Opened) -> None:
        self._now = opened.clock.now_ns
        self._synchronize = opened.place.synchronize
        self._requests: list[list[int]] = []
        self._start = 0

    def start(self) -> None:
        """Begin a request; the device is idle."""
        self._start = self._now()
        self._requests.append([])

    def token(self) -> None:
        if self._synchronize is not None:
            self._synchronize()
        self._requests[-1].append(self._now() - self._start)

    def forget(self) -> None:
        """Begin a block: nothing of one that failed may be in it."""
        self._requests = []

    def drained(self) -> Mapping[str, Any]:
        requests, self._requests = self._requests, []
        return {"token_ns": requests} if requests else {}


def wanted(case: Case) -> tuple[Generation, int]:
    """Return how the case's model generates, and how many tokens a request is for."""
    makes, new = case.model.generation, case.shapes.new_tokens
    if makes is None or not new:
        raise UnsupportedError(
            "no_generation", f"{case.model.id} does not generate text.", "Leave out --new-tokens."
        )
    return makes, new


def write(request: Request, seen: Callable[[], None] = lambda: None) -> torch.Tensor | None:
    """Decode every token after the first, calling `seen` after each; return some logits."""
    kept = []
    for number in range(1, request.tokens.shape[1]):
        logits = request.decode()
        if number < SHORT_TOKENS:
            kept.append(some(logits))
        seen()
    return torch.stack(kept, 1) if kept else None


class Generate(Procedure):
    """A request of a batch: prefill, then decode.

    The loop is our own, greedy and of a fixed number of tokens: the end-of-sequence token ends
    nothing, so that every request does the same work. Against transformers' generate() it leaves
    out logits processors, stopping criteria and the copies they need. A test holds that both write
    the same tokens.
    """

    def __init__(self, case: Case, opened: Opened) -> None:
        super().__init__(case, opened)
        makes, self._new_tokens = wanted(case)
        self._kind = makes.kind
        self._stamps = TokenStamps(opened)
        self.phases = ("prefill", "decode")[: self._new_tokens]

    @contextmanager
    def around(self) -> Iterator[None]:
        self._stamps.forget()
        with super().around():
            yield

    def _request(self, inputs: Inputs, new_tokens: int) -> Request:
        return Request(self._opened.module, self._kind, inputs, new_tokens)

    def step(self, inputs: Inputs) -> GeneratedAnswer:
        request = self._request(inputs, self._new_tokens)
        logits = some(request.prefill())
        decoded = write(request)
        return GeneratedAnswer(request.tokens, logits, decoded)

    def split(self, inputs: Inputs, mark: Mark) -> torch.Tensor:
        self._stamps.start()
        request = self._request(inputs, self._new_tokens)
        request.prefill()
        self._stamps.token()
        mark("prefill")
        write(request, self._stamps.token)
        if self._new_tokens > 1:
            mark("decode")
        return request.tokens

    def outputs(self, inputs: Inputs) -> Mapping[str, torch.Tensor]:
        few = min(self._new_tokens, SHORT_TOKENS)
        request = self._request(inputs, few)
        logits = request.prefill()
        decoded = write(request)
        return {"logits": logits, "tokens": request.tokens, **decode_logits(decoded)}

    def named(self, left: GeneratedAnswer) -> Mapping[str, torch.Tensor]:
        return left.named()

    def drain(self) -> Mapping[str, Any]:
        return self._stamps.drained()


class RagAnswer(Generate):
    """A request of a batch of questions."""

    def __init__(self, case: Case, opened: Opened) -> None:
        super().__init__(case, opened)
        self.phases = ("embed", "retrieve", "generate")
        self._network = cast("Rag", opened.module)

    def _reader(self, read: Inputs, new_tokens: int) -> Request:
        return Request(self._network.generator, self._kind, read, new_tokens)

    def _request(self, inputs: Inputs, new_tokens: int) -> Request:
        hits = self._network.retrieve(self._network.embed(**inputs))
        return self._reader(self._network.prompt(hits, **inputs), new_tokens)

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
