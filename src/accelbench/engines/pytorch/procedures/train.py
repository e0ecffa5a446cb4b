"""One training step: forward, loss, backward, optimizer.

A procedure is a fresh start — the initial weights, a new optimizer, the seed set
anew — so step k of every launch of one seed on one device begins from the same
bits. The host waits for the device nowhere: losses stay on it until they are
drained. Two things make it wait all the same, as in every training loop: fp16's
loss scaler, which must know whether a gradient overflowed before it lets the
optimizer step, and losses that need the host (`catalog.losses` says which).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import numpy as np
import torch

from accelbench.core.abilities import StepPreview
from accelbench.core.case import Case
from accelbench.core.errors import UnsupportedError
from accelbench.engines.pytorch.procedures.base import (
    Inputs,
    Opened,
    Procedure,
    buffers_kept,
    chances_kept,
    seed_all,
)
from accelbench.engines.shared.local import Mark
from accelbench.engines.shared.sketches import drawn_places
from accelbench.models.inputs import enable_checkpointing, named_tensors
from accelbench.models.losses import loss_of_module

#: Constant, without warm-up or decay: what is measured is ten to a few thousand steps on
#: one batch. With these the loss of every small model of the catalogue falls in ten steps,
#: by both optimizers (tests hold it). AdamW's own default of 1e-3 is too much for large
#: models from random weights: BERT-base's loss was seen to rise from 0.6 to 5.
LEARNING_RATES = {"adamw": 1e-4, "sgd": 1e-2}

#: A contrastive loss compares logits that are scaled by 14 from the start, and so are its
#: gradients, which SGD takes as they are: at the rate above XCLIP's loss rises.
CONTRASTIVE_RATES = {**LEARNING_RATES, "sgd": 3e-4}

MOMENTUM = 0.9

#: Where fp16's loss scale begins to be tried, as torch's own scaler does.
LARGEST_SCALE = 2.0**16

#: Gradients grow in the first steps: the scale keeps this far below what just overflows.
SCALE_MARGIN = 4.0

#: Bytes of weights, moments and buffers up to which a step is undone: copying takes a second a GiB.
_MOST_COPIED = 2**28

#: Modules whose weights a training step has changed.
_trained: WeakSet[torch.nn.Module] = WeakSet()


class Train(Procedure):
    """A model in training mode with its loss and its optimizer."""

    phases = ("forward", "loss", "backward", "optimizer")

    def __init__(self, case: Case, opened: Opened) -> None:
        how = case.model.training
        assert how is not None  # the runtime's card has refused it otherwise
        super().__init__(case, opened)
        self._module = opened.module
        self._loss_name = how.loss
        self._loss = loss_of_module(how.loss, opened.module)
        self._labels = frozenset(label.name for label in how.labels)
        self._losses: list[torch.Tensor] = []
        if self._module in _trained:
            self._restore(opened.rebuild())
            _trained.discard(self._module)
        self._checkpointed = _checkpoint(case, self._module)
        self._module.train()
        self._weights = [p for p in self._module.parameters() if p.requires_grad]
        self._optimizer = _optimizer(case, how.loss, self._groups())
        self._optimizer.zero_grad(set_to_none=True)  # of a step that did not come to its end
        # What narrows its gradients to fp16 loses the small ones unless the loss is scaled up.
        # Pure half training is asked for to see what happens without.
        scaled = case.precision.endswith("fp16") and not case.options.get("pure")
        self._scale_from(LARGEST_SCALE, enabled=scaled)
        self._seed()

    def _restore(self, weights: Mapping[str, torch.Tensor]) -> None:
        self._module.load_state_dict(weights)

    def _groups(self) -> list[list[torch.nn.Parameter]]:
        # Weights of a group are stepped together by the optimizer.
        return [self._weights]

    def _seed(self) -> None:
        seed_all(self._opened.job.settings.seed)

    def _scale_from(self, scale: float, enabled: bool = True) -> None:
        # It never grows again: every try to would end in a step that overflows, does not
        # step, and would be timed as if it had.
        self._scaler = torch.amp.GradScaler(
            self._opened.place.device.type, scale, growth_interval=2**31 - 1, enabled=enabled
        )
        self._settled = scale

    def settle(self, inputs: Inputs) -> None:
        # A loss scale at which the gradients are finite, so that the first step steps; of the
        # module itself: what torch.compile makes of it is timed at the first step.
        if not self._scaler.is_enabled():
            return
        with buffers_kept(self._module), chances_kept(self._opened.place.device):
            scale = self._finite_scale(inputs)
        # Where there is none the scaler does what it can, and what it skips is counted.
        self._scale_from((scale or LARGEST_SCALE * SCALE_MARGIN) / SCALE_MARGIN)

    def _finite_scale(self, inputs: Inputs) -> float | None:
        scale = LARGEST_SCALE
        while scale >= 1:
            with self._opened.autocast():
                outputs = self._module(**self._fed(inputs))
            loss = self._loss(outputs, inputs)
            (loss * scale).backward()
            gradients = [p.grad for p in self._weights if p.grad is not None]
            finite = all(bool(torch.isfinite(g).all()) for g in gradients)
            self._optimizer.zero_grad(set_to_none=True)
            if finite:
                return scale
            if not torch.isfinite(loss):
                return None
            scale /= 2
        return None

    @contextmanager
    def around(self) -> Iterator[None]:
        # Autocast is entered anew by every step, whose weights are others: what it has narrowed it
        # keeps until it is left.
        yield

    def step(self, inputs: Inputs) -> Any:
        return self.split(inputs, unmarked)

    def split(self, inputs: Inputs, mark: Mark) -> Any:
        self._gradients(inputs, mark)
        _trained.add(self._module)
        self._scaler.step(self._optimizer)
        self._scaler.update()
        # Freed here and not before the next step: between steps nothing but the weights
        # and the optimizer's own state is left.
        self._optimizer.zero_grad(set_to_none=True)
        mark("optimizer")

    def _gradients(self, inputs: Inputs, mark: Mark) -> None:
        loss = self._loss_of(inputs, mark)
        self._losses.append(loss.detach())
        mark("loss")
        self._scaler.scale(loss).backward()
        mark("backward")

    def _loss_of(self, inputs: Inputs, mark: Mark) -> torch.Tensor:
        with self._opened.autocast():
            outputs = self._opened.run(**self._fed(inputs))
        mark("forward")
        return self._loss(outputs, inputs)

    def _fed(self, inputs: Inputs) -> dict[str, torch.Tensor]:
        return {name: t for name, t in inputs.items() if name not in self._labels}

    def outputs(self, inputs: Inputs) -> Mapping[str, torch.Tensor]:
        # In evaluation mode, as the weights are now; of the module itself: what torch.compile made
        # of it would be compiled once more.
        with torch.no_grad(), chances_kept(self._opened.place.device), self._opened.autocast():
            self._module.eval()
            try:
                return named_tensors(self._module(**self._fed(inputs)))
            finally:
                self._module.train()

    def named(self, left: Any) -> Mapping[str, torch.Tensor]:
        return {}  # a step leaves other weights; its loss is told apart

    def weight_values(self, most: int, draw: int) -> Mapping[str, Any]:
        weights = {n: self._own(p) for n, p in self._module.named_parameters() if p.requires_grad}
        picks: dict[int, torch.Tensor] = {}  # by the size of a weight
        parts = []
        with torch.no_grad():
            for weight in weights.values():
                size = weight.numel()
                if size not in picks:
                    where = torch.from_numpy(drawn_places(size, most, draw))
                    picks[size] = where.to(weight.device)
                parts.append(weight.detach().reshape(-1)[picks[size]].float())
            values = torch.cat(parts).cpu().numpy() if parts else np.zeros(0, np.float32)
        ends = np.cumsum([len(part) for part in parts])[:-1]
        return dict(zip(weights, np.split(values, ends), strict=True)) if parts else {}

    def _own(self, weight: torch.Tensor) -> torch.Tensor:
        return weight

    def preview_step(self, inputs: Inputs, most: int, draw: int) -> StepPreview:
        """Take the next step, read what it leaves, and undo it; of large models its loss alone."""
        state = self._written()
        if sum(tensor.nbytes for tensor in state) > _MOST_COPIED:
            return StepPreview(self._forward_loss(inputs))
        with torch.no_grad():
            kept = [tensor.clone() for tensor in state]
        scale, moments = self._scaler.state_dict(), self._optimizer.state
        known = {id(weight) for weight, own in moments.items() if _tensors(own)}
        with chances_kept(self._opened.place.device):
            self.split(inputs, unmarked)
        loss, values = float(self._losses.pop()), self.weight_values(most, draw)
        if scale:
            self._scaler.load_state_dict(scale)
        with torch.no_grad():
            for tensor, before in zip(state, kept, strict=True):
                tensor.copy_(before)
        for weight in [weight for weight in moments if id(weight) not in known]:
            del moments[weight]  # it had none before its first step
        return StepPreview(loss, values)

    def _written(self) -> list[torch.Tensor]:
        moments = [tensor for own in self._optimizer.state.values() for tensor in _tensors(own)]
        return [*(w.detach() for w in self._weights), *self._module.buffers(), *moments]

    def _forward_loss(self, inputs: Inputs) -> float:
        """Return the loss of the next step by its forward pass, and undo what that changes."""
        # With gradients on: without them a compiled module would be compiled once more.
        with buffers_kept(self._module), chances_kept(self._opened.place.device):
            return float(self._loss_of(inputs, unmarked).detach())

    def drain(self) -> Mapping[str, Any]:
        losses, self._losses = self._losses, []
        return {"losses": torch.stack(losses).float().tolist() if losses else ()}

    def facts(self) -> dict[str, Any]:
        group = self._optimizer.param_groups[0]
        scaler = self._scaler
        return {
            "training": {
                "loss": self._loss_name,
                "optimizer": type(self._optimizer).__name__,
                "learning_rate": group["lr"],
                "optimizer_kernels": _kernels(self._weights),
                "loss_scale": scaler.get_scale() if scaler.is_enabled() else None,
                "skipped_steps": self._skipped() if scaler.is_enabled() else None,
                "checkpointed_modules": self._checkpointed,
                "trained_parameters": sum(p.numel() for p in self._weights),
            }
        }

    def _skipped(self) -> int:
        # Each step that overflows halves the scale, and nothing else changes it.
        return round(math.log2(self._settled / self._scaler.get_scale()))


def _tensors(state: Mapping[str, Any]) -> list[torch.Tensor]:
    return [value for value in state.values() if isinstance(value, torch.Tensor)]


def unmarked(_phase: str) -> None:
    """Mark no phase of a step."""


def _optimizer(
    case: Case, loss: str, groups: list[list[torch.nn.Parameter]]
) -> torch.optim.Optimizer:
    # Of torch's own making, with its own choice between fused, foreach and plain kernels.
    name = str(case.options.get("optimizer", "adamw"))
    rate = (CONTRASTIVE_RATES if loss == "contrastive" else LEARNING_RATES)[name]
    weights = [{"params": group} for group in groups]
    if name == "sgd":
        return torch.optim.SGD(weights, lr=rate, momentum=MOMENTUM)
    return torch.optim.AdamW(weights, lr=rate)


def _kernels(weights: list[torch.nn.Parameter]) -> str:
    try:
        from torch.optim.optimizer import _default_to_fused_or_foreach as choose
    except ImportError:  # it is torch's own affair, and may move
        return "torch's default"
    fused, foreach = choose(weights, differentiable=False)
    return "fused" if fused else "foreach" if foreach else "plain"


def _checkpoint(case: Case, module: torch.nn.Module) -> int:
    """Have results recomputed in the backward pass if asked for; return in how many modules."""
    if not case.options.get("gradient_checkpointing"):
        return 0
    if not _checkpointed(module):  # once: each time adds a hook to the embeddings
        try:
            enable_checkpointing(module)
        except ValueError as error:
            raise _not_checkpointed(case) from error
    count = _checkpointed(module)
    if not count:
        raise _not_checkpointed(case)
    return count


def _checkpointed(module: torch.nn.Module) -> int:
    return sum(bool(getattr(m, "gradient_checkpointing", False)) for m in module.modules())


def _not_checkpointed(case: Case) -> UnsupportedError:
    return UnsupportedError(
        "gradient_checkpointing",
        f"{case.model.id} has no gradient checkpointing",
        "Leave out --gradient-checkpointing, or use a smaller batch.",
    )
