"""What each way of running a model came to: the newest word on it, from rows of results. Pure.

A *question* is a model at certain shapes and sizes; a *way* is a runtime on a device with
the options it was given. Rows of one question and one way are launches and repetitions:
those of the run that stands are taken together (`standing`), others are history.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import takewhile

from accelbench.core.devices import device_count_text
from accelbench.core.formatting import format_digits
from accelbench.core.plausible_values import reason_subject
from accelbench.core.precision import MAX_ERROR, is_quantised
from accelbench.core.result_statistics import (
    TAILS,
    Statistic,
    best_statistic,
    rate_of,
    step_of,
    unit_kind,
)
from accelbench.core.rows import Row, number, record, text, texts
from accelbench.core.unusable_reasons import why_unusable
from accelbench.core.vocabulary import VERIFIED, Belongs, Provenance
from accelbench.evidence.launches import with_reported_outputs
from accelbench.evidence.measurements import RunMeasurement, current_measurements, merge_groups
from accelbench.judge.questions import SHAPES
from accelbench.judge.ratios import interval_within
from accelbench.measure.launch_verdicts import geometric_mean, interval_of

#: What must be alike for two throughputs to be of the same work. Threads asked for on
#: purpose belong to it: one thread of a CPU is not that CPU.
QUESTION = (
    "model", "precision", "mode", "scenario", "world_size", "weights", "data_source", "optimizer",
    "batch_size", *SHAPES,
)  # fmt: skip

_PRECISION = QUESTION.index("precision")
Question = tuple[object, ...]
#: What stands in a question, in order.
ASKED_IN = (*QUESTION, "threads", "unit")

#: Two thousand launches of one thing were up to 2.1 times as long as the quickest: by so much a few
#: samples may be off, which say nothing of their own uncertainty.
FEW_DIFFER = 2.0
#: Fewer samples than these are few, unless so many of them are independent.
FEWEST, KNOWN = 30, 20.0

_NO_OPTIONS = "{}"
WRONG = "wrong_outputs"


@dataclass(frozen=True)
class Configuration:
    """How something was run."""

    runtime: str
    options: str = _NO_OPTIONS  # as canonical JSON, threads apart
    device: str = ""
    precision: str = ""  # where ways in several are held together
    together: str = ""  # of several devices or processes how many: "2 processes"

    def __str__(self) -> str:
        return " ".join([self.runtime, *filter(None, (self.together, _told(self.options)))])


@lru_cache(maxsize=1024)  # a matrix names its ways ten thousand times, of a handful of options
def _told(options: str) -> str:
    """Options as they stand beside an engine's name."""
    return " ".join(f"{name}={value}" for name, value in json.loads(options).items())


#: Reasons of a refusal that is about the precision that was asked for.
_OF_PRECISION = frozenset({"precision", "autocast"})


@dataclass(frozen=True)
class Attempt:
    """What one way came to with one question, in the run that stands for it."""

    model: str
    family: str
    hardware: str
    way: Configuration
    question: Question
    batch: int
    ok: bool
    verified: bool
    throughput: float | None  # the middle of good launches; None where no time is of use
    unusable: str = ""  # why what was timed is of no use
    tail: str = ""  # the percentile that is all that is known of its time: 430 ms p90
    emulated: bool = False
    reason: str = ""  # a short stable token, where it is not ok
    message: str = ""
    advice: str = ""
    status: str = "ok"
    verification: str = "not_done"
    why_unverified: str = ""
    error: float | None = None
    workarounds: tuple[str, ...] = ()
    launches: int = 1
    wrong: bool = False  # its outputs were seen to be wrong, in one launch at least
    lost: tuple[str, ...] = ()  # what became of launches that failed beside good ones
    run_id: str = ""
    timed_in: str = ""  # an older run, where the newest only verified
    moment: str = ""
    precision: str = ""
    reach: float = 0.0  # how far its throughput may be off, as a logarithm, either way
    imported: bool = False

    @property
    def exact(self) -> bool:
        """Whether its precision counts beside others that nobody named."""
        return not is_quantised(self.precision) or (
            self.error is not None and self.error <= MAX_ERROR
        )

    @property
    def refused(self) -> bool:
        """Whether the hardware or its engine cannot run the model.

        A precision that the engine does not have is no refusal of the model, if none was named.
        """
        return not self.ok and reason_subject(self.reason) is Belongs.CELL and not self.of_precision

    @property
    def of_precision(self) -> bool:
        """Whether it was refused for its precision, although any precision counts."""
        return bool(self.way.precision) and self.reason in _OF_PRECISION


