"""What two things are beside each other, in a sentence, and who loses by name. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.analysis.comparison import Compared
from accelbench.analysis.ratios import SAMPLES
from accelbench.analysis.speed_ups import (
    FASTER,
    FASTER_ALONE,
    REFUSED,
    SLOWER,
    SLOWER_ALONE,
    UNSURE,
    SpeedUps,
    other_versions,
)
from accelbench.core.nouns import counted, digits
from accelbench.core.rows import text
from accelbench.report.charts.phrases import safe
from accelbench.report.dashboard.entities.common_ground import CommonGround, TwoSides

#: So many losers are named in a sentence.
_NAMED = 5


def answer(two: TwoSides, ground: CommonGround) -> str:
    """The middle, of how much, and what is otherwise."""
    base, other = safe(two.base, 60), safe(two.other, 60)
    where = f" on {safe(two.device, 60)}" if two.device else ""
    made, middle = ground.made, ground.made.median
    if not made.lines:
        noun = "devices" if two.of_devices else "engines"
        narrowed = " that was asked for" if two.narrowed else ""
        return (
            f"Nothing to compare with each other: these {noun} have no configuration{narrowed} in"
            f" common{where}."
        )
    if middle is None:
        return f"Can't tell how {other} compares with {base}{where}: {_why(made)}."
    what = f"{counted(len(made.told), 'common configuration')} of {counted(made.models, 'model')}"
    if ground.held < ground.count:
        what += f" ({ground.held:,} of the {ground.count:,} in common, chosen by a fixed rule)"
    told = set(map(id, made.told))
    counts = [
        f"{found} in {_counted(lines)}"
        for found in (FASTER, FASTER_ALONE, SLOWER, SLOWER_ALONE, UNSURE)
        if (lines := [line for line in made.of(found) if id(line) in told])
    ]
    refused = len(made.of(REFUSED))
    rough = len(made.lines) - refused - len(told)
    beside = [
        f"{count:,} {what}"
        for count, what in ((rough, "known too roughly for a ratio"), (refused, "not compared"))
        if count
    ]
    more = f" Beside these {' and '.join(beside)}." if beside else ""
    return (
        f"{other} is {digits(middle)}× as fast as {base}{where} in the median of {what}:"
        f" {'; '.join(counts)}.{more}"
    )


def _counted(lines: Sequence[Compared]) -> str:
    """How many; of how many of them nobody knows how another launch would differ, and of how many
    other versions ran.
    """
    counts = (
        (sum(line.ratio is not None and line.ratio.of == SAMPLES for line in lines), _WITHIN),
        (sum(bool(other_versions(line)) for line in lines), "with other versions"),
    )
    beside = "".join(
        f", {'all' if count == len(lines) else f'{count:,}'} of them {what}"
        for count, what in counts
        if count
    )
    return f"{len(lines):,}{beside}"


_WITHIN = "within single launches"


def _why(made: SpeedUps) -> str:
    refused = made.of(REFUSED)
    if len(refused) == len(made.lines):
        reasons = dict.fromkeys(line.refused for line in refused)
        return f"all {len(made.lines):,} are {safe('; '.join(reasons), 160)}"
    return "the intervals span more than a factor of 2"


def losers(ground: CommonGround) -> Sequence[str]:
    """The configurations in which the other is slower, the slowest first.

    Those of which that is certain; by single figures where none is.
    """
    made = ground.made
    slower = made.of(SLOWER) or made.of(SLOWER_ALONE)
    more = [f"and {len(slower) - _NAMED:,} more"] if len(slower) > _NAMED else []
    # Of engines on any device the same configuration comes once a device, and a unit of it.
    places = {_place(line) for line in made.lines}
    return [*(_named(line, len(places) > 1) for line in slower[:_NAMED]), *more]


def _place(line: Compared) -> str:
    """The device, and the unit of it that either side ran on."""
    row, base = line.side.row, (line.baseline or line.side).row
    units = dict.fromkeys(text(one, "hardware") for one in (row, base))
    name = text(row, "device_name")
    known = [safe(one, 40) for one in (name, " against ".join(filter(None, units))) if one]
    return ", ".join(known)


def _named(line: Compared, with_place: bool) -> str:
    row, ratio = line.side.row, line.ratio
    assert ratio is not None
    batch = f"batch {row['batch_size']}" if row.get("batch_size") else ""
    place = _place(line) if with_place else ""
    parts = [safe(text(row, "precision"), 20), batch, place, _versions(line)]
    return f"{safe(row.get('model'), 60)} ({', '.join(filter(None, parts))}) {digits(ratio.value)}×"


def _versions(line: Compared) -> str:
    """The first of other versions, and how many more there are; "" where all are alike."""
    first, *more = other_versions(line) or [""]
    said = safe(first.removeprefix("engine ").removeprefix("packages."), 80)
    rest = f" and {len(more):,} more" if more else ""
    return f"≠ {said}{rest}" if said else ""
