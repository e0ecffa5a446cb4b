"""Whether a case fits into memory: by estimate before it is tried, and by the group's earlier
cases.

References, exports and cases that are only verified may keep their weights on the disk: they have
to be right, not fast. What they compute with must still fit.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from accelbench.core.axes import AXES
from accelbench.core.case import Case
from accelbench.core.vocabulary import Mode, Outcome, Status
from accelbench.run.messages import SMALLER_BATCH_FAILED, TOO_LARGE
from accelbench.run.plan.request import Planned
from accelbench.run.process.worker_client import WorkerContext
from accelbench.store.files import default_folder

#: Drawn from a seed tensor by tensor; files of weights are read whole.
_DRAWN = "random"

#: Of the disk that is free, how much may be taken: others write to it too.
_SHARE = 0.9


def weights_bytes(case: Case) -> int:
    """Return the bytes of a model's weights in fp32."""
    return 4 * case.model.parameters


def spill_to(case: Case, weights: str, need: int, room: int | None, files: int = 1) -> Path | None:
    """Return a folder for the weights of a case that needs more memory than is free, or None.

    Only random `weights` can be on the disk, `files` times at once. `need` includes the weights.
    """
    if not _helps(case, weights, need, room):
        return None
    folder = default_folder()
    return folder if files * weights_bytes(case) <= _SHARE * _disk_free(folder) else None


def advice(case: Case, weights: str, need: int, room: int | None, files: int = 1) -> str:
    """Return what to do if only the disk was too full."""
    if not _helps(case, weights, need, room) or spill_to(case, weights, need, room, files):
        return ""
    wanted = files * weights_bytes(case) / _SHARE / 2**30
    return (
        f"With {wanted:.0f} GiB free on the disk of {default_folder()} its weights would be kept"
        " there; ACCELBENCH_CACHE names another."
    )


def _helps(case: Case, weights: str, need: int, room: int | None) -> bool:
    if room is None or weights != _DRAWN or case.mode is not Mode.INFERENCE:
        return False
    return need - weights_bytes(case) <= room


def _disk_free(folder: Path) -> int:
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


#: Tried in this order; the engine decides which of them it has.
_NARROWER = ("bf16", "fp16", "int8")
#: Sizes that may be halved without another model, and the least that is named.
_LENGTHS = {"prompt_tokens": 16, "sequence": 16}
#: More options than these do not help to choose.
_MOST = 2


def options_that_fit(
    case: Case, fits: Callable[[Case], bool], is_supported: Callable[[Case], bool]
) -> list[str]:
    """Return options of `accelbench run` each of which makes a case fit by estimate."""
    found = []
    for option, changed in _changed(case):
        if is_supported(changed) and fits(changed):
            found.append(option)
        if len(found) == _MOST:
            break
    return found


def _changed(case: Case) -> Iterator[tuple[str, Case]]:
    if case.precision == "fp32":
        for precision in _NARROWER:
            yield f"--precision {precision}", replace(case, precision=precision)
    if case.mode is Mode.TRAINING:
        options = dict(case.options)
        checkpointed = replace(case, options={**options, "gradient_checkpointing": True})
        yield "--gradient-checkpointing", checkpointed
        if "optimizer" not in options:
            yield "--optimizer sgd", replace(case, options={**options, "optimizer": "sgd"})
    for axis in AXES:
        least, length = _LENGTHS.get(axis.field), getattr(case.shapes, axis.field, None)
        while least and length and length // 2 >= least:
            length //= 2
            shapes = replace(case.shapes, **{axis.field: length})
            yield f"{axis.option} {length}", replace(case, shapes=shapes)


class MemoryGuard:
    """The memory that is free for one group of cases, and how its earlier cases ended."""

    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self._free: int | None = None  # bytes free when no worker of ours held any
        self._fitted: int | None = None  # largest batch that was measured
        self._too_large: int | None = None  # smallest batch that ran out of memory

    def look(self, planned: Planned) -> None:
        """Read the free memory while nothing is loaded: estimates include the weights."""
        if planned.device is not None:
            self._free = self._context.free(planned.device)
            if self._free is not None and planned.device.hardware == "cpu":
                # Processes of one host share its memory, and the estimate is of one of them.
                self._free //= max(1, planned.case.world_size // self._context.settings.nodes)
        elif planned.roofline is not None:  # not here: all of it is free
            self._free = planned.roofline.memory_bytes

    def fitted(self, planned: Planned) -> None:
        self._fitted = planned.case.shapes.batch

    def ran_out(self, planned: Planned) -> None:
        self._too_large = self._too_large or planned.case.shapes.batch

    def refused(self, planned: Planned) -> Outcome | None:
        if self._too_large is not None and planned.case.shapes.batch > self._too_large:
            return replace(
                SMALLER_BATCH_FAILED.outcome(Status.SKIPPED, batch=self._too_large),
                advice=self.advice(planned),
            )
        need = self._too_much(planned)
        if need is None or self._free is None or self.spill(planned, files=1) is not None:
            return None
        return TOO_LARGE.outcome(Status.OUT_OF_MEMORY, need=_gib(need), free=_gib(self._free))

    def spill(self, planned: Planned, files: int) -> Path | None:
        """Return the folder for weights that the memory does not hold; None if something is to be
        timed.

        `files` is how often the engine writes them; an engine that maps an artefact does not.
        """
        settings, case = self._context.settings, planned.case
        runtime = self._context.runtimes.get(case.target.runtime)
        if settings.verify != "only" or runtime is None or not runtime.info.spills:
            return None
        need = self._too_much(planned)
        if need is None or case.precision != "fp32":
            return None
        return spill_to(case, case.model.weights_setting(settings.weights), need, self._free, files)

    def _too_much(self, planned: Planned) -> int | None:
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
        free, device = self._free, planned.device
        runtime = self._context.runtimes.get(planned.case.target.runtime)
        if free is None or runtime is None or device is None:
            return []

        def fits(case: Case) -> bool:
            need = self._context.estimate(case)
            return need is not None and need <= free

        return options_that_fit(planned.case, fits, lambda case: runtime.supports(case, device).ok)

    def _fitting_batch(self, planned: Planned) -> int | None:
        """Return the first half, quarter … of the batch that fits by estimate, or None."""
        # Not the largest one: that would leave nothing free for what the estimate misses.
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
