"""Before a run: the plan that `--dry-run` shows, and the models that people choose on a terminal.

Nothing is asked if standard input or output is not a terminal.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from accelbench.cli.services.forecasting import outlook
from accelbench.cli.services.run_request import AskedRun
from accelbench.cli.services.running import OutputPlaces, prepare
from accelbench.core.axes import AXES
from accelbench.core.errors import EXIT_ENVIRONMENT, EXIT_OK, AccelbenchError
from accelbench.core.formatting import find_similar
from accelbench.core.safe_text import in_quotes, visible
from accelbench.hardware.machine import busy_warning, take_snapshot
from accelbench.present.terminal.terminal import asked_line, complain, print_line
from accelbench.present.terminal.words import duration, parameters_in_short
from accelbench.run.conduct.lifecycle import PlannedRun
from accelbench.run.execute import here
from accelbench.run.plan.request import Planned
from accelbench.run.plan.run_forecast import CaseForecast, PlanForecast, tried_groups
from accelbench.run.plan.targets import (
    NAMED,
    lacking,
    missing_places,
    nothing_measured,
    planned_rows,
)


def show_plan(asked: AskedRun, places: OutputPlaces, stream: IO[str], as_json: bool) -> int:
    """Show what a run would do and how long it would take; nothing is measured."""
    planned = prepare(asked, places, *here())
    expected = outlook(planned, places.open_database())
    seconds = expected.seconds
    launches = planned.settings.launches
    busy = busy_warning(take_snapshot()) if planned.measurements else None
    notes = [*planned.plan.notes, *expected.notes, *([busy] if busy else [])]
    if as_json:
        document = {
            "cases": [_case_entry(p, expected.forecast) for p in planned.plan.cases],
            "launches": launches,
            "against": planned.other.against.name if planned.other else None,
            "notes": notes,
            **({"plan_files": asked.plans.about} if asked.plans.about else {}),
            "seconds_low": seconds.low,
            "seconds_high": seconds.high,
            "predicted_cases": seconds.predicted,
            "learned_from": expected.forecast.learned_from,
            "learned_imported": expected.forecast.learned_imported,
        }
        stream.write(json.dumps(document) + "\n")
        return _exit_code(planned)
    for note in notes:
        print_line(f"Note: {note}", stream)
    for number, entry in enumerate(planned.plan.cases, 1):
        why = f": {entry.refusal.status.value} — {entry.refusal.message}" if entry.refusal else ""
        why = why or (": simulated, not measured" if entry.roofline else "")
        threads = entry.case.options.get("threads")
        own = f" · {threads} thread{'s' * (threads != 1)}" if threads else ""
        print_line(f"{number:4d}  {entry.case}{own}{why}", stream)
    times = f" × {launches} launches" if launches > 1 else ""
    times += f", in turns with {visible(planned.other.against.name)}" if planned.other else ""
    noun = "case" if len(planned.plan.cases) == 1 else "cases"
    how_long = (
        f"between {duration(seconds.low)} and {duration(seconds.high)}, {expected.rests_on}"
        if any(tried_groups(plan) for _, plan, _ in planned.arms)
        else _why_none(planned.plan.cases)
    )
    print_line(f"{len(planned.plan.cases)} {noun}{times}; {how_long}.", stream)
    return _exit_code(planned)


def _exit_code(planned: PlannedRun) -> int:
    tried = [entry for group in tried_groups(planned.plan) for entry in group]
    rows = planned_rows(planned.plan.cases, tried)
    lacks = lacking(planned.about.get(NAMED) or {}, rows)
    for place in missing_places(lacks):
        complain(f"Nothing would be measured {place}")
    return EXIT_ENVIRONMENT if lacks or nothing_measured(rows) else EXIT_OK


def _why_none(cases: Sequence[Planned]) -> str:
    refused = sum(entry.refusal is not None for entry in cases)
    simulated = sum(entry.refusal is None and entry.roofline is not None for entry in cases)
    large = len(cases) - refused - simulated
    counts = {"refused": refused, "larger than memory": large, "simulated": simulated}
    words = [f"{count:,} {name}" for name, count in counts.items() if count]
    return f"nothing would be measured: {', '.join(words)}"


def _case_entry(planned: Planned, forecast: PlanForecast) -> dict[str, Any]:
    known = forecast.cases.get(planned.key)
    case, refusal = planned.case, planned.refusal
    will_be = "planned" if planned.roofline is None else "simulated"
    return {
        "case_id": case.case_id,
        "model": case.model.id,
        "runtime": case.target.runtime,
        "hardware": case.target.hardware,
        "device": str(planned.device) if planned.device else None,
        "precision": case.precision,
        "batch_size": case.shapes.batch,
        **{axis.column: getattr(case.shapes, axis.field) for axis in AXES},
        "mode": case.mode.value,
        "options": dict(case.options),
        "status": refusal.status.value if refusal else will_be,
        "reason": refusal.message if refusal else None,
        "predicted": None if known is None else _prediction(known),
    }


def _prediction(known: CaseForecast) -> dict[str, float | None]:
    step, memory = known.step, known.memory_bytes
    return {
        "step_seconds": step.middle,
        "step_seconds_low": step.low,
        "step_seconds_high": step.high,
        "memory_mb": None if memory is None else memory / 2**20,
    }


#: Parameters that name models or narrow them.
_SAY_WHICH = (
    *("models", "set_name", "models_file", "category", "specific", "every", "model_id"),
    *("model_families", "small_models", "multiple_models", "resume"),
)


#: Parameters that mean every model if they are typed and not a project's default.
_MEAN_EVERY = ("hardware", "device")


#: Parameters of calls by programs.
_NOT_FOR_PEOPLE = ("as_json", "quiet")


#: So many models of each kind are shown at first, and of a search.
_FEW, _MOST = 5, 15
_ASK = "model> "


_HOW = "Which model? A number, or a part of a name; several with commas; nothing leaves."


@dataclass(frozen=True)
class ModelChoice:
    """A model to pick: its word for `accelbench run`, a description, and its other names."""

    word: str
    about: str
    names: tuple[str, ...] = ()


def picked_models(typed: Mapping[str, Any], ctx: Any) -> list[str]:
    """Return the models that a person picks; none if nobody is asked."""
    if any(typed.get(name) for name in (*_SAY_WHICH, *_NOT_FOR_PEOPLE)):
        return []
    sources = (ctx.get_parameter_source(name) for name in _MEAN_EVERY)
    if any(source is not None and source.name == "COMMANDLINE" for source in sources):
        return []
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return []
    files, stored, catalogue = _files(Path()), _stored(), _catalogue()
    known = {choice.word: choice for choice in (*files, *catalogue)}
    measured = [
        ModelChoice(name, f"measured before · {known[name].about}", known[name].names)
        for name in stored
        if name in known
    ]
    first = [*files[:_FEW], *measured[:_FEW]]
    small = [choice for choice in catalogue if choice.word.endswith("-tiny")]
    first += [choice for choice in small if choice.word not in stored][:_FEW]
    words = _ask(first, [*files, *catalogue])
    if words:
        print_line(_command(words, sys.argv[1:]))
    return words


def _ask(shown: Sequence[ModelChoice], every: Sequence[ModelChoice]) -> list[str]:
    """Ask until a model is picked; return none if the line is empty."""
    print_line(_HOW)
    _show(shown)
    while True:
        line = asked_line(_ASK)
        if not line:
            return []
        words = answer_of(line, shown, every)
        if words:
            return words
        hits = search(line, every)
        if not hits:
            alike = find_similar(line, (choice.word for choice in every))
            meant = f" Did you mean {' or '.join(alike)}?" if alike else ""
            print_line(f"No model has {in_quotes(line)} in its name.{meant}")
            continue
        shown = hits
        _show(shown)


def answer_of(
    line: str, shown: Sequence[ModelChoice], every: Sequence[ModelChoice]
) -> list[str] | None:
    """Return the models that a line names by numbers or names; None if it is a search."""
    by_word = {choice.word.lower(): choice.word for choice in every}
    words: list[str] = []
    for part in _parts(line):
        if part.isdecimal() and 1 <= int(part) <= min(len(shown), _MOST):
            words.append(shown[int(part) - 1].word)
        elif part.lower() in by_word:
            words.append(by_word[part.lower()])
        elif _is_own(part):
            words.append(part)
        elif not part.isdecimal() and len(hits := search(part, every)) == 1:
            words.append(hits[0].word)
        else:
            return None
    return list(dict.fromkeys(words))


def search(line: str, every: Iterable[ModelChoice]) -> list[ModelChoice]:
    """Return the models with one of the words in a name or in the description."""
    wanted = [part.lower() for part in _parts(line)]
    return [choice for choice in every if any(_is_called(choice, word) for word in wanted)]


def _is_called(choice: ModelChoice, word: str) -> bool:
    about = () if word.isdecimal() else (choice.about,)
    return any(word in text.lower() for text in (choice.word, *choice.names, *about))


def _parts(line: str) -> list[str]:
    return [part for word in line.split(",") if (part := word.strip())]


def _is_own(word: str) -> bool:
    return word.startswith(("./", "../", "/", "~")) or ".py:" in word or Path(word).is_file()


def _show(choices: Sequence[ModelChoice]) -> None:
    width = max((len(choice.word) for choice in choices[:_MOST]), default=0)
    for number, choice in enumerate(choices[:_MOST], 1):
        print_line(f"{number:>4}  {choice.word:<{width}}  {choice.about}")
    if len(choices) > _MOST:
        print_line(f"      and {len(choices) - _MOST} more: type more of the name")


def _files(folder: Path) -> list[ModelChoice]:
    from accelbench.models.file_models.kinds import formats_by_suffix

    known = formats_by_suffix()
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in known)
    except OSError:
        return []
    return [ModelChoice(path.name, "file here") for path in paths if path.is_file()]


def _stored() -> list[str]:
    from accelbench.cli.services.opening import filled
    from accelbench.judge.overview import measured_last
    from accelbench.store.opening import open_store

    if not open_store(None).exists:
        return []
    try:
        return measured_last(filled(None))
    except AccelbenchError:
        return []  # the run that follows reports it


def _catalogue() -> list[ModelChoice]:
    from accelbench.models.find import every_model, names_of

    return [
        ModelChoice(
            spec.id,
            f"{spec.family.value.replace('_', ' ')} · {parameters_in_short(spec.parameters)}"
            " parameters",
            tuple(names_of(spec)),
        )
        for spec in every_model()
    ]


def _command(words: Sequence[str], typed: Sequence[str]) -> str:
    before, after = list(typed), list[str]()
    if "run" in before:
        at = before.index("run") + 1
        before, after = before[:at], before[at:]
    return f"$ {shlex.join(['accelbench', *before, *words, *after])}"
