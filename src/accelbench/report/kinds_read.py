"""What points of a line are figures of, and what is known of their outputs, as a store has it.

Most series are of one thing in all their runs, of which a line of ten thousand runs has many: what
is the same in all of them is read once for the series.
"""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.analysis.attempts import VERIFIED
from accelbench.analysis.judging import UNIT_SQL, Metric
from accelbench.analysis.line_parts import Kinds
from accelbench.analysis.outputs import Outputs

#: Of launches, beside their series. An owner's code that is changed goes on with its line, which
#: is to say since which commit it is slower; another file is another graph.
_KINDS = {
    "weights_digest": "CASE WHEN weights = 'code' THEN NULL ELSE weights_digest END",
    "workarounds": "CASE WHEN len(workarounds) > 0 THEN workarounds::VARCHAR ELSE '' END",
    "provenance": "provenance",
    "throughput_unit": UNIT_SQL,
}
_NEEDS = {"throughput_unit": "throughput_unit"}  # of a rate alone
#: Of their outputs, with what makes one of several launches.
_OUTPUTS = {
    "verification": (f"(verification IN ({', '.join(map(repr, VERIFIED))}))", "bool_or"),
    "verification_error": ("verification_error", "max"),
}

KindsAndOutputs = tuple[Kinds, Outputs]


class KindsRead:
    """Columns to ask for of a run or a series, and objects of what they say."""

    def __init__(self, metric: Metric) -> None:
        self._names = [name for name in _KINDS if metric.rated or name not in _NEEDS]
        self._outputs = [*_OUTPUTS.values()]
        self._kinds: dict[tuple[object, ...], Kinds] = {}
        self._known: dict[tuple[object, ...], Outputs] = {}

    @property
    def sql(self) -> str:
        """What to ask for of a run: the least and the largest of each kind, and its outputs."""
        ends = (f"{end}({_KINDS[name]})" for name in self._names for end in ("min", "max"))
        return ", ".join((*ends, *(f"{merge}({sql})" for sql, merge in self._outputs)))

    @property
    def sql_of_all(self) -> str:
        """What to ask for of a series: the least, the largest and the number of each."""
        each = (*(_KINDS[name] for name in self._names), *(sql for sql, _ in self._outputs))
        return ", ".join(f"min({sql}), max({sql}), count({sql})" for sql in each)

    def of(self, row: Sequence[object]) -> KindsAndOutputs:
        """What a run is of, of which alike runs share one object: most are alike."""
        count = 2 * len(self._names)
        ends, outputs = tuple(row[:count]), tuple(row[count:])
        kinds = self._kinds.get(ends)
        if kinds is None:
            kinds = self._kinds[ends] = self._rows(ends[::2], ends[1::2])
        known = self._known.get(outputs)
        if known is None:
            verified, error = outputs
            known = self._known[outputs] = Outputs(
                bool(verified), error if isinstance(error, int | float) else None
            )
        return kinds, known

    def of_all(self, count: int, row: Sequence[object]) -> KindsAndOutputs | None:
        """What every run of a series is of; None where they differ.

        Args:
            count: how many launches it has.
            row: of `sql_of_all`.
        """
        least, most, counts = row[::3], row[1::3], row[2::3]
        if any(number not in (0, count) for number in counts) or list(least) != list(most):
            return None
        kinds = len(self._names)
        ends = (end for pair in zip(least[:kinds], most[:kinds], strict=True) for end in pair)
        return self.of((*ends, *least[kinds:]))

    def _rows(self, least: Sequence[object], most: Sequence[object]) -> Kinds:
        rows = [
            {name: _value(name, value) for name, value in zip(self._names, end, strict=True)}
            | {"throughput": 1.0}  # its unit is that of a rate, said or made of a step
            for end in (least, most)
        ]
        return (rows[0],) if rows[0] == rows[1] else tuple(rows)


def _value(name: str, value: object) -> object:
    return ([value] if value else []) if name == "workarounds" else value
