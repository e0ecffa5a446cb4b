"""Bare loops: a catalogue model in plain PyTorch in this process, as one would write it by hand."""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch

from accelbench.core.case import Shapes
from accelbench.core.vocabulary import Mode
from accelbench.models.build import build
from accelbench.models.find import find
from accelbench.models.inputs import make_inputs
from accelbench.models.losses import find_loss

LEARNING_RATE = 1e-4


def allow_tf32(allowed: bool) -> None:
    """Whether products and convolutions of fp32 may round to TF32."""
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


class BareLoop:
    """A model, one batch of inputs, and a step."""

    def __init__(self, model: str, batch: int, hardware: str, training: bool = False) -> None:
        spec = find(model)
        mode = Mode.TRAINING if training else Mode.INFERENCE
        self.hardware = hardware
        self.module = build(spec.training_variant if training else spec, 0).to(hardware)
        shapes = Shapes(batch, spec.sequence, spec.image)
        arrays = make_inputs(spec, shapes, 0, mode)
        self.inputs = {name: torch.from_numpy(array).to(hardware) for name, array in arrays.items()}
        self._how: Any = spec.training

    def wait(self) -> None:
        """Return when the device is done."""
        if self.hardware == "cuda":
            torch.cuda.synchronize()

    def forward(self, steps: int) -> float:
        """The median step in milliseconds."""
        times = []
        with torch.inference_mode():
            for _ in range(steps):
                start = time.perf_counter_ns()
                self.module(**self.inputs)
                self.wait()
                times.append(time.perf_counter_ns() - start)
        return statistics.median(times) / 1e6

    def train(self, steps: int) -> list[float]:
        """The losses of so many steps with AdamW."""
        loss_of = find_loss(self._how.loss)
        labels = {label.name for label in self._how.labels}
        fed = {name: tensor for name, tensor in self.inputs.items() if name not in labels}
        optimizer = torch.optim.AdamW(self.module.train().parameters(), lr=LEARNING_RATE)
        losses = []
        for _ in range(steps):
            loss = loss_of(self.module(**fed), self.inputs)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(loss.detach())
        return [float(loss) for loss in losses]


def peak_mb(run: Any) -> float:
    """The CUDA allocator's peak over a call, in MB of 2**20 bytes."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    run()
    torch.cuda.synchronize()
    return float(torch.cuda.max_memory_allocated()) / 2**20
