"""What some results come to, in sentences: how many, what is fastest, what is not certain. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from accelbench.analysis.comparison import Compared, compared
from accelbench.analysis.points import EMULATED, Point
from accelbench.analysis.questions import AXES, Row
from accelbench.core.nouns import counted
from accelbench.core.provenance import comparable
from accelbench.core.words import Quality, Status

#: More models than this are told of in tables alone.
_MOST_MODELS = 12


def summary(rows: Sequence[Row], points: Sequence[Point]) -> list[str]:
    """Sentences, the most important first.

    Args:
        rows: results of one machine, failed ones too.
        points: what of them has figures.
    """
    return [
        *_counts(rows, points),
        *_fastest(rows),
        *_verified(rows),
        *_not_run(rows),
        *_doubts(rows, points),
    ]


def _counts(rows: Sequence[Row], points: Sequence[Point]) -> list[str]:
    done = [row for row in rows if row.get("status") == Status.OK]
    if not done:
        return [f"None of {counted(len(rows), 'result')} came to a figure."]
    kinds = [
        counted(len({str(row.get(name)) for row in done}), one, many)
        for name, one, many in (
            ("model", "model", "models"),
            ("hardware", "platform", "platforms"),
            ("runtime", "engine", "engines"),
            ("precision", "precision", "precisions"),
        )
    ]
    modes = sorted({str(row.get("mode")) for row in done if row.get("mode")})
    many = f"{counted(len(points), 'cell')} ({counted(len(done), 'launch', 'launches')})"
    return [f"{many} of {', '.join(kinds[:-1])} and {kinds[-1]}: {' and '.join(modes)}."]


def _fastest(rows: Sequence[Row]) -> Iterable[str]:
    """Of each model what is fastest beside the CPU."""
    told: dict[str, tuple[float, str]] = {}
    for lines in compared(filter(comparable, rows), AXES["hardware"]):
        known = [one for one in lines if one.speedup is not None and one.side.row.get("hardware")]
        if len(known) < 2:
            continue
        best = max(known, key=lambda one: one.speedup or 0.0)
        row = best.side.row
        key = f"{row.get('model')} {row.get('mode')}"
        if key not in told or (best.speedup or 0.0) > told[key][0]:
            told[key] = (best.speedup or 0.0, _one_fastest(best, known[0]))
    best_first = sorted(told.values(), key=lambda one: -one[0])
    yield from (sentence for _, sentence in best_first[:_MOST_MODELS])


def _one_fastest(best: Compared, base: Compared) -> str:
    row, other = best.side.row, base.side.row
    what = f"{row.get('model')}, {row.get('mode')}, {row.get('precision')}, batch"
    what += f" {row.get('batch_size') or 1}"
    if best is base:
        return f"{what}: nothing was faster than {_on(row)}, {best.side.latency_ms:.3g} ms."
    sure = "of one launch, so that nobody knows how sure it is"
    if best.interval is not None:
        low, high = best.interval.low, best.interval.high
        sure = f"95 % interval {low:.2f} to {high:.2f}"
    return (
        f"{what}: {_on(row)} took {best.side.latency_ms:.3g} ms,"
        f" {best.speedup:.2f}× as fast as {_on(other)} ({sure})."
    )


def _on(row: Row) -> str:
    return f"{row.get('runtime')} on {row.get('hardware')}"


def _verified(rows: Sequence[Row]) -> list[str]:
    done = [row for row in rows if row.get("status") == Status.OK]
    said = Counter(str(row.get("verification") or "not_done") for row in done)
    wrong = sum(row.get("reason") == "wrong_outputs" for row in rows)
    parts = [
        f"{said['ok']} held against PyTorch in fp32 and within their tolerance"
        if said["ok"]
        else "",
        f"{said['reference']} are that reference" if said["reference"] else "",
        f"{wrong} were wrong, and have no figures" if wrong else "",
        f"{said['not_done']} nobody verified" if said["not_done"] else "",
    ]
    told = [part for part in parts if part]
    return [f"Outputs: {'; '.join(told)}."] if told else []


def _not_run(rows: Sequence[Row]) -> list[str]:
    why = Counter(
        f"{row.get('status')} ({row.get('reason')})"
        for row in rows
        if row.get("status") != Status.OK
    )
    if not why:
        return []
    told = ", ".join(f"{number} {one}" for one, number in why.most_common(5))
    more = sum(why.values()) - sum(number for _, number in why.most_common(5))
    return [f"Without a figure: {told}{f' and {more} more' if more else ''}."]


def _doubts(rows: Sequence[Row], points: Sequence[Point]) -> list[str]:
    done = [row for row in rows if row.get("status") == Status.OK]
    unsure = sum(row.get("quality") not in (None, Quality.CONVERGED.value) for row in done)
    single = sum(len(one.rows) < 2 for one in points if one.kind == "measured")
    emulated = sum(one.kind == EMULATED for one in points)
    kinds = Counter(one.kind for one in points if one.kind not in ("measured", EMULATED))
    told = []
    if unsure:
        told.append(
            f"{unsure} of {counted(len(done), 'launch', 'launches')} did not become as steady as"
            " asked: noise, time or a fixed number of samples ended them."
        )
    if single:
        told.append(
            f"{counted(single, 'cell')} of a single launch: launches differ by 3 to 7 %, which one"
            " alone does not show. Measure with --launches 5."
        )
    if emulated:
        told.append(f"{counted(emulated, 'cell')} ran on a stand-in: such times mean nothing.")
    told += [
        f"{counted(number, 'cell')} {kind}, nobody measured it here."
        for kind, number in kinds.items()
    ]
    return told
