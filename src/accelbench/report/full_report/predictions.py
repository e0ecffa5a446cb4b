"""The sections of a report about predictions: how good they are, and batch scaling. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from accelbench.core.absent import NO_DATA
from accelbench.report.full_report.contents import Block, Figure, Section, Table, Text
from accelbench.report.full_report.drawn_tables import drawn_table

if TYPE_CHECKING:
    from accelbench.predict.scoring import EvaluatedCases
    from accelbench.report.prediction_evidence import PredictionEvidence

AGAINST_MEASURED = "Predicted against measured"
_LEFT_OUT = (
    "Each figure was predicted by accelbench's own predictor from the measurements of other models"
    " of the database alone; what was measured of the same case says how far it was off. Predicted"
    " figures stand in this section and in the next one, and in no comparison."
)
_SCALING = (
    "Lines and bands are predicted from all that was measured of these models and others; circles"
    " are measured."
)
HEADERS = ("target", "engine", "cases", "median error, %", "inside 25 %, %", "coverage, %")
CAPTION = "By engine; coverage is the share inside the 90 % interval"


def predictions(evidence: PredictionEvidence | None) -> Iterable[Section]:
    """The sections; a sentence where there is too little to judge, none where nobody asked."""
    if evidence is None:
        return
    picture = evidence.picture
    if picture is None:
        yield Section(AGAINST_MEASURED, [Text([evidence.why])] if evidence.why else [])
        return
    blocks: list[Block] = [
        Text([_LEFT_OUT]),
        Figure(picture, drawn_table(picture)),
        Table(HEADERS, score_rows(evidence.cases), frozenset({2, 3, 4, 5}), CAPTION),
    ]
    yield Section(AGAINST_MEASURED, blocks)
    scaling = evidence.scaling_picture
    if scaling is not None:
        figure = Figure(scaling, drawn_table(scaling))
        yield Section(scaling.chart.title, [Text([_SCALING]), figure])


def score_rows(cases: Mapping[str, EvaluatedCases]) -> list[list[str]]:
    """Scores of each target: of all cases, and of each engine."""
    return [
        [target, name, f"{score['n']:,}", *(_percent(score[what]) for what in _SHARES)]
        for target, entry in cases.items()
        for name, score in (("all", entry.score()), *entry.score_by_group().items())
        if score["n"]
    ]


_SHARES = ("mdape", "within25", "coverage90")


def _percent(value: float | None) -> str:
    return NO_DATA if value is None else f"{value:.0f}" if value >= 10 else f"{value:.1f}"
