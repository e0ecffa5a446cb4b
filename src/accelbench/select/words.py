"""The answer in words: what was chosen, on what ground, and what nobody has measured yet. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from accelbench.select.asking import Asked
from accelbench.select.candidates import Candidate
from accelbench.select.task import TASKS

if TYPE_CHECKING:
    from accelbench.select.choosing import Chosen
    from accelbench.select.scoring import Contender


def command(asked: Asked, candidate: Candidate) -> str:
    """The command that measures what is missing."""
    words = ["accelbench", "run", asked.names[0], "--hardware", candidate.name]
    words += ["--batch-sizes", str(asked.batch)]
    if asked.mode != "inference":
        words += ["--mode", asked.mode]
    if asked.precision:
        words += ["--precision", asked.precision]
    if asked.spec is None:
        words += ["--models-file", "FILE"]
    return shlex.join(words)


def explained(chosen: Chosen) -> str:
    """Sentences, a line each."""
    return "\n".join(_sentences(chosen))


def _sentences(chosen: Chosen) -> Iterator[str]:
    asked = chosen.asked
    what = f"{asked.model} at batch {asked.batch}, {asked.mode}"
    if not chosen.ranked:
        yield f"Nothing that was asked about runs {what}."
    else:
        yield _first(chosen, what)
        if len(chosen.compared) == 1 and len(chosen.ranked) > 1:
            yield "No other has a figure, so nothing shows that it is the best of them."
        yield from _alternatives(chosen)
    for one in chosen.contenders:
        if not one.compatible:
            yield f"{one.name} is out: {one.why_not}."
    for name, how in chosen.unlike.items():
        yield f"{name} was measured under other circumstances alone: {how}."
    yield from _unsaid(chosen)
    yield from _ground(chosen)
    missing = [one for one in chosen.ranked if one.figure is None or not one.figure.measured]
    if missing:
        names = ", ".join(one.name for one in missing)
        yield f"Not measured: {names}. To measure: {command(asked, missing[0].candidate)}"


def _first(chosen: Chosen, what: str) -> str:
    first = chosen.ranked[0]
    if chosen.unclear:
        others = " and ".join(chosen.unclear[1:])
        return (
            f"No clear winner for {what}: {first.name} is ahead of {others} by less than is known."
            f" {_figure_said(first)}"
        )
    return f"{first.name} for {what}. {_figure_said(first)}"


def _alternatives(chosen: Chosen) -> Iterator[str]:
    for one in chosen.ranked[1:4]:
        yield f"Else {one.name}. {_figure_said(one)}"


def _figure_said(one: Contender) -> str:
    found = one.figure
    if found is None:
        why = "; ".join(one.ruled.why) or "no rule speaks of it"
        return f"By rule alone, rated {one.rating}: {why}."
    row = found.cell.row
    where = ", ".join(str(row[n]) for n in ("device_name", "runtime", "precision") if row.get(n))
    figures = f"{found.latency:.4g} ms a step, {found.throughput:.4g} {found.unit}/s"
    if found.measured:
        count = len(found.cell.latencies)
        said = f"Measured: {figures} ({where}; {count} launch{'' if count == 1 else 'es'})"
    else:
        said = (
            f"Estimated ({found.basis}): {figures}, from {found.low:.4g} to {found.high:.4g} ms"
            f" ({where}; {found.note})"
        )
    cost = "" if one.cost is None else f", ${one.cost:.4g} per million"
    return f"{said}{cost}, score {one.score:.3g}."


def _unsaid(chosen: Chosen) -> Iterator[str]:
    """Which sizes an import has not said, so that they are taken to be those of the others."""
    for one in chosen.ranked:
        row = one.figure.cell.row if one.figure is not None and one.figure.measured else {}
        unsaid = [name for name in chosen.shapes if row and row.get(name) is None]
        if unsaid:
            yield f"Of {one.name} it is not said: {', '.join(unsaid)}."


def _ground(chosen: Chosen) -> Iterator[str]:
    weights = ", ".join(f"{name} {value:.2g}" for name, value in chosen.scored.weights.items())
    task = TASKS.get(chosen.asked.task or "")
    why = f" ({task.why})" if task and task.why else ""
    yield f"Weights: {weights}{why}."
    for name, reason in chosen.scored.left_out.items():
        yield f"Left out of them: {name}, {reason}."
    told = [
        f"{one.name} {name.removesuffix('_factor')} × {value:g}"
        for one in chosen.ranked
        for name, value in one.factors.items()
        if value != 1.0
    ]
    if told:
        yield f"Preferences: {', '.join(told)}."
    sizes = ", ".join(f"{name} {value}" for name, value in chosen.shapes.items())
    if sizes:
        yield f"Sizes: {sizes}."
    size = chosen.asked.size
    yield f"Size of the model: {size.name}, by {size.source}."
    if any(one.figure is not None for one in chosen.ranked):
        yield f"Data of {chosen.data_date or 'no date that is known'}."
    yield f"Compatibility by {chosen.matrix_source}."
