"""What some results come to, in sentences: how many, what is fastest, what is not certain. Pure.

What was measured at one place of an axis alone: figures without a side to compare with. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from statistics import median

from accelbench.core.devices import device_count, engine_at, sharing_unit
from accelbench.core.formatting import (
    UNKNOWN_ENGINE,
    describe_references,
    format_batch,
    format_count,
    format_digits,
)
from accelbench.core.precision import summarise_inexact
from accelbench.core.result_statistics import (
    Statistic,
    item_count,
    item_ms,
    statistic_name,
    throughput_unit,
)
from accelbench.core.rows import Row, number
from accelbench.core.unusable_reasons import is_mostly_failed, reasons_unusable
from accelbench.core.vocabulary import SINGLE_STREAM, Quality, Status
from accelbench.evidence.launches import latest_start, launches_of
from accelbench.judge.comparison import Compared, unlike
from accelbench.judge.points import EMULATED, Point, common_batch
from accelbench.judge.questions import SHAPES, ComparisonAxis, Key, values
from accelbench.judge.ratios import LAUNCHES, Faster, Ratio, is_faster, quickest, ratio
from accelbench.judge.run_noise import Histories
from accelbench.judge.sides import sides
from accelbench.measure.launch_verdicts import aa_noise, geometric_mean

#: More models than this are told of in tables alone.
_MOST_MODELS = 12
#: Cells of a kind that are named, beside their number.
_MOST_NAMED = 4
#: What has to be alike for two times to be of the same work, beside the number of devices.
_WORK = (*SHAPES, "weights", "data_source", "optimizer")


def summary(rows: Sequence[Row], points: Sequence[Point], known: Histories) -> list[str]:
    """Sentences, the most important first.

    Args:
        rows: results of one machine, failed ones too.
        points: what of them has figures.
        known: the older runs of these.
    """
    rows = launches_of(rows)
    return [
        *_counts(rows, points),
        *_fastest(points, known),
        *_verified(rows),
        *_not_run(rows),
        *_doubts(rows, points),
    ]


def fastest_lines(points: Sequence[Point], known: Histories) -> list[str]:
    """What is fastest of each model, mode and scenario, and what is next: a line each.

    Args:
        points: what has figures.
        known: the older runs of these.
    """
    return [*_fastest(points, known)][1:]


def _counts(rows: Sequence[Row], points: Sequence[Point]) -> list[str]:
    done = [row for row in rows if row.get("status") == Status.OK]
    if not done:
        return [f"None of {format_count(len(rows), 'result')} came to a figure."]
    kinds = [
        format_count(len({str(row.get(name)) for row in done}), singular, many)
        for name, singular, many in (
            ("model", "model", "models"),
            ("hardware", "platform", "platforms"),
            ("runtime", "engine", "engines"),
            ("precision", "precision", "precisions"),
        )
    ]
    modes = sorted({str(row.get("mode")) for row in done if row.get("mode")})
    many = (
        f"{format_count(len(points), 'configuration')}"
        f" ({format_count(len(done), 'launch', 'launches')})"
    )
    return [f"{many} of {', '.join(kinds[:-1])} and {kinds[-1]}: {' and '.join(modes)}."]


def _fastest(points: Sequence[Point], known: Histories) -> Iterable[str]:
    """Yield what is fastest of each model, at the batch size that most devices ran.

    Where it gains most is no rule: of noisy figures that would choose the noise. How requests came
    is another question each, and has a line of its own.
    """
    points_by_work: dict[tuple[str, str], dict[str, list[Point]]] = {}
    for point in points:
        if point.timed and point.usable and point.times and point.row["comparable"]:
            work = (str(point.row.get("model")), str(point.row.get("mode")))
            points_by_work.setdefault(work, {}).setdefault(_scenario(point), []).append(point)
    if not points_by_work:
        return
    every = [answers for scenarios in points_by_work.values() for answers in scenarios.values()]
    several = _several_devices([answer for answers in every for answer in answers])
    yield _what_is_fastest(every)
    selection = sorted(points_by_work)[:_MOST_MODELS]
    for model, mode in selection:
        for _, answers in sorted(points_by_work[model, mode].items()):  # by scenario
            yield _one_fastest(model, mode, answers, several, known)
    # A model that was trained as well is one.
    if more := len({model for model, _ in points_by_work} - {model for model, _ in selection}):
        yield f"{format_count(more, 'more model')} in the tables."


def _what_is_fastest(every: Iterable[Sequence[Point]]) -> str:
    """What the lines below it say, and what they leave out."""
    mixed = any(len({device_count(point.row) for point in points}) > 1 for points in every)
    many = ", of as many devices as most results there (others: in the tables)" if mixed else ""
    return f"Fastest at the batch size that most devices ran{many}, and what is next elsewhere:"


def _alike(points: Sequence[Point]) -> list[Point]:
    """Return those at the common batch, of the size of work that most were asked, fastest first.

    Of as many devices as well: that several are faster than one is no news.
    """
    common = common_batch(points)
    candidates = [point for point in points if _batch(point) == common]
    work = Counter(_work(point) for point in candidates)
    most = min(work, key=lambda key: (-work[key], str(key)))
    return sorted((point for point in candidates if _work(point) == most), key=_time)


def _scenario(point: Point) -> str:
    return str(point.row.get("scenario") or SINGLE_STREAM)


def _batch(point: Point) -> int | None:
    """None where nobody says it: that is no batch of one."""
    batch = number(point.row, "batch_size")
    return int(batch) if batch else None


def _question(point: Point, others: Iterable[Point]) -> str:
    """What was asked of it beside the model: batch, size, and what is unusual.

    The number of devices too, where there are several or others are of another number.
    """
    row, batch = point.row, _batch(point)
    scenario, devices = _scenario(point), device_count(row)
    many = devices > 1 or any(device_count(point.row) != devices for point in others)
    parts = [
        format_batch(batch),
        f"{row['image_size']} px" if row.get("image_size") else "",
        "" if scenario == SINGLE_STREAM else scenario,
        format_count(devices, *_noun(row)) if many else "",
    ]
    return ", ".join(part for part in parts if part)


def _noun(row: Row) -> tuple[str, str]:
    """What several share a step as, one and many."""
    several = sharing_unit(row)
    return ("process" if several == "processes" else "device"), several


def _work(point: Point) -> Key:
    return device_count(point.row), *values(point.row, _WORK)


def _time(point: Point) -> tuple[float, str]:
    known = point.times
    return (geometric_mean(known[1]) if known else float("inf"), _by(point))


def _several_devices(points: Sequence[Point]) -> set[str]:
    """The platforms of which there is more than one device, so that their name says too little."""
    devices: dict[str, set[str]] = {}
    for point in points:
        place = devices.setdefault(str(point.row.get("hardware")), set())
        place.add(str(point.row.get("device_name")))
    return {platform for platform, names in devices.items() if len(names) > 1}


def _one_fastest(
    model: str, mode: str, answers: Sequence[Point], several: set[str], known: Histories
) -> str:
    """A line of a model in one mode and scenario.

    Args:
        model: its name.
        mode: inference or training.
        answers: whatever answered, at every batch, size of work and number of devices.
        several: platforms of which there is more than one device.
        known: the older runs of these.
    """
    candidates = _alike(answers)
    points = [point for point in candidates if not summarise_inexact(point.rows)] or candidates
    best = points[quickest([point.rows for point in points])]
    line = f"{model}, {mode}, {_question(best, answers)}: {_told(best, several)}"
    doubtful = [point for point in candidates if point not in points]
    quick = [point for point in doubtful if is_faster(point.rows, best.rows)]
    slow = [point for point in doubtful if point not in quick]
    others = _beside(best, points, several) or _beside(best, slow, several)
    remarks = [_next(best, others, several, known)] if others else []
    if quick:
        first = quick[quickest([point.rows for point in quick])]
        remarks.append(f"faster, and not known to be exact: {_told(first, several)}")
    return f"{line}; {'; '.join(remarks) or 'nothing usable beside it to compare with'}."


def _told(point: Point, several: Collection[str]) -> str:
    """How something ran, what it takes, and what is not known of its outputs."""
    why = summarise_inexact(point.rows)
    return f"{_by(point, several)}, {_figure(point)}{f' ({why})' if why else ''}"


def _beside(best: Point, points: Sequence[Point], several: Collection[str]) -> list[Point]:
    """What the fastest may be compared with: elsewhere, else another engine or precision there.

    Of one place another engine or precision: else a thing would be beside itself.
    """
    alike = [point for point in points if point is not best and not unlike(best.rows, point.rows)]
    elsewhere = [point for point in alike if _where(point) != _where(best)]
    return elsewhere or [point for point in alike if _by(point, several) != _by(best, several)]


def _where(point: Point) -> Key:
    return point.row.get("hardware"), point.row.get("device_name"), point.machine


def _next(best: Point, others: Sequence[Point], several: set[str], known: Histories) -> str:
    """The quickest of the others, and how much longer it takes.

    Args:
        best: the fastest.
        others: what it may be compared with.
        several: platforms of which there is more than one device.
        known: the older runs of these.
    """
    other = others[quickest([point.rows for point in others])]
    speedup, next_one = ratio(best.rows, other.rows, known), _by(other, several)
    if why := summarise_inexact(other.rows):
        next_one += f" ({why})"
    if speedup is None:
        return f"next to it {next_one}, of which another figure is known"
    if not speedup.told:
        if speedup.direction is Faster.FASTER:
            return f"{next_one} is slower, by how much cannot be told ({_sure(speedup)})"
        return f"whether {next_one} is slower cannot be told ({_sure(speedup)})"
    more = f"; {speedup.otherwise}" if speedup.otherwise else ""
    return f"{next_one} takes {speedup.value:.2f}× as long ({_sure(speedup)}{more})"


def _figure(point: Point) -> str:
    """What an item takes, and which figure that is."""
    known = point.times
    assert known is not None
    statistic, times = known
    if statistic is Statistic.RATE or all(item_ms(row, statistic) is None for row in point.rows):
        return f"{format_digits(1e3 / geometric_mean(times))} {throughput_unit(point.row)}"
    steps = [
        ms * item_count(row) for row in point.rows if (ms := item_ms(row, statistic)) is not None
    ]
    name = "" if statistic is Statistic.MEDIAN else f" ({statistic_name(statistic)})"
    return f"{format_digits(geometric_mean(steps))} ms a step{name}"


def _sure(speedup: Ratio) -> str:
    if speedup.low is None or speedup.high is None:
        return speedup.no_interval
    of = "" if speedup.of == LAUNCHES else " within single launches"
    return f"95 % interval of the ratio{of} {speedup.ends_text(format_digits)}"


def _times(point: Point) -> list[float]:
    known = point.times
    return [] if known is None else list(known[1])


def _by(point: Point, several: Collection[str] = ()) -> str:
    row = point.row
    place = str(row.get("hardware"))
    if place in several and row.get("device_name"):
        place = str(row["device_name"])
    precision = f" in {row['precision']}" if row.get("precision") else ""
    return f"{engine_at(str(row.get('runtime') or UNKNOWN_ENGINE), place)}{precision}"


def _verified(rows: Sequence[Row]) -> list[str]:
    done = [row for row in rows if row.get("status") == Status.OK]
    counts = Counter(str(row.get("verification") or "not_done") for row in done)
    held = [row for row in done if row.get("verification") == "ok"]
    wrong = sum(row.get("reason") == "wrong_outputs" for row in rows)
    parts = [
        f"{counts['ok']} compared with {describe_references(held)}, and within their tolerance"
        if counts["ok"]
        else "",
        f"{counts['reference']} are that reference" if counts["reference"] else "",
        f"{wrong} were wrong, and have no figures" if wrong else "",
        f"{counts['not_done']} not verified" if counts["not_done"] else "",
    ]
    phrases = [part for part in parts if part]
    return [f"Outputs: {'; '.join(phrases)}."] if phrases else []


def _not_run(rows: Sequence[Row]) -> list[str]:
    why = Counter(
        f"{row.get('status')} ({row.get('reason')})"
        for row in rows
        if row.get("status") != Status.OK
    )
    if not why:
        return []
    listing = ", ".join(f"{number} {cause}" for cause, number in why.most_common(5))
    more = sum(why.values()) - sum(number for _, number in why.most_common(5))
    return [f"Without a figure: {listing}{f' and {more} more' if more else ''}."]


#: Qualities that say nothing against a figure, or that nothing judged it.
_SURE = (None, Quality.CONVERGED.value, Quality.FIXED.value)


def _doubts(rows: Sequence[Row], points: Sequence[Point]) -> list[str]:
    ran = [row for row in rows if row["answered"]]
    done = [row for row in ran if not is_mostly_failed([row])]
    fixed = sum(row.get("quality") == Quality.FIXED.value for row in done)
    unsure = sum(row.get("quality") not in _SURE for row in done)
    single = sum(len(point.rows) < 2 for point in points if point.kind == "measured")
    emulated = sum(point.kind == EMULATED for point in points)
    kinds = Counter(point.kind for point in points if point.kind not in ("measured", EMULATED))
    doubts = []
    if unsure:
        doubts.append(
            f"{unsure} of {format_count(len(done), 'launch', 'launches')} did not become as"
            " steady as"
            " asked: noise, time or the device ended them."
        )
    if fixed:
        doubts.append(
            f"{fixed} of {format_count(len(done), 'launch', 'launches')} of as many samples as were"
            " asked for: nothing judged whether they suffice."
        )
    if useless := [row for row in done if not row["times_usable"]]:
        doubts.append(
            f"{len(useless)} of {format_count(len(done), 'launch', 'launches')} unusable:"
            f" {reasons_unusable(useless)}. Nothing is judged or chosen by them."
        )
    if few := len(ran) - len(done):
        doubts.append(
            f"{format_count(few, 'launch', 'launches')} unusable: of their configurations more"
            " than half"
            " of the launches failed. Nothing is judged or chosen by them."
        )
    if since := _failed_since(rows, points):
        names = "; ".join(since[:_MOST_NAMED]) + ("; …" if len(since) > _MOST_NAMED else "")
        doubts.append(
            f"{format_count(len(since), 'configuration')} shown by an older run, as a newer one"
            " came to"
            f" nothing: {names}."
        )
    if single:
        doubts.append(
            f"{format_count(single, 'configuration')} of a single launch{_apart(points)}: how far"
            " another would differ it does not show. Measure with --launches 5."
        )
    if emulated:
        doubts.append(
            f"{format_count(emulated, 'configuration')} ran on a stand-in: such times mean nothing."
        )
    doubts += [
        f"{format_count(number, 'configuration')} {kind}, not measured here."
        for kind, number in kinds.items()
    ]
    return doubts


def _failed_since(rows: Sequence[Row], points: Sequence[Point]) -> list[str]:
    """The cells whose figures are of an older run, each with what became of the newer one."""
    failed: dict[object, Row] = {}
    for row in rows:
        if not row["answered"] and row.get("case_id") and row.get("status") != Status.SKIPPED:
            known = failed.get(row["case_id"])
            if known is None or str(row.get("started_at")) > str(known.get("started_at")):
                failed[row["case_id"]] = row
    cells = []
    for point in points:
        lost = failed.get(point.row.get("case_id"))
        if lost is None or lost.get("run_id") in {row.get("run_id") for row in point.rows}:
            continue
        if str(lost.get("started_at") or "") > latest_start(point.rows):
            why = str(lost.get("reason") or lost.get("status")).replace("_", " ")
            cells.append(f"{point.row.get('model')}, {_by(point)} ({why})")
    return cells


def _apart(points: Sequence[Point]) -> str:
    """How far launches differ where there are several."""
    timed = [point for point in points if point.kind == "measured" and len(point.rows) > 1]
    known = [noise for point in timed if (noise := aa_noise(_times(point))) is not None]
    if not known:
        return ""
    return f", and launches of the others differ by {median(known):.1%} in the middle"


def single(rows: Iterable[Row], axis: ComparisonAxis) -> list[list[Compared]]:
    """Each question's sides without a baseline, in the form of a comparison."""
    questions = sides(list(rows), axis, lambda places: min(places, key=str))
    return [[Compared(side, None) for side in places.values()] for places in questions]
