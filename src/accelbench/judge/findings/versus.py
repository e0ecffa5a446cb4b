"""One engine or precision against another over all models that both answered alike. Pure.

Each ratio is made where all are (`analysis.comparison`), of two sides that it does not refuse and
whose conditions are alike. A model counts once, by the geometric mean of its configurations; the
middle of models is their geometric mean, and its interval is Student's t on their logarithms. Where
sides are of different runs, what runs differ by is alike in all models and does not show in how
these differ: the interval of a typical single ratio is in it as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from accelbench.core.formatting import format_count
from accelbench.core.rows import Row
from accelbench.core.unusable_reasons import source_of
from accelbench.evidence.launches import launches_of
from accelbench.judge.comparison import Compared, compared, doubtful
from accelbench.judge.questions import AXES, Key, physical
from accelbench.judge.ratios import WIDEST
from accelbench.judge.run_noise import Histories, of_one_run
from accelbench.measure.launch_verdicts import MAX_LOG, geometric_mean, interval_of

#: Fewer models are no "in general".
FEWEST_MODELS = 3


@dataclass(frozen=True)
class Versus:
    """A place of an axis against another, on one device, in one mode.

    Attributes:
        lines: the ratios that count.
        untold: how many configurations are known too roughly for a ratio.
    """

    place: str
    base: str
    lines: Sequence[Compared]
    untold: int = 0

    @cached_property
    def by_model(self) -> dict[str, float]:
        """Of each model how many times as fast, in the order of their names."""
        ratios: dict[str, list[float]] = {}
        for line in self.lines:
            if line.ratio is not None:
                ratios.setdefault(str(line.side.row.get("model")), []).append(line.ratio.value)
        return {name: geometric_mean(ratios[name]) for name in sorted(ratios)}

    @property
    def row(self) -> Row:
        """A row of the place itself."""
        return self.lines[0].side.row

    @property
    def models(self) -> int:
        """How many models both have answered."""
        return len(self.by_model)

    @cached_property
    def value(self) -> float:
        """The geometric mean of models."""
        return geometric_mean(list(self.by_model.values()))

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """Of the geometric mean, 95 %; None where too few models say how they differ."""
        known = interval_of(list(self.by_model.values())) if self.models > 1 else None
        if known is None:
            return None
        down, up = math.log(self.value / known[0]), math.log(known[1] / self.value)
        apart = self._apart
        down, up = (min(math.hypot(reach, apart), MAX_LOG) for reach in (down, up))
        return self.value * math.exp(-down), self.value * math.exp(up)

    @property
    def left_out(self) -> str:
        """That some are not among the models' ratios; "" where all are."""
        if not self.untold:
            return ""
        return f"; {format_count(self.untold, 'configuration')} too rough to count"

    @property
    def _apart(self) -> float:
        """What all ratios may be off by together, as a logarithm: two runs differ as a whole."""
        known = [
            math.log(line.ratio.high / line.ratio.low) / 2.0
            for line in self.lines
            if line.ratio is not None
            and line.ratio.low
            and line.ratio.high
            and line.baseline is not None
            and not of_one_run(line.side.row, line.baseline.row)
        ]
        return median(known) if 2 * len(known) > len(self.lines) else 0.0

    @property
    def decided(self) -> bool:
        """Whether which is faster can be told, over enough models."""
        if self.interval is None or self.models < FEWEST_MODELS:
            return False
        low, high = self.interval
        return low > 1.0 or high < 1.0

    @property
    def told(self) -> bool:
        """Whether by how much can be told as well, by the rule of every ratio."""
        return self.interval is not None and self.interval[1] <= WIDEST * self.interval[0]

    @cached_property
    def slower(self) -> list[Compared]:
        """The configurations in which it is slower for certain."""
        return [line for line in self.lines if _ends(line)[1] < 1.0]

    @cached_property
    def faster(self) -> list[Compared]:
        """Those in which it is faster for certain."""
        return [line for line in self.lines if _ends(line)[0] > 1.0]


def _ends(line: Compared) -> tuple[float, float]:
    """Between what a ratio surely is; of one that is not known it is anything."""
    return line.ratio.ends if line.ratio is not None else (0.0, math.inf)


def every_versus(
    rows: Iterable[Row], axis_name: str, known: Histories, base: str | None = None
) -> list[Versus]:
    """Each place of an axis against the base, device by device.

    Args:
        base: what others are compared with; else, of each device, what answered most questions.
    """
    groups: dict[Key, list[Row]] = {}
    for row in launches_of(rows):
        if row["comparable"] and not row.get("emulated"):
            whose = (str(row.get("provenance")), source_of(row))
            along = () if axis_name == "runtime" else (row.get("runtime"), row.get("hardware"))
            where = (physical(row), row.get("mode"), row.get("scenario"))
            groups.setdefault((*whose, *where, *along), []).append(row)
    every: list[Versus] = []
    for several in groups.values():
        places = {str(row.get(axis_name)) for row in several if row.get(axis_name)}
        if len(places) < 2 or (base is not None and base not in places):
            continue
        against = base or _most_common(several, axis_name)
        every += _against(several, axis_name, against, known)
    return every


def _most_common(rows: Sequence[Row], axis_name: str) -> str:
    axis = AXES[axis_name]
    questions: dict[Key, set[str]] = {}
    for row in rows:
        if row.get(axis_name) and row["answered"]:
            questions.setdefault(axis.question(row), set()).add(str(row[axis_name]))
    counts = Counter(place for places in questions.values() if len(places) > 1 for place in places)
    return min(counts, key=lambda name: (-counts[name], name != "pytorch", name), default="")


def _against(rows: Sequence[Row], axis_name: str, base: str, known: Histories) -> Iterable[Versus]:
    if not base:
        return
    by_place: dict[str, list[Compared]] = {}
    untold: Counter[str] = Counter()
    for lines in compared(rows, AXES[axis_name], (base,), known=known):
        for line in lines:
            if line.ratio is None or line.is_baseline or doubtful(line.differs):
                continue
            place = str(line.side.value[0])
            if line.ratio.told:
                by_place.setdefault(place, []).append(line)
            else:
                untold[place] += 1
    for place, alike in sorted(by_place.items()):
        yield Versus(place, base, alike, untold[place])
