"""What makes two figures comparable: one question, asked along one axis. Pure.

Everything that was asked is of the question, but for the axis, and for what has to differ
along it: another platform has another runtime, another model other weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter

from accelbench.core.axes import COLUMN_ORDER, size_columns
from accelbench.core.columns import CONFIGURATION_COLUMNS
from accelbench.core.identity import canonical_json
from accelbench.core.rows import Json, Row

Key = tuple[object, ...]

#: The sizes that a model has for itself.
SHAPES = size_columns(*COLUMN_ORDER)
#: Of conditions, what is told apart elsewhere or says nothing of how it was measured.
PASSED_OVER = ("source", "said", "kin", "job_id", "ID", "cases_before_in_worker")
#: Of conditions, what describes a result and its place in words, as MLPerf's submissions do: told
#: in full by JSON, and no reason to doubt that two ran alike.
DESCRIBING = frozenset(
    ("Accuracy", "Notes", "Platform", "Power_Units", "Processor", "Submitter", "System")
)


@dataclass(frozen=True)
class ComparisonAxis:
    """A direction of comparing: what is compared with each other, and what goes along with it."""

    name: str
    columns: tuple[str, ...]
    along: tuple[str, ...] = ()

    def value(self, row: Row) -> Key:
        """Where a row stands on it."""
        if self.name == "date":
            return (str(row.get("started_at") or "")[:10],)
        return tuple(map(row.get, self.columns))

    def question(self, row: Row) -> Key:
        """What has to be alike: all that was asked, but for the axis and what goes along.

        An engine may be a platform of its own, as OpenVINO is: those of one device are alike that
        ran on it, by whatever name of a platform.
        """
        if "hardware" in self.along:
            return (physical(row), *values(row, self.alike))
        return values(row, self.alike)

    def question_in(self, asked: Key, row: Row) -> Key:
        """The same question, of a row whose values of `ASKED` are known: every axis picks its own.

        Args:
            asked: `values` of the row in the columns of `ASKED`.
            row: where it ran.
        """
        picked = self._pick(asked)
        return (physical(row), *picked) if "hardware" in self.along else picked

    @cached_property
    def _pick(self) -> Callable[[Key], Key]:
        return picker(self.alike)

    def way(self, row: Row) -> Key:
        """What went along: of several ways to one value one stands for it (`matching`)."""
        return values(row, self.along)

    @cached_property
    def alike(self) -> tuple[str, ...]:
        """The columns of a question."""
        left_out = {*self.columns, *self.along}
        return tuple(name for name in CONFIGURATION_COLUMNS if name not in left_out)


def physical(row: Row) -> object:
    """The device as a thing: OpenVINO's processor is the machine's."""
    return row.get("device_name") or row.get("hardware")


#: A processor's threads and whether a compiler is in it go along with the engine.
_ENGINE = ("compiled", "threads")
AXES: Mapping[str, ComparisonAxis] = {
    axis.name: axis
    for axis in (
        ComparisonAxis("hardware", ("hardware", "device_name"), ("runtime", *_ENGINE)),
        # All engines of a device, those that are platforms of their own too; by two words.
        ComparisonAxis("runtime", ("runtime",), ("hardware", *_ENGINE)),
        ComparisonAxis("engine", ("runtime",), ("hardware", *_ENGINE)),
        ComparisonAxis("precision", ("precision",), _ENGINE),
        ComparisonAxis("batch", ("batch_size",)),
        ComparisonAxis("model", ("model",), (*SHAPES, "weights")),
        # What a model is trained on is no prompt.
        ComparisonAxis("mode", ("mode",), (*SHAPES, "optimizer", *_ENGINE)),
        ComparisonAxis("threads", ("threads",), ("options",)),
        ComparisonAxis("run", ("run_id",)),
        ComparisonAxis("date", ("started_at",)),
    )
}


#: Words for an axis beside its name and its columns, and options of `run`.
_SYNONYMS = {
    "platform": "hardware",
    "device": "hardware",
    "framework": "engine",
    "backend": "engine",
    "dtype": "precision",
    "commit": "run",
    "label": "run",
    "day": "date",
    "time": "date",
}


def meant_by_column(word: str) -> str:
    """Return the advice for a word that is a column or another word of an axis, or ""."""
    key = word.lower().replace("-", "_").strip("_")
    for name in (key, key.removesuffix("s")):
        for axis in AXES.values():
            if name in axis.columns:
                return f"Did you mean {axis.name}?"
        if name in _SYNONYMS:
            return f"Did you mean {_SYNONYMS[name]}?"
    return ""


def flat(conditions: Json, before: str = "") -> dict[str, str]:
    """Conditions by name, those within others as a.b; without what says nothing of how it ran."""
    texts: dict[str, str] = {}
    for name, value in conditions.items():
        if name in PASSED_OVER:
            continue
        if isinstance(value, Mapping):
            texts |= flat(value, f"{before}{name}.")
        elif value is not None:
            texts[f"{before}{name}"] = str(value)
    return texts


#: Thousands of results share a few objects, of options and conditions, which stay as they are.
_KNOWN: dict[int, tuple[object, str]] = {}
_MOST_KNOWN = 4096


def plain(value: object) -> object:
    """A value that can be a key, and is the same however its parts are ordered."""
    if not isinstance(value, (dict, list)):
        return value
    if not value:
        return str(value)  # {} and [] as JSON has them
    known = _KNOWN.get(id(value))
    if known is not None and known[0] is value:
        return known[1]
    made = canonical_json(value)
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN[id(value)] = (value, made)
    return made


@cache
def picker(names: tuple[str, ...]) -> Callable[[Key], Key]:
    """What takes out of the values of `ASKED` those of some columns, two or more of them.

    A report asks a dozen times for parts of the question of each of thousands of points: to take
    them out of one tuple is a tenth of reading them from the row.
    """
    take: Callable[[Key], Key] = itemgetter(*map(CONFIGURATION_COLUMNS.index, names))
    return take


_NO_KEYS = (dict, list)


def values(row: Row, names: Sequence[str]) -> Key:
    """What stands in these columns, as a key."""
    get = row.get
    cells = [get(name) for name in names]
    return tuple([plain(cell) if isinstance(cell, _NO_KEYS) else cell for cell in cells])
