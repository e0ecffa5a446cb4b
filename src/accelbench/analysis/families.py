"""From models to their family: what a platform is worth for the models of one kind. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from accelbench.analysis.cells import Availability, MatrixCell, MatrixLine, Rating

_ORDER = (Rating.NONE, Rating.LOW, Rating.MEDIUM, Rating.HIGH)


def family_lines(models: Sequence[MatrixLine], hardware: Sequence[str]) -> tuple[MatrixLine, ...]:
    """One line a family, from the lines of its models."""
    of_family: dict[str, list[MatrixLine]] = defaultdict(list)
    for line in models:
        of_family[line.family].append(line)
    return tuple(
        MatrixLine(name, "", {hw: _cell([(m.name, m.cells[hw]) for m in lines]) for hw in hardware})
        for name, lines in sorted(of_family.items())
    )


def _cell(named: Sequence[tuple[str, MatrixCell]]) -> MatrixCell:
    tried = [(n, c) for n, c in named if c.has_result]
    if not tried:
        return _same([cell for _, cell in named])
    runs = [(name, cell) for name, cell in tried if cell.compatible]
    broken = [name for name, cell in tried if not cell.compatible]
    if not runs:
        first = tried[0][1]
        reason = f"none of {_models(len(tried))} goes through; {tried[0][0]}: {first.reason}"
        return MatrixCell(
            Availability.INCOMPATIBLE, reason=reason, token=first.token, advice=first.advice
        )
    rating = _middle([cell.rating for _, cell in runs], len(broken))
    emulated = all(cell.emulated for _, cell in runs)
    return MatrixCell(
        Availability.COMPATIBLE,
        rating,
        _said(runs, broken, [cell for _, cell in named if not cell.has_result]),
        token=_token([cell for _, cell in runs]) if rating is Rating.NONE else "",
        emulated=emulated,
        runtimes=tuple(sorted({runtime for _, cell in runs for runtime in cell.runtimes})),
        workarounds=tuple(dict.fromkeys(w for _, cell in runs for w in cell.workarounds)),
    )


def _token(runs: Sequence[MatrixCell]) -> str:
    """Of models without a rating, why most of them have none."""
    counted = Counter(cell.token for cell in runs)
    return min(counted, key=lambda token: (-counted[token], token))


def _middle(ratings: Sequence[Rating], broken: int) -> Rating:
    """The lower of the two middle ratings; what is broken is the lowest, and nothing is high then.

    What goes through without a rating neither raises nor lowers it.
    """
    rated = [rating for rating in ratings if rating is not Rating.NONE]
    if not rated:
        return Rating.NONE
    levels = sorted([_ORDER.index(rating) for rating in rated] + [0] * broken)
    # Something does go through there: low, not none.
    middle = max(1, levels[(len(levels) - 1) // 2])
    return _ORDER[min(middle, 2) if broken else middle]


def _said(
    runs: Sequence[tuple[str, MatrixCell]], broken: Sequence[str], others: Sequence[MatrixCell]
) -> str:
    tried = len(runs) + len(broken)
    levels = [
        f"{sum(c.rating is r for _, c in runs)} {r}"
        for r in reversed(_ORDER)
        if any(c.rating is r for _, c in runs)
    ]
    summary = f"{len(runs)} of {_models(tried)} tried go through: {', '.join(levels)}"
    summary = summary.replace(" n/a", " without a rating")
    if broken:
        summary += f"; incompatible: {', '.join(broken)}"
    counts = sorted(Counter(cell.availability.value for cell in others).items())
    return "".join([summary, *(f"; {count} {availability}" for availability, count in counts)])


def _models(count: int) -> str:
    return f"{count} model{'' if count == 1 else 's'}"


def _same(cells: Sequence[MatrixCell]) -> MatrixCell:
    """Where nothing was tried, every model says why; the first speaks for all."""
    first = cells[0]
    return MatrixCell(
        first.availability, reason=first.reason, token=first.token, advice=first.advice
    )
