"""What some results come to, in sentences: how many, what is fastest, what is not certain. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from accelbench.analysis.points import EMULATED, Point
from accelbench.analysis.questions import Key, Row, values
from accelbench.analysis.run_noise import between_rows
from accelbench.analysis.sides import latency
from accelbench.core.nouns import counted
from accelbench.core.provenance import comparable
from accelbench.core.words import Quality, Status
from accelbench.core.worth import WHY_UNUSABLE, usable
from accelbench.measure.apart import unpaired_interval
from accelbench.measure.launches import aa_noise

#: More models than this are told of in tables alone.
_MOST_MODELS = 12
#: What has to be alike for two times to be of the same work.
_WORK = (
    *("sequence_length", "image_size", "audio_seconds", "denoising_steps", "prompt_tokens"),
    *("new_tokens", "scenario", "world_size", "weights", "data_source", "optimizer"),
)


def summary(rows: Sequence[Row], points: Sequence[Point]) -> list[str]:
    """Sentences, the most important first.

    Args:
        rows: results of one machine, failed ones too.
        points: what of them has figures.
    """
    return [
        *_counts(rows, points),
        *_fastest(points),
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


def _fastest(points: Sequence[Point]) -> Iterable[str]:
    """Of each model what is fastest, at the smallest batch that was measured.

    Where it gains most is no rule: of noisy figures that would choose the noise.
    """
    found: dict[tuple[str, str], list[Point]] = {}
    for one in points:
        if one.timed and one.usable and one.latency and comparable(one.row):
            asked = (str(one.row.get("model")), str(one.row.get("mode")))
            found.setdefault(asked, []).append(one)
    if found:
        yield "Fastest at the smallest batch that was measured, and what is next elsewhere:"
    for asked in sorted(found)[:_MOST_MODELS]:
        yield _one_fastest(*asked, _alike(found[asked]))
    if len(found) > _MOST_MODELS:
        yield f"{counted(len(found) - _MOST_MODELS, 'more model')} in the tables."


def _alike(points: Sequence[Point]) -> list[Point]:
    """Those at the smallest batch, of the one size of work that most were asked, fastest first."""
    smallest = min(_batch(one) for one in points)
    there = [one for one in points if _batch(one) == smallest]
    work = Counter(_work(one) for one in there)
    most = min(work, key=lambda key: (-work[key], str(key)))
    return sorted((one for one in there if _work(one) == most), key=_time)


def _batch(point: Point) -> int:
    return int(point.row.get("batch_size") or 1)


def _work(point: Point) -> Key:
    return values(point.row, _WORK)


def _time(point: Point) -> tuple[float, str]:
    return (point.latency.value if point.latency else float("inf"), _by(point))


def _one_fastest(model: str, mode: str, points: Sequence[Point]) -> str:
    best = points[0]
    told = f"{model}, {mode}, batch {_batch(best)}: {_by(best)}, {_time(best)[0]:.3g} ms"
    place = (best.row.get("hardware"), best.machine)
    others = [one for one in points if (one.row.get("hardware"), one.machine) != place]
    if not others and len(points) == 1:
        return f"{told}; nothing beside it to compare with."
    other = (others or points[1:])[0]
    ratio = _time(other)[0] / _time(best)[0]
    return f"{told}; {_by(other)} takes {ratio:.2f}× as long ({_sure(best, other)})."


def _sure(best: Point, other: Point) -> str:
    runs = between_rows(best.row, other.row)
    known = unpaired_interval(_times(best), _times(other), runs=runs)
    if known is None:
        return "single launches: no interval"
    return f"95 % interval {known.low:.2f} to {known.high:.2f}"


def _times(point: Point) -> list[float]:
    return [time for row in point.rows if (time := latency(row)) is not None]


def _by(point: Point) -> str:
    row = point.row
    return f"{row.get('runtime')} on {row.get('hardware')} in {row.get('precision')}"


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
    if useless := sum(not usable(row) for row in done):
        told.append(
            f"{useless} of {counted(len(done), 'launch', 'launches')} unusable: {WHY_UNUSABLE}."
            " Nothing is judged or chosen by them."
        )
    if single:
        told.append(
            f"{counted(single, 'cell')} of a single launch{_apart(points)}: how far another would"
            " differ it does not show. Measure with --launches 5."
        )
    if emulated:
        told.append(f"{counted(emulated, 'cell')} ran on a stand-in: such times mean nothing.")
    told += [
        f"{counted(number, 'cell')} {kind}, nobody measured it here."
        for kind, number in kinds.items()
    ]
    return told


def _apart(points: Sequence[Point]) -> str:
    """How far launches differ where there are several."""
    timed = [one for one in points if one.kind == "measured" and len(one.rows) > 1]
    known = [noise for one in timed if (noise := aa_noise(_times(one))) is not None]
    if not known:
        return ""
    return f", and launches of the others differ by {median(known):.1%} in the middle"
