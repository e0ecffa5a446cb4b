"""What fits: by estimate before anything is allocated, and by what the group has met so far."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from accelbench.core.case import Case
from accelbench.core.outcome import Outcome
from accelbench.core.vocabulary import Status
from accelbench.run.plan.request import Planned
from accelbench.run.process.memory_options import options_that_fit
from accelbench.run.process.weight_offload import spill_to
from accelbench.run.process.worker_context import WorkerContext

#: A reason that others look for.
ESTIMATED = "out_of_memory_estimated"


class MemoryGuard:
    """The memory that one group of cases has, and what became of those before."""

    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self._free: int | None = None  # bytes free when no worker of ours held any
        self._fitted: int | None = None  # largest batch that was measured
        self._too_large: int | None = None  # smallest batch that ran out of memory

    def look(self, planned: Planned) -> None:
        """See what is free, while nothing is loaded: the estimate counts the weights as well."""
        if planned.device is not None:
            self._free = self._context.free(planned.device)
            if self._free is not None and planned.device.hardware == "cpu":
                # Processes of one host share its memory, and the estimate is of one of them.
                self._free //= max(1, planned.case.world_size // self._context.settings.job.nodes)
        elif planned.roofline is not None:  # not here: all of it is free
            self._free = planned.roofline.memory_bytes

    def fitted(self, planned: Planned) -> None:
        """This one was measured."""
        self._fitted = planned.case.shapes.batch

    def ran_out(self, planned: Planned) -> None:
        """This one was tried, and there was not enough."""
        self._too_large = self._too_large or planned.case.shapes.batch

    def refused(self, planned: Planned) -> Outcome | None:
        """What cannot be there is not allocated."""
        if self._too_large is not None and planned.case.shapes.batch > self._too_large:
            return Outcome(
                Status.SKIPPED,
                "smaller_batch_out_of_memory",
                f"batch {self._too_large} ran out of memory, so this larger one was not tried",
                self.advice(planned),
            )
        need = self._too_much(planned)
        if need is None or self._free is None or self.spill(planned, files=1) is not None:
            return None
        return Outcome(
            Status.OUT_OF_MEMORY,
            ESTIMATED,
            f"an estimated {_gib(need)} is needed and {_gib(self._free)} is free;"
            " nothing was allocated",
        )

    def spill(self, planned: Planned, files: int) -> Path | None:
        """Where weights that memory does not hold are kept, if nothing is to be timed.

        `files` is how often the runtime writes them there; one that maps an artefact does not.
        """
        settings, case = self._context.settings, planned.case
        runtime = self._context.runtimes.get(case.target.runtime)
        if settings.verify != "only" or runtime is None or not runtime.info.spills:
            return None
        need = self._too_much(planned)
        if need is None or case.precision != "fp32":
            return None
        return spill_to(
            case, case.model.weights_from(settings.job.weights), need, self._free, files
        )

    def _too_much(self, planned: Planned) -> int | None:
        """What a case needs by estimate, where that is more than is free."""
        need = self._context.estimate(planned.case)
        if need is None or self._free is None or need <= self._free:
            return None
        return need

    def advice(self, planned: Planned, estimate: bool = True) -> str:
        """Return a batch that fits, options that fit, and the small variant."""
        case = planned.case
        parts = []
        if self._fitted is not None:
            parts.append(f"The largest batch that fitted is {self._fitted}.")
        elif estimate:
            fits = self._fitting_batch(planned)
            if fits is not None:
                parts.append(f"By estimate batch {fits} fits.")
        if options := self._options(planned):
            parts.append(f"By estimate it fits with {' or with '.join(options)}.")
        if case.model.small_variant:
            parts.append(f"A smaller model of this kind is {case.model.small_variant}.")
        elif not parts:
            parts.append("Use a smaller batch, a shorter sequence or a narrower precision.")
        return " ".join(parts)

    def _options(self, planned: Planned) -> list[str]:
        """Return options that make a case fit by estimate."""
        free, device = self._free, planned.device
        runtime = self._context.runtimes.get(planned.case.target.runtime)
        if free is None or runtime is None or device is None:
            return []

        def fits(case: Case) -> bool:
            need = self._context.estimate(case)
            return need is not None and need <= free

        return options_that_fit(planned.case, fits, lambda case: runtime.supports(case, device).ok)

    def _fitting_batch(self, planned: Planned) -> int | None:
        """Return the first half, quarter … of the batch that fits by estimate, or None.

        It is not the largest one: that would leave nothing free for what the estimate misses.
        """
        batch = planned.case.shapes.batch
        while self._free is not None and batch > 1:
            batch //= 2
            case = replace(planned.case, shapes=replace(planned.case.shapes, batch=batch))
            need = self._context.estimate(case)
            if need is None:
                return None
            if need <= self._free:
                return batch
        return None


def _gib(value: float) -> str:
    return f"{value / 2**30:.1f} GiB"
