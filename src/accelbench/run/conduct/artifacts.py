"""Artefacts of a run: exported in a separate worker before the worker that measures is opened.

Cached artefacts are not made again. Workarounds that a case needed are remembered for later runs.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.case import Case
from accelbench.core.errors import CaseError
from accelbench.core.identity import digest
from accelbench.core.protocols import Device, Importing, Runtime
from accelbench.core.serial import case_to_json
from accelbench.core.vocabulary import Outcome, Status
from accelbench.engines.artifacts.cache import Cache, Kept
from accelbench.engines.artifacts.recipe import Recipe
from accelbench.engines.artifacts.workarounds import at_once, fixes_batch, next_for
from accelbench.models.file_models.unchanged import refuse_changed
from accelbench.run.messages import ARTEFACT_LOST, EXPORT_TOO_LARGE, NO_EXPORTER
from accelbench.run.plan.request import Planned
from accelbench.run.process.memory_guard import advice, spill_to, weights_bytes
from accelbench.run.process.worker_client import Progress, WorkerClient, WorkerTroubleError

if TYPE_CHECKING:
    from accelbench.run.conduct.launch_context import LaunchContext

_log = logging.getLogger(__name__)

_EXPORTER = "pytorch"
_HOST = Device("cpu", "the exporter's processor")

#: The module, its graph and the file that is written, at once: times the weights in fp32.
_EXPORT_SHARE = 4

#: What is written with the weights on the disk; other formats are made in memory.
_SPILLED = frozenset({"onnx", "ir"})

#: A layer's values, and what an exporter holds besides, where the weights are on the disk.
_WITHOUT_WEIGHTS = 4 * 2**30


#: What no other way of exporting would change.
_HOPELESS = frozenset(
    {
        "budget", "timeout", "killed", "worker_did_not_start", "package_missing", "disk_full",
        "cache_unwritable", "weights_unavailable", "file_changed",
    }
)  # fmt: skip


@dataclass(frozen=True)
class ExportedArtifact:
    """An artefact for a worker to open."""

    folder: str
    static: bool  # for one batch size
    other_way: str = ""  # the line of code that decides for a way which the graph may not have


class ArtifactExports:
    """The artefacts of a run's configurations, and the workarounds that these need."""

    def __init__(self, cache: Cache | None = None) -> None:
        self._cache = cache or Cache()
        self._renewed: set[str] = set()  # what was thrown away for its weights, once a run
        self._crashed: set[str] = set()  # cells that were tried again as they were

    def first_try(self, context: LaunchContext, case: Case) -> tuple[str, ...]:
        """Return the workarounds to begin with: those that were needed before, or that always
        apply."""
        if not context.settings.fix or not _imports(context, case):
            return ()
        known = self._cache.remembered(_cell(case))
        return at_once(case.model) if known is None else known

    def next_try(
        self, context: LaunchContext, case: Case, outcome: Outcome, applied: Sequence[str]
    ) -> tuple[str, ...] | None:
        # A crash may pass: the case is tried again as it was, before a workaround is taken for its
        # cure and remembered.
        if not context.settings.fix or not _imports(context, case):
            return None
        if outcome.status is not Status.FAILED or outcome.reason in _HOPELESS:
            return None
        name = next_for(case.model, f"{outcome.reason}: {outcome.message}", applied)
        if name is None:
            return None
        if outcome.reason == "crash" and _cell(case) not in self._crashed:
            self._crashed.add(_cell(case))
            return tuple(applied)
        return (*applied, name)

    def remember(self, context: LaunchContext, case: Case, applied: Sequence[str]) -> None:
        if context.settings.fix and _imports(context, case):
            self._cache.remember(_cell(case), applied)

    def static(self, context: LaunchContext, case: Case, applied: Sequence[str]) -> bool:
        """Return whether the artefact that an engine opens is made for one batch size."""
        runtime = _imports(context, case)
        return runtime is not None and (runtime.wants(case).static or fixes_batch(applied))

    def get(
        self, context: LaunchContext, planned: Planned, applied: Sequence[str]
    ) -> ExportedArtifact | None:
        """Return the artefact that a case's engine opens; None if it builds the model itself.

        Raises WorkerTroubleError if it cannot be made.
        """
        case = planned.case
        runtime = _imports(context, case)
        if runtime is None:
            return None
        still_as_looked_at(case)
        settings = context.settings
        recipe = Recipe(
            case,
            runtime.wants(case),
            settings.seed,
            case.model.weights_setting(settings.weights),
            settings.trust_remote_code,
            tuple(applied),
        )
        self._renew(recipe, _reference_weights(context, case))
        kept = self._cache.find(recipe.key) or self._made(context, recipe)
        return ExportedArtifact(str(kept.folder), recipe.static, kept.manifest.other_way)

    def _renew(self, recipe: Recipe, digest_: str) -> None:
        """Discard artefacts that were made of other weights than the reference has."""
        for key in (recipe.key, recipe.base.key):
            kept = self._cache.find(key)
            if kept is None or digest_ in ("", kept.manifest.weights_digest):
                continue
            if key not in self._renewed:
                _log.debug("the artefact %s is of other weights: it is made anew", key)
                self._renewed.add(key)
                self._cache.discard(key)

    def _files(self, recipe: Recipe) -> int:
        """Return how often the weights are on the disk at once while an artefact is made."""
        return 1 if self._cache.find(recipe.base.key) else 2

    def _made(self, context: LaunchContext, recipe: Recipe) -> Kept:
        file = recipe.case.model.graph
        # A graph that is there needs no PyTorch: whoever opens it makes of it what it opens.
        exporter = context.runtimes.get(_EXPORTER if file is None else recipe.case.target.runtime)
        if exporter is None:
            raise WorkerTroubleError(NO_EXPORTER.outcome(Status.UNSUPPORTED))
        try:
            spill = _spill(context, recipe, self._files(recipe))
        except _TooLargeError as error:
            raise WorkerTroubleError(error.outcome) from error
        talk = WorkerClient(context)
        try:
            context.observer.progress(Progress("exporting"))
            talk.start(exporter)
            talk.ask(_request(recipe, spill), "exporting")
        finally:
            talk.drop()
        kept = self._cache.find(recipe.key)
        if kept is None:
            raise WorkerTroubleError(ARTEFACT_LOST.outcome(Status.FAILED))
        return kept


