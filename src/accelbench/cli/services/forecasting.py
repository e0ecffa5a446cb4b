"""The duration of a run, estimated by the predictor of its database."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from accelbench.core.errors import AccelbenchError
from accelbench.core.vocabulary import Provenance
from accelbench.predict.cases import measured_cases
from accelbench.predict.questions import is_too_large, memory_words
from accelbench.present.terminal.words import duration
from accelbench.run.plan.run_forecast import (
    LONG_STEP,
    CaseForecast,
    PlanForecast,
    RunSeconds,
    SamplingEnds,
    SecondsRange,
    run_seconds,
    sampling_limits,
)

if TYPE_CHECKING:
    from accelbench.core.run_options import RunSettings
    from accelbench.judge.older_runs import EarlierTimes, TimesBeside
    from accelbench.predict.cases import CaseConfiguration, MeasuredCase, PredictedCase
    from accelbench.predict.stored_predictors import Predictors
    from accelbench.predict.traces import Traces
    from accelbench.run.conduct.lifecycle import PlannedRun
    from accelbench.run.plan.request import Planned
    from accelbench.store.database import Database

_MIB = 2.0**20
_STEP_ENDS: tuple[Literal["latency_low_ms", "latency_ms", "latency_high_ms"], ...] = (
    *("latency_low_ms", "latency_ms", "latency_high_ms"),
)
_MOST_NAMED = 5
#: More cases are not fitted before a run: 300 take about a second, and the time grows cubically.
_MOST_FITTED = 300
#: Fewer results do not show where sampling ends.
_FEWEST_ENDS = 20


@dataclass(frozen=True)
class RunOutlook:
    """The estimate of a run before it starts."""

    seconds: RunSeconds  # its duration
    forecast: PlanForecast  # of its cases
    #: cases that take minutes a step or too much memory, and why nothing is predicted
    notes: tuple[str, ...] = ()

    @property
    def rests_on(self) -> str:
        seconds = self.seconds
        if not seconds.predicted:
            return "estimated from operation counts for an idle machine, not measured"
        others = f" ({seconds.counted:,} from operation counts)" if seconds.counted else ""
        known = measured_cases(self.forecast.learned_from, self.forecast.learned_imported)
        return f"predicted from {known}{others}, not measured"


def outlook(spec: PlannedRun, database: Database | None, *, fit: bool = True) -> RunOutlook:
    """Return the duration of a run by predicted steps, else by operation counts.

    With `fit`, a predictor is fitted if results are newer than the kept one. Without it and without
    a kept one, nothing is predicted if there are many results.
    """
    try:
        forecast = _forecast(spec, database, fit=fit)
    except (AccelbenchError, OSError) as error:  # a run must not fail without an estimate
        why = error.message.rstrip(".") if isinstance(error, AccelbenchError) else str(error)
        forecast = PlanForecast(why=f"its minutes are not predicted: {why}")
    seconds = run_seconds([(plan, how) for _, plan, how in spec.arms], forecast)
    notes = [*([forecast.why] if forecast.why else []), *_remarks(spec, forecast)]
    return RunOutlook(seconds, forecast, tuple(notes))


def _forecast(spec: PlannedRun, database: Database | None, *, fit: bool) -> PlanForecast:
    if database is None or not database.is_created:
        return PlanForecast()
    from accelbench.judge.older_runs import earlier_times
    from accelbench.predict.answers import learned_from
    from accelbench.predict.stored_cases import stored_cases
    from accelbench.predict.stored_predictors import is_kept, predictors_of
    from accelbench.predict.traces import Traces

    if not fit and not is_kept(database):
        waiting = stored_cases(database)
        if len(waiting.cases) > _MOST_FITTED:
            return PlanForecast(
                why=f"its minutes are not predicted: nothing was learned from {waiting.said} yet;"
                " `accelbench predict --retrain` does"
            )
    # The conductor imports no engine, torch included: untraced models are counted coarsely.
    traces = Traces(trace=False)
    predictors = predictors_of(database, traces, stale=not fit)
    measured = predictors.stored.cases
    if not measured:
        return PlanForecast()
    times = earlier_times(database)
    cases: dict[tuple[str, str], CaseForecast] = {}
    for _, plan, settings in spec.arms:
        predictable = {p.key: (p, _predicted_case(p, settings, spec, measured)) for p in plan.cases
                 if p.refusal is None and p.device is not None and _is_catalogued(p)}  # fmt: skip
        steps = _steps(predictors, traces, [case for _, case in predictable.values()])
        for key, (planned, case) in predictable.items():
            if case in steps:
                cases.setdefault(key, _with_times(steps[case], planned, settings, times))
    known = {entry.case: entry for entry in predictors.stored.learnable}
    learned = learned_from(predictors.of["latency"].whole, known)
    return PlanForecast(cases, _ends(times), sum(learned.values()), learned[Provenance.IMPORTED])


def _is_catalogued(planned: Planned) -> bool:
    from accelbench.judge.filters import in_catalogue

    return in_catalogue(planned.case.model.id)


def _predicted_case(
    planned: Planned, settings: RunSettings, spec: PlannedRun, measured: Sequence[MeasuredCase]
) -> PredictedCase:
    """Return the case with the usual configuration of measured cases like it."""
    from accelbench.predict.cases import CaseConfiguration, PredictedCase

    case, device = planned.case, planned.device
    assert device is not None
    runtime = spec.runtimes.get(case.target.runtime)
    place = CaseConfiguration(
        hardware=case.target.hardware,
        device=device.name,
        runtime=case.target.runtime,
        precision=case.precision,
        mode=case.mode.value,
        compiled=case.compiled or bool(runtime and runtime.info.compiles),
        threads=settings.for_options(planned.case.options).threads,
    )
    counts = Counter(entry.case.configuration for entry in measured)
    alike = [known for known in counts if _is_alike(known, place)]
    usual = max(alike, key=lambda known: (not known.options, counts[known]), default=place)
    return PredictedCase(case.model.id, case.model.family, case.shapes, usual)


def _is_alike(known: CaseConfiguration, place: CaseConfiguration) -> bool:
    threads = known.threads if place.threads is None else place.threads
    return replace(known, options="") == replace(place, threads=threads)


def _steps(
    predictors: Predictors, traces: Traces, cases: Sequence[PredictedCase]
) -> dict[PredictedCase, CaseForecast]:
    from accelbench.predict.answers import answer

    traced, _ = traces.of_cases(cases)
    known = [entry.case for entry in traced]
    learnable = predictors.stored.learnable
    figures = answer(known, predictors.of, learnable, traces, predictors.calibrated).figures
    return {
        case: CaseForecast(
            SecondsRange(*(figure[end] / 1e3 for end in _STEP_ENDS)),
            (figure["memory_mb"] or 0.0) * _MIB,
        )
        for case, figure in zip(known, figures, strict=True)
    }


def _with_times(
    forecast: CaseForecast, planned: Planned, settings: RunSettings, times: EarlierTimes
) -> CaseForecast:
    case = planned.case
    where = (case.model.id, case.target.runtime, case.target.hardware)
    checked = settings.verify != "off"
    opening, again = (
        _range(times.beside(where, case.precision, opens=opens, checked=checked))
        for opens in (True, False)
    )
    return replace(forecast, opening=opening, again=again)


def _range(times: TimesBeside | None) -> SecondsRange | None:
    if times is None:
        return None
    return SecondsRange(times.low, math.sqrt(times.low * times.high), times.high)


def _ends(times: EarlierTimes) -> SamplingEnds:
    """Return where sampling ended in earlier results; anywhere if there are few."""
    shares = []
    for entry in times.times:
        if entry.sampled:
            least, most = (math.log(end) for end in sampling_limits(entry.step, None, None))
            share = (math.log(entry.sampled) - least) / max(most - least, 1e-9)
            shares.append(min(max(share, 0.0), 1.0))
    if len(shares) < _FEWEST_ENDS:
        return SamplingEnds()
    shares.sort()
    low, middle, high = (shares[round(at * (len(shares) - 1))] for at in (0.05, 0.5, 0.95))
    return SamplingEnds(low, middle, high)


def _remarks(spec: PlannedRun, forecast: PlanForecast) -> Iterable[str]:
    """Return cases that take minutes a step or too much memory, one a model and platform."""
    worst: dict[tuple[str, str], tuple[float, str]] = {}
    for planned in spec.plan.cases:
        known = forecast.cases.get(planned.key)
        if known is None or planned.device is None:
            continue
        room, need = planned.device.memory_bytes, known.memory_bytes
        too_large = is_too_large(need, room)
        if not too_large and known.step.middle < LONG_STEP:
            continue
        case = planned.case
        parts = [f"{duration(known.step.middle)} a step"] * (known.step.middle >= LONG_STEP)
        if too_large and need is not None and room is not None:
            parts.append(memory_words(need, room))
        batch = f", batch {case.shapes.batch}" if case.shapes.batch > 1 else ""
        text = f"{case.model.id} on {case.target.hardware}{batch}: predicted {', '.join(parts)}"
        key = (case.model.id, case.target.hardware)
        if key not in worst or worst[key][0] < known.step.middle:
            worst[key] = (known.step.middle, text)
    texts = [text for _, text in sorted(worst.values(), reverse=True)]
    more = len(texts) - _MOST_NAMED
    return [*texts[:_MOST_NAMED], *([f"and {more} models more"] if more > 0 else [])]
