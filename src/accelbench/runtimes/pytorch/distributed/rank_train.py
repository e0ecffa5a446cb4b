"""One training step of several ranks: micro-batches here, gradients exchanged with the last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch.distributed.tensor import DTensor

from accelbench.core.case import Case
from accelbench.runtimes.pytorch.distributed.parallel import Parallel, here, restore, whole
from accelbench.runtimes.pytorch.procedures.base import Inputs, Opened
from accelbench.runtimes.pytorch.procedures.chance import chances_kept, seed_all
from accelbench.runtimes.pytorch.procedures.train import Train, unmarked
from accelbench.runtimes.shared.local import Mark


class RankTrain(Train):
    """What a rank does of a step."""

    def __init__(self, case: Case, opened: Opened, shared: Parallel, part: int) -> None:
        """Nothing is stepped yet.

        Args:
            case: what is trained, by all ranks together.
            opened: the model as this rank has it.
            shared: how it is shared.
            part: which part of the batch is this rank's.
        """
        self._shared = shared
        self._part = part
        self._micro_batches = int(case.options.get("accumulate", 1))
        super().__init__(case, opened)

    def _restore(self, weights: Mapping[str, torch.Tensor]) -> None:
        restore(self._module, weights)

    def _groups(self) -> list[list[torch.nn.Parameter]]:
        # A step of many tensors at once takes none that are split beside some that are not.
        split = [w for w in self._weights if isinstance(w, DTensor)]
        plain = [w for w in self._weights if not isinstance(w, DTensor)]
        return [group for group in (split, plain) if group]

    def _seed(self) -> None:
        # Parts of a batch drop out other values; ranks that have the same batch the same ones.
        seed_all(self._opened.job.settings.seed + self._part)

    def _gradients(self, inputs: Inputs, mark: Mark) -> None:
        count, total = self._micro_batches, None
        for number in range(count):
            with self._shared.syncing(number == count - 1):
                loss = self._loss_of(self._micro_batch(inputs, number), mark) / count
                total = loss.detach() if total is None else total + loss.detach()
                mark("loss")
                self._scaler.scale(loss).backward()
                mark("backward")
        assert total is not None
        self._losses.append(total)

    def _micro_batch(self, inputs: Inputs, number: int) -> Inputs:
        if self._micro_batches == 1:
            return inputs
        rows = self._case.shapes.batch // self._shared.parts
        size = rows // self._micro_batches
        cut = slice(number * size, (number + 1) * size)
        return {n: t[cut] if t.dim() and len(t) == rows else t for n, t in inputs.items()}

    def _own(self, weight: torch.Tensor) -> torch.Tensor:
        return here(weight)

    def _forward_loss(self, inputs: Inputs) -> float:
        # Without gradients: ranks expect a backward pass to follow any other forward pass.
        buffers = [(b, b.clone()) for b in self._module.buffers()]
        count = self._micro_batches
        with torch.no_grad(), chances_kept(self._opened.place.device):
            parts = [self._loss_of(self._micro_batch(inputs, i), unmarked) for i in range(count)]
            for buffer, before in buffers:
                buffer.copy_(before)
        return sum(float(part) / count for part in parts)

    def gradients(self, inputs: Inputs) -> Iterator[tuple[str, torch.Tensor]]:
        """The whole gradient of each weight after one backward; nothing is stepped."""
        self._gradients(inputs, lambda _phase: None)
        self._losses.clear()
        for name, weight in self._module.named_parameters():
            if weight.grad is not None:
                yield name, whole(weight.grad)
        self._optimizer.zero_grad(set_to_none=True)