def attempts(rows: Iterable[Row], *, any_precision: bool = False) -> list[Attempt]:
    """The newest attempt of every way with every question; the order of rows does not matter.

    Args:
        rows: results by column name.
        any_precision: a precision is a way of answering, and no part of the question.
    """
    tried: dict[tuple[Question, str, tuple[object, ...]], list[Row]] = defaultdict(list)
    for row in with_reported_outputs(rows):
        # What was skipped says nothing, and must not stand before what was measured.
        if row["status"] != "skipped":
            question_key = question(row, any_precision=any_precision)
            way = (row["hardware"], row["runtime"], row.get("precision"))
            tried[question_key, _options(row), way].append(row)
    places = [
        (asked, options, runs)
        for (asked, options, _), rows_ in tried.items()
        for runs in _by_device(rows_)
    ]
    every = _current_first([runs for *_, runs in places])
    newest = [
        _attempt(runs, asked, options, any_precision)
        for (asked, options, _), runs in zip(places, every, strict=True)
    ]
    return sorted(newest, key=_place)


def question(row: Row, *, any_precision: bool = False) -> Question:
    """What was asked of the model, whatever ran it."""
    threads = record(row, "options").get("threads")
    unit = unit_kind(str(row.get("throughput_unit") or ""))  # tokens are no sequences
    asked = (*map(row.get, QUESTION), threads, unit)
    return (*asked[:_PRECISION], None, *asked[_PRECISION + 1 :]) if any_precision else asked


def _options(row: Row) -> str:
    rest = {k: v for k, v in record(row, "options").items() if k != "threads"}
    return json.dumps(rest, sort_keys=True) if rest else _NO_OPTIONS


#: Of a result that says neither when it was nor in which run.
_UNKNOWN_MOMENT = ("", "")


def _by_device(rows: Sequence[Row]) -> list[list[list[Row]]]:
    """Device by device, the rows of each run, the newest run first.

    A result without a device (absent hardware, a refusal) is of every device of the platform.
    """
    if len(rows) == 1:
        return [[[*rows]]]
    prints = {row["device_fingerprint"] for row in rows if row.get("device_fingerprint")}
    several = len(prints) > 1  # devices of one name: a mean of both is the time of neither

    def device(row: Row) -> str:
        print_ = str(row.get("device_fingerprint") or "") if several and row["answered"] else ""
        return f"{row.get('device') or ''}{print_}"

    everywhere = [row for row in rows if not device(row)]
    since = max(map(_moment, everywhere), default=_UNKNOWN_MOMENT)
    of_device: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        # Of what says neither a moment nor a run nobody knows whether it was later.
        overtaken = since != _UNKNOWN_MOMENT and _moment(row) <= since
        if device(row) and (not overtaken or _same_run(row, since)):
            of_device[device(row)].append(row)
    if not of_device:
        return [_runs(everywhere)]
    return [_runs(group) for group in of_device.values()]


def _same_run(row: Row, moment: tuple[str, str]) -> bool:
    return str(row.get("run_id") or "") == moment[1] != ""


def _moment(row: Row) -> tuple[str, str]:
    return str(row.get("started_at") or ""), str(row.get("run_id") or "")


