"""`recommend --verify`: what an answer names is measured here, and the next answer rests on it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from accelbench.catalog.find import find
from accelbench.cli.display.terminal import complain
from accelbench.cli.services.just_measured import rows_of
from accelbench.cli.services.measuring import measured
from accelbench.core.cards import default_precision
from accelbench.core.case import runtimes_own
from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.facts import new_run_id
from accelbench.core.job_settings import JobSettings
from accelbench.core.precision import parse_precision
from accelbench.core.protocols import Device, Inventory, Runtime
from accelbench.core.spreads import FEWEST_LAUNCHES
from accelbench.core.vocabulary import Mode, Status
from accelbench.run.conduct.lifecycle import RunSpec
from accelbench.run.plan import planning
from accelbench.run.plan.automatic import SIZES
from accelbench.run.plan.named_targets import nothing_measured
from accelbench.run.plan.request import Plan, Planned, Request, joined
from accelbench.run.plan.run_settings import RunSettings
from accelbench.select.query.query import GENERATING, shapes_named

if TYPE_CHECKING:
    from accelbench.store.database import Database

Words = Mapping[str, Any]
#: Options that are asked of every engine, in either mode.
_OF_ALL = ("compile", "threads")
_NOT_TRIED = (Status.UNSUPPORTED.value, Status.SKIPPED.value)


@dataclass(frozen=True)
class VerificationCase:
    """What is worth measuring, in the words of an answer.

    Attributes:
        device: by its name, where it is of one.
        exact: only this engine will do; else the platform's own, where this one is not here.
        options: what was set on purpose.
        weights: random, hub, or a folder.
        data: a folder of real inputs.
        energy: it is measured too.
    """

    model: str
    hardware: str
    runtime: str | None
    precision: str
    batch_size: int
    mode: str
    shapes: Words = field(default_factory=dict)
    launches: int = 1
    device: str | None = None
    exact: bool = False
    options: Words = field(default_factory=dict)
    weights: str = "random"
    data: str | None = None
    energy: bool = False

    def request(self, inventory: Inventory, installed: Iterable[str]) -> Request:
        """As plans are made of it.

        Raises:
            UsageError: The model is no catalogue's, the precision is nobody's here, or the engine
                is not here and no other will do.
        """
        named = self.runtime in set(installed)
        if self.exact and self.runtime and not named:
            raise UsageError(f"The engine {self.runtime} is not here.")
        sizes: dict[str, Any] = {
            name: (self.shapes[column],) for name, column in SIZES.items() if self._has(column)
        }
        own = runtimes_own(self.options)
        trains = {n: v for n, v in self.options.items() if n not in (*own, *_OF_ALL)}
        return Request(
            models=(find(self.model),),
            hardware=(self._place(inventory),),
            # What was imported may be of an engine that nobody has here.
            runtimes=(str(self.runtime),) if named else (),
            batch_sizes=(self.batch_size,),
            precisions=(parse_precision(self.precision),),
            modes=(Mode(self.mode),),
            options={name: self.options[name] for name in _OF_ALL if name in self.options},
            training_options=trains,
            runtime_options={str(self.runtime): own} if named and own else {},
            **sizes,
        )

    @property
    def settings(self) -> RunSettings:
        """Of a run, whatever its id."""
        threads = self.options.get("threads")
        job = JobSettings(weights=self.weights, data=self.data, threads=threads, energy=self.energy)
        return RunSettings(job=job, launches=self.launches)

    def _place(self, inventory: Inventory) -> str:
        """The platform, and of several devices which: a name would make another series of it."""
        platform, _, word = self.hardware.partition(":")
        meant = (self.device or word).lower()
        devices = [
            entry for entry in inventory.get(platform.lower(), ()) if isinstance(entry, Device)
        ]
        for number, device in enumerate(devices):
            if meant in (device.name.lower(), device.unit, str(device.ordinal)):
                first = not number or not meant
                return platform.lower() if first else f"{platform}:{device.unit or device.ordinal}"
        return f"{platform}:{meant}".lower() if meant else platform.lower()

    def _has(self, column: str) -> bool:
        generating = column in GENERATING and self.mode == Mode.TRAINING
        return self.shapes.get(column) is not None and not generating


def measured_again(database: Database, answers: Sequence[Words]) -> list[str]:
    """Measure what answers recommend; where none wins clearly, all that may be first.

    Returns:
        The runs, which there is something new to answer by.
    """
    return _measure(database, [case for words in answers for case in _named_by(words)])


def measured_options(database: Database, answers: Sequence[Words], shapes: Words) -> list[str]:
    """Measure what searches under limits think worth it: the runs.

    Args:
        database: Where it is stored.
        answers: Their answers.
        shapes: Sizes that were asked for, by any of their names.
    """
    sizes = shapes_named(shapes)
    return _measure(
        database, [case_of(words, sizes) for answer in answers for words in answer["to_verify"]]
    )


def case_of(words: Words, sizes: Words) -> VerificationCase:
    """What a search thinks worth measuring.

    Args:
        words: of the case, as the search has them.
        sizes: sizes that were asked for, by the store's columns.
    """
    names = ("model", "hardware", "device", "runtime", "precision", "batch_size", "mode")
    more = ("options", "weights", "data")
    return VerificationCase(
        **{name: words[name] for name in (*names, *more)},
        shapes={**sizes, **words["shapes"]},
        exact=True,
        energy=words.get("energy", False),
    )


def _named_by(answer: Words) -> Iterable[VerificationCase]:
    """The first; beside it those that it does not clearly beat, in launches enough to tell.

    Where it has the only figure there is, all the others: alone it is the best of nothing.
    """
    first, question = answer["primary_recommendation"], answer["question"]
    unclear = answer["no_clear_winner_between"]
    rest = answer["fallback_options"] if answer["compared"] == [first] else unclear
    for name in dict.fromkeys([*([first] if first else []), *rest]):
        score = answer["all_scores"][name]
        yield VerificationCase(
            question["model"],
            name,
            score.get("runtime"),
            score.get("precision")
            or question["precision"]
            or default_precision(name.partition(":")[0], score.get("runtime")),
            question["batch_size"],
            question["mode"],
            question["shapes"],
            FEWEST_LAUNCHES if unclear else 1,
        )


def _measure(database: Database, cases: Sequence[VerificationCase]) -> list[str]:
    """Run those that this machine can, in turns, and say what it cannot: the runs.

    Raises:
        SurroundingsError: It can run none of them.
    """
    made = measured(database, lambda hardware, runtimes: _planned(cases, hardware, runtimes))
    _refuse_nothing(database, made)
    return made


def _planned(
    cases: Sequence[VerificationCase], inventory: Inventory, runtimes: Mapping[str, Runtime]
) -> list[RunSpec]:
    """A run for all that are measured alike."""
    plans: dict[RunSettings, list[Plan]] = {}
    cannot: dict[str, None] = {}
    for case in cases:
        plan, reasons = planned_here(case, inventory, runtimes)
        cannot |= dict.fromkeys(reasons)
        if plan is not None:
            plans.setdefault(case.settings, []).append(plan)
    for why in cannot:
        complain(f"not measured here: {why}")
    if not cases:
        complain("nothing is measured: no case would change the answer.")
        return []
    if not plans:
        raise SurroundingsError(
            "Nothing of the answer can be measured on this machine.",
            "Add --hardware here to choose among what is here."
            if _is_absent(cases, inventory)
            else "",
        )
    command = shlex.join(["accelbench", *sys.argv[1:]])
    return [
        RunSpec(
            joined(several),
            replace(settings, run_id=new_run_id()),
            runtimes,
            {"command": command, "label": "recommend --verify"},
        )
        for settings, several in plans.items()
    ]


def _is_absent(cases: Iterable[VerificationCase], inventory: Inventory) -> bool:
    """Whether the platform of some case is not here, and not the model what is the matter."""
    platforms = {case.hardware.partition(":")[0].lower() for case in cases}
    return any(
        not any(isinstance(entry, Device) for entry in inventory.get(name, ()))
        for name in platforms
    )


def planned_here(
    case: VerificationCase, inventory: Inventory, runtimes: Mapping[str, Runtime]
) -> tuple[Plan | None, list[str]]:
    """What of a case this machine can measure, and why not the rest."""
    try:
        plan = planning.plan_for(case.request(inventory, runtimes), inventory, runtimes)
    except UsageError as error:
        return None, [str(error)]
    able = [case for case in plan.cases if case.refusal is None and not _stands_in(case)]
    why = [f"{case.refusal.message}." for case in plan.cases if case.refusal]
    why += [
        f"{case.case.target.place} is emulated here, and its times are no device's."
        for case in plan.cases
        if _stands_in(case)
    ]
    return (Plan(tuple(able), plan.notes) if able else None), why


def _refuse_nothing(database: Database, runs: Sequence[str]) -> None:
    """An answer that nothing was measured for is not verified; a failure is something new."""
    rows = rows_of(database, runs)
    if rows and all(row["status"] in _NOT_TRIED for row in rows):
        raise SurroundingsError(nothing_measured(rows))


def _stands_in(planned: Planned) -> bool:
    """Whether it would be measured on what is no device, and count for nothing."""
    return planned.device is not None and planned.device.emulated