def still_as_looked_at(case: Case) -> None:
    """Raise WorkerTroubleError if a model's file has changed since the run was planned."""
    # Before it is opened, because cached artefacts are not read again; and after it was measured,
    # because its weights may be mapped from the disk.
    file = case.model.file
    try:
        if file is not None:
            refuse_changed(file)
    except CaseError as error:
        raise WorkerTroubleError.of(error) from error


def _imports(context: LaunchContext, case: Case) -> Importing | None:
    runtime: Runtime | None = context.runtimes.get(case.target.runtime)
    return runtime if isinstance(runtime, Importing) else None


def _reference_weights(context: LaunchContext, case: Case) -> str:
    yardstick = context.verifications.yardsticks.of(case)
    return "" if yardstick is None else yardstick.weights_digest


def _cell(case: Case) -> str:
    # A user's code has a name that other code has as well, in another project or commit.
    code = case.model.code
    return digest(
        [
            *(() if code is None else (code.digest,)),
            case.model.id,
            case.model.config_digest,
            case.target.runtime,
            case.target.hardware,
            case.target.unit,
            case.precision,
        ]
    )


def _request(recipe: Recipe, spill: Path | None) -> dict[str, Any]:
    return {
        "do": "export",
        "case": case_to_json(recipe.case),
        "format": recipe.wanted.format,
        "static": recipe.wanted.static,
        "seed": recipe.seed,
        "weights": recipe.weights,
        "trust_remote_code": recipe.trust_remote_code,
        "workarounds": list(recipe.workarounds),
        "spill": None if spill is None else str(spill),
    }


class _TooLargeError(Exception):
    """Exporting is not worth trying."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


def _spill(context: LaunchContext, recipe: Recipe, files: int) -> Path | None:
    """Return the folder for weights of an export that the memory does not hold; None if it holds
    them."""
    if recipe.case.model.graph is not None and recipe.base is recipe:
        return None  # it stays where it lies
    heavy = weights_bytes(recipe.case)
    need = _EXPORT_SHARE * heavy
    room = context.free(_HOST)
    if room is None or need <= room:
        return None
    todo = ""
    if recipe.wanted.format in _SPILLED:
        arguments = (recipe.case, recipe.weights, heavy + _WITHOUT_WEIGHTS, room, files)
        spill = spill_to(*arguments)
        if spill is not None:
            return spill
        todo = advice(*arguments)
    raise _TooLargeError(
        replace(
            EXPORT_TOO_LARGE.outcome(Status.OUT_OF_MEMORY, need=need / 2**30, free=room / 2**30),
            advice=todo,
        )
    )