def _runs(rows: Sequence[Row]) -> list[list[Row]]:
    runs: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        runs[str(row.get("run_id") or "")].append(row)
    newest_first = sorted(runs.values(), key=lambda run: max(map(_moment, run)), reverse=True)
    return [sorted(run, key=_launch) for run in newest_first]


def _launch(row: Row) -> tuple[object, ...]:
    names = ("arm", "result_id", "status")
    return (row.get("launch") or 0, _moment(row), *(str(row.get(name) or "") for name in names))


@dataclass(frozen=True)
class _Run:
    """The launches of an attempt in one run."""

    rows: Sequence[Row]
    good: RunMeasurement  # of those that answered

    @cached_property
    def way(self) -> set[tuple[tuple[str, ...], bool]]:
        """How its launches went through the exporter, and whether a stand-in ran them."""
        return {(tuple(texts(row, "workarounds")), bool(row.get("emulated"))) for row in self.rows}

    @cached_property
    def throughput(self) -> float | None:
        """Items a second; None if its times decide nothing."""
        values = [rate_of(row) for row in self.good.usable_rows]
        known = [v for v in values if v is not None and math.isfinite(v) and v > 0]
        return geometric_mean(known) if known else None

    @property
    def software(self) -> tuple[object, object]:
        """The software of its launches, and the version of an owner's code."""
        row = self.good.launches[0]
        return row["software_id"], row["owned_version"]


def _attempt(runs: Sequence[_Run], asked: Question, options: str, any_precision: bool) -> Attempt:
    """The word of the run that stands; its time may be that of one before it.

    Args:
        runs: of one way with one question.
        asked: the question.
        options: of the way.
        any_precision: as in `attempts`.
    """
    rows, good, timed = runs[0].rows, runs[0].good.launches, _timed(runs)
    counted = set(map(id, good))  # rows of an import are thousands: to compare them takes seconds
    bad = [row for row in rows if id(row) not in counted]
    first = (good or bad)[0]
    wrong = any(_reason(row) == WRONG for row in bad)
    words = [str(row.get("verification") or "not_done") for row in good]
    known = (number(row, "verification_error") for row in good)
    errors = [error for error in known if error is not None and math.isfinite(error)]
    precision = str(first.get("precision") or "")
    return Attempt(
        model=str(first["model"]),
        family=str(first.get("family") or "unknown"),
        hardware=str(first["hardware"]),
        way=Configuration(
            str(first["runtime"]),
            options,
            str(first.get("device") or ""),
            precision if any_precision else "",
            device_count_text(first, ""),
        ),
        question=asked,
        precision=precision,
        reach=_reach(timed.good) if timed else 0.0,
        imported=first.get("provenance") == Provenance.IMPORTED,
        batch=int(number(first, "batch_size") or 0),
        ok=bool(good),
        verified=bool(good) and not wrong and VERIFIED.issuperset(words),
        throughput=timed.throughput if timed else None,
        timed_in=(str(timed.rows[0].get("run_id") or "") if timed and timed is not runs[0] else ""),
        tail=_tail(good),
        unusable=_why_unusable(good) if not timed else "",
        emulated=any(bool(row.get("emulated")) for row in rows),
        reason="" if good else _reason(first),
        message="" if good else str(first.get("message") or ""),
        advice="" if good else str(first.get("advice") or ""),
        status=str(first["status"]),
        verification=next((w for w in words if w not in VERIFIED), (words or ["not_done"])[0]),
        why_unverified=_why(good),
        error=max(errors, default=None),
        workarounds=tuple(dict.fromkeys(w for row in rows for w in texts(row, "workarounds"))),
        launches=len(rows),
        wrong=wrong,
        lost=tuple(f"{_reason(row)}: {row.get('message') or 'no message'}" for row in bad if good),
        run_id=str(first.get("run_id") or ""),
        moment=str(first.get("started_at") or ""),
    )


