"""The passes of a model that are counted: forward, prefill and decode, a training step.

A request runs in shapes only, like the procedure `generate`. Imports torch: import only to count.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from accelbench.core.case import Shapes
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import Mode
from accelbench.models.build import skeleton
from accelbench.models.counting import Count, Counter, count_forward, count_training
from accelbench.models.inputs import enable_checkpointing, encoder_outputs, input_shapes, tensors
from accelbench.models.losses import loss_of_module

Tensors = dict[str, torch.Tensor]

#: Losses that need values (a matching, lengths on the host): their own few operations on
#: what the model puts out are not counted, the passes through the model are. Each names
#: the outputs that the gradient comes from.
_NEED_VALUES = {"detection": ("logits", "pred_boxes"), "ctc": ("logits",)}


def inputs_on_meta(spec: ModelSpec, shapes: Shapes, half: bool, mode: str) -> Tensors:
    """Return the inputs of a pass, in shapes only."""
    types = {
        "float": torch.bfloat16 if half else torch.float32,
        "float32": torch.float32,
        "int64": torch.int64,
        "bool": torch.bool,
    }
    sizes = input_shapes(spec, shapes, mode)
    fed = {}
    for tensor in tensors(spec, shapes, mode):
        shape, dtype = sizes[tensor.name], types[tensor.dtype]
        if tensor.row is not None and not dtype.is_floating_point:
            # Sizes that a model reads to know what to do: of them the values count.
            fed[tensor.name] = torch.tensor(tensor.row, dtype=dtype).expand(shape).clone()
        else:
            fed[tensor.name] = torch.empty(shape, dtype=dtype, device="meta")
    return fed


class Passes:
    """A model in shapes only, ready to be counted at any sizes; `half` weights have 16 bits."""

    def __init__(
        self, spec: ModelSpec, half: bool = False, counter_class: type[Counter] = Counter
    ) -> None:
        self._spec = spec
        self._half = half
        self._counter_class = counter_class
        module = skeleton(spec)
        self.module = module.bfloat16() if half else module

    def stored_bytes(self) -> int:
        own = {id(t): t for t in (*self.module.parameters(), *self.module.buffers())}
        return sum(tensor.nbytes for tensor in own.values())

    def forward(self, shapes: Shapes) -> Count:
        return count_forward(self.module, self._fed(shapes), self._counter_class)

    def _fed(self, shapes: Shapes, mode: str = Mode.INFERENCE) -> Tensors:
        return inputs_on_meta(self._spec, shapes, self._half, mode)

    def request(self, shapes: Shapes, steps: int) -> list[Count]:
        """Count the prefill of a request, and its first decode steps one by one."""
        fed = self._fed(shapes)
        request = _Request(self._spec, self.module, fed)
        counter = self._counter_class(self.module, fed.values())
        with torch.no_grad():
            with counter.counting():
                request.prefill()
            counts = [counter.count]
            for _ in range(steps):
                counter.begin(request.next_inputs().values())
                with counter.counting():
                    request.decode()
                counts.append(counter.count)
        return counts


class TrainingPasses(Passes):
    """A model with its training head, in training mode; dropout is done."""

    def __init__(self, spec: ModelSpec, half: bool = False, checkpointed: bool = False) -> None:
        super().__init__(spec.training_variant, half)
        self._untrained = spec
        self.module.train()
        assert spec.training is not None
        self._training = spec.training
        if checkpointed:
            enable_checkpointing(self.module)

    def trained_weights(self) -> tuple[int, int]:
        """Return the number of weights that learn, and of the largest tensor of them."""
        sizes = [p.numel() for p in self.module.parameters() if p.requires_grad]
        return sum(sizes), max(sizes)

    def step(self, shapes: Shapes) -> Count:
        return self.step_counted(shapes, Counter).count

    def step_counted(self, shapes: Shapes, counter_class: type[Counter]) -> Counter:
        fed = inputs_on_meta(self._untrained, shapes, self._half, Mode.TRAINING)
        labels = {label.name: fed[label.name] for label in self._training.labels}
        inputs = {name: t for name, t in fed.items() if name not in labels}

        def loss(outputs: Any) -> torch.Tensor:
            wanted = _NEED_VALUES.get(self._training.loss)
            if wanted is None:
                return loss_of_module(self._training.loss, self.module)(outputs, fed)
            return sum(
                (outputs[name].sum() for name in wanted), start=torch.zeros((), device="meta")
            )

        with _one_draw():
            return count_training(self.module, inputs, labels, loss, counter_class)


@contextmanager
def _one_draw() -> Iterator[None]:
    """Fix the layers that a model drops by chance, at every size."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


class _Request:
    """What lasts from one token to the next, in shapes only."""

    def __init__(self, spec: ModelSpec, module: torch.nn.Module, inputs: Tensors) -> None:
        self._module = module
        self._inputs = inputs
        makes = spec.generation
        assert makes is not None
        self._retrieves = spec.procedure == "rag"
        self._encodes = makes.kind == "encoder-decoder"
        self._ids = "decoder_input_ids" if self._encodes else "input_ids"
        self._mask = "decoder_attention_mask" if self._encodes else "attention_mask"
        self._carried: dict[str, Any] = {}
        self._read = 0

    def prefill(self) -> None:
        if self._retrieves:
            rag: Any = self._module
            hits = rag.retrieve(rag.embed(**self._inputs))
            self._inputs = rag.prompt(hits, **self._inputs)
            self._module = rag.generator
        keeps_few = "logits_to_keep" in inspect.signature(self._module.forward).parameters
        extra = {"logits_to_keep": 1} if keeps_few else {}
        output = self._module(**self._inputs, **extra, use_cache=True)
        name = "cache_params" if hasattr(output, "cache_params") else "past_key_values"
        self._carried = {name: getattr(output, name), "use_cache": True}
        self._state = name == "cache_params"
        self._read = int(self._inputs[self._ids].shape[1])
        if self._encodes:
            self._carried |= encoder_outputs(output, self._inputs)
        self._logits = output.logits[:, -1].argmax(-1)

    def next_inputs(self) -> Mapping[str, torch.Tensor]:
        batch = self._inputs[self._ids].shape[0]
        self._read += 1
        kind = {"dtype": torch.int64, "device": "meta"}
        self._next = {self._ids: torch.empty((batch, 1), **kind)}
        if self._mask in self._inputs and not self._state:
            self._next[self._mask] = torch.empty((batch, self._read), **kind)
        return self._next

    def decode(self) -> None:
        output = self._module(**self._next, **self._carried)
        self._logits = output.logits[:, -1].argmax(-1)
