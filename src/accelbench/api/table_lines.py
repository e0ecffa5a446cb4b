"""Lines of a table that a notebook shows, hands on as a DataFrame and draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from accelbench.core.absent import NO_DATA
from accelbench.core.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from accelbench.api.drawn_chart import DrawnChart
    from accelbench.api.store_question import StoreQuestion

Line = Mapping[str, Any]
#: Width and height of a picture in a line, and the room at its ends.
WIDE, HIGH, EDGE = 160.0, 28.0, 5.0
#: Lines that a notebook shows; what is beyond is counted.
SHOWN = 200


@dataclass(frozen=True)
class TableLines(Sequence[Line]):
    """Lines of a table: a sequence of mappings, as the command's --json has them.

    Attributes:
        lines: each by the names of a document of the command.
        asked: of which store it is; None of what is in no store.
    """

    lines: Sequence[Line]
    asked: StoreQuestion | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.lines)

    @overload
    def __getitem__(self, at: int) -> Line: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Line]: ...

    def __getitem__(self, at: int | slice) -> Line | Sequence[Line]:
        return self.lines[at]

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def to_pandas(self) -> Any:
        """A DataFrame of pandas, a line a row.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise MissingExtraError("pandas", "frames", "A DataFrame") from error
        return pandas.DataFrame(list(self.lines))

    def drawn(self, chart: str) -> DrawnChart:
        """A chart of what they are of.

        Raises:
            UsageError: they are of no store, there is no such chart, or nothing to show.
        """
        if self.asked is None:
            raise UsageError(
                "These lines are of no store, and no chart is drawn of them.",
                "Draw the results that they are of: result.plot().",
            )
        return self.asked.drawn(chart)


def figure_text(value: float | None, unit: str = "") -> str:
    """A figure with its unit, in four digits; no line ends between the two."""
    if value is None:
        return NO_DATA
    shown = f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{shown}\u00a0{unit}" if unit else shown


def across(at: float, most: float, least: float = 0.0) -> float:
    """Where a value stands in the width of a picture."""
    share = (at - least) / (most - least) if most > least else 0.5
    return round(EDGE + share * (WIDE - 2 * EDGE), 1)
