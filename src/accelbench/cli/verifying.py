"""`recommend --verify`: what an answer names is measured here, and the next answer rests on it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from accelbench.catalog.find import find
from accelbench.cli.measuring import measured
from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.facts import new_run_id
from accelbench.core.precision import parse_precision
from accelbench.core.words import Mode
from accelbench.hardware.detect import detect_all
from accelbench.measure.launches import FEWEST_LAUNCHES
from accelbench.run import journey
from accelbench.run.automatic import SIZES
from accelbench.run.context import Settings
from accelbench.run.journey import Journey
from accelbench.run.plan import Plan, Request, joined

if TYPE_CHECKING:
    from accelbench.store.database import Database

Words = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """What is worth measuring, in the words of an answer."""

    model: str
    hardware: str
    runtime: str | None
    precision: str
    batch_size: int
    mode: str
    shapes: Words = field(default_factory=dict)
    launches: int = 1

    def request(self, installed: Iterable[str]) -> Request:
        """As plans are made of it.

        Raises:
            UsageError: The model is no catalogue's, or the precision is nobody's here.
        """
        sizes: dict[str, Any] = {
            name: (self.shapes[column],) for name, column in SIZES.items() if self._has(column)
        }
        return Request(
            models=(find(self.model),),
            hardware=(self.hardware.lower(),),
            # What was imported may be of an engine that nobody has here.
            runtimes=(self.runtime,) if self.runtime in set(installed) else (),
            batch_sizes=(self.batch_size,),
            precisions=(parse_precision(self.precision),),
            modes=(Mode(self.mode),),
            **sizes,
        )

    def _has(self, column: str) -> bool:
        generating = column in ("prompt_tokens", "new_tokens") and self.mode == Mode.TRAINING
        return self.shapes.get(column) is not None and not generating


def measured_again(database: Database, answers: Sequence[Words]) -> bool:
    """Measure what answers recommend; where none wins clearly, all that may be first.

    Returns:
        Whether there is anything new to answer by.
    """
    return _measure(database, [case for one in answers for case in _named_by(one)])


def measured_options(database: Database, found: Sequence[Words], shapes: Words) -> bool:
    """Measure what searches under limits think worth it."""
    names = ("model", "hardware", "runtime", "precision", "batch_size", "mode")
    cases = [
        Case(**{name: words[name] for name in names}, shapes=shapes)
        for one in found
        for words in one["to_verify"]
    ]
    return _measure(database, cases)


def _named_by(answer: Words) -> Iterable[Case]:
    """The first; beside it those that it does not clearly beat, in launches enough to tell."""
    first, question = answer["primary_recommendation"], answer["question"]
    unclear = answer["no_clear_winner_between"]
    for name in dict.fromkeys([*([first] if first else []), *unclear]):
        score = answer["all_scores"][name]
        yield Case(
            question["model"],
            name,
            score.get("runtime"),
            score.get("precision") or question["precision"] or "fp32",
            question["batch_size"],
            question["mode"],
            question["shapes"],
            FEWEST_LAUNCHES if unclear else 1,
        )


def _measure(database: Database, cases: Sequence[Case]) -> bool:
    """Run those that this machine can, in turns, and say what it cannot.

    Raises:
        SurroundingsError: It can run none of them.
    """
    found, runtimes = detect_all(), journey.installed_runtimes()
    plans: dict[int, list[Plan]] = {}
    cannot: dict[str, None] = {}
    for case in cases:
        try:
            plan = journey.plan_for(case.request(runtimes), found, runtimes)
        except UsageError as error:
            cannot[str(error)] = None
            continue
        able = [one for one in plan.cases if one.refusal is None]
        cannot |= {f"{one.refusal.message}.": None for one in plan.cases if one.refusal}
        if able:
            plans.setdefault(case.launches, []).append(Plan(tuple(able), plan.notes))
    for why in cannot:
        sys.stderr.write(f"accelbench: not measured here: {why}\n")
    if not cases:
        return False
    if not plans:
        raise SurroundingsError(
            "Nothing of the answer can be measured on this machine.",
            "Add --hardware here to choose among what is here.",
        )
    command = shlex.join(["accelbench", *sys.argv[1:]])
    journeys = (
        Journey(
            joined(several),
            Settings(run_id=new_run_id(), launches=launches),
            runtimes,
            {"command": command, "label": "recommend --verify"},
        )
        for launches, several in plans.items()
    )
    return bool(measured(database, journeys))