def _current_first(every: Sequence[Sequence[Sequence[Row]]]) -> list[Sequence[_Run]]:
    """Return the runs of each attempt, the current one first.

    If the newest run timed, the one of its software with the best evidence comes before it, until a
    run that failed, or that went another way through the exporter: what was before is history.
    """
    rows = [run for runs in every for run in runs]
    good = merge_groups([[row for row in run if row["answered"]] for run in rows])
    known = iter(map(_Run, rows, good))
    attempts_ = [[next(known) for _ in runs] for runs in every]
    alike = {at: found for at, runs in enumerate(attempts_) if len(found := _alike(runs)) > 1}
    best = current_measurements(
        [[row for run in runs for row in run.good.launches] for runs in alike.values()]
    )
    for (at, runs), current in zip(alike.items(), best, strict=True):
        newest = current.launches[0]
        first = next(run for run in runs if any(row is newest for row in run.good.launches))
        attempts_[at] = [first, *(run for run in attempts_[at] if run is not first)]
    return list(attempts_)


def _alike(runs: Sequence[_Run]) -> list[_Run]:
    """Return the runs that may represent an attempt; none if only the newest may."""
    newest = runs[0]
    # An import's run is everything that came with it: the newest release speaks.
    if len(runs) < 2 or newest.throughput is None or newest.good.launches[0]["of_import"]:
        return []
    able = takewhile(lambda run: run.way == newest.way and run.good.launches, runs)
    return [run for run in able if run.software == newest.software and run.throughput]


def _timed(runs: Sequence[_Run]) -> _Run | None:
    """Return the newest run that timed.

    To verify again takes nothing from what was timed before; a failure does, and so does
    another way through the exporter: it was another graph that was timed.
    """
    for run in runs:
        if not run.good.launches or run.way != runs[0].way:
            return None
        if run.throughput is not None:
            return run
    return None


def _reason(row: Row) -> str:
    return WRONG if row["wrong_outputs"] else str(row.get("reason") or row["status"])


def _tail(rows: Sequence[Row]) -> str:
    """A percentile in words, of launches of which neither a mean nor a rate is known."""
    if any(rate_of(row) is not None for row in rows):
        return ""
    kinds = {best_statistic(row) for row in rows}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind not in (*TAILS, Statistic.MEDIAN):
        return ""
    times = [ms for row in rows if (ms := step_of(row, kind)) is not None]
    low, high = format_digits(min(times)), format_digits(max(times))
    span = low if low == high else f"{low} to {high}"  # published results are launches of none
    return f"{span} ms {kind}"


def _why_unusable(rows: Sequence[Row]) -> str:
    useless = [row for row in rows if not row["times_usable"]]
    return why_unusable(useless) if useless else ""


def _reach(measurement: RunMeasurement) -> float:
    """How far a throughput may be off, by its launches, else by the samples of its only one."""
    values = [rate for row in measurement.usable_rows if (rate := rate_of(row))]
    known = interval_of(values) if len(values) > 1 else None
    if known is not None:
        return math.log(known[1] / known[0]) / 2.0
    return max(map(_reach_of, measurement.launches), default=0.0)


def _reach_of(row: Row) -> float:
    """Of one launch; of what says nothing of its samples nobody can say it."""
    count = number(row, "sample_count")
    if count is None:
        return 0.0
    if count < FEWEST and (number(row, "effective_sample_count") or 0.0) < KNOWN:
        return math.log(FEW_DIFFER)
    known = interval_within(row, Statistic.RATE)
    return math.log(known[1] / known[0]) / 2.0 if known and known[0] > 0.0 else 0.0


def _why(rows: Sequence[Row]) -> str:
    """Why outputs were not compared, as the result itself says it."""
    for row in rows:
        if row.get("verification") not in VERIFIED:
            return text(record(row, "nulls"), "verification_error")
    return ""


def _place(attempt: Attempt) -> tuple[object, ...]:
    way = attempt.way
    parts = tuple(str(part) for part in attempt.question)
    return (
        attempt.model, attempt.hardware, way.runtime, way.options, way.device, way.precision,
        attempt.batch, parts,
    )  # fmt: skip
