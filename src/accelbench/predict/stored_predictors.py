"""Trained predictors of cases, kept as JSON beside the database that they learned from.

A file holds what was learned and from what: factors, variances, widths, and the cases with their
terms, so that predicting needs neither torch nor the database's rows. It names the hash of the
measurements and calibrations; when they have changed, a predictor is fitted anew from where the old
one stood.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from accelbench.core.case import Shapes
from accelbench.core.errors import StoreError
from accelbench.core.identity import digest, plain
from accelbench.core.jsonc import JsonError, loads
from accelbench.exchange.writing import write_over
from accelbench.judge.calibrations import stored_limits
from accelbench.predict.case_predictions import Basis, CasePredictions
from accelbench.predict.case_predictor import CaseFeatures, CasePredictor, predictor_of
from accelbench.predict.cases import (
    TARGETS,
    CaseConfiguration,
    MeasuredCase,
    PredictedCase,
    sizes_of,
)
from accelbench.predict.positive_sum import ConfigurationSums, PositiveSum
from accelbench.predict.signatures import Floats
from accelbench.predict.stored_cases import StoredCases, stored_cases
from accelbench.predict.terms import (
    MEMORY_TERMS,
    NOT_CALIBRATED,
    TIME_TERMS,
    Calibrated,
    TracedCase,
    time_terms,
)
from accelbench.predict.traces import TRACE_VERSION, Traces

if TYPE_CHECKING:
    from accelbench.store.database import Database

FOLDER = "prediction_models"
#: Beside those that learned from operators alone lie others, that had the analytic cost of some
#: models: who traces nothing needs no better ones, and fitting anew took most of each answer.
_UNTRACED = "-untraced"
#: Raised whenever terms or the kernel change: kept predictors are fitted anew.
VERSION = 9
#: Of more cases the newest model's would not be learned from twice as well, and fitting takes the
#: cube of them: 1,500 take some ten seconds.
MOST_CASES = 1500


@dataclass(frozen=True)
class Predictors:
    """The predictors of a database, by target.

    Attributes:
        learned_from: the hash of the measurements and of the limits.
        fitted: whether they were fitted now, and not read.
    """

    of: Mapping[str, CasePredictor]
    stored: StoredCases
    learned_from: str
    fitted: bool
    notes: tuple[str, ...]
    calibrated: Calibrated

    def predict(self, traced: Sequence[TracedCase]) -> tuple[CasePredictions, CasePredictions]:
        """Latency and memory of cases."""
        times = time_terms(traced, self.calibrated)
        latency, memory = (
            self.of[target].predict(CaseFeatures.of(traced, target, times, self.calibrated))
            for target in TARGETS
        )
        return latency, memory


def predictors_of(
    database: Database | None,
    traces: Traces,
    *,
    train: bool = False,
    keep: bool = True,
    stale: bool = False,
    hear: Callable[[str], None] = lambda _: None,
) -> Predictors:
    """The predictors of a database: those that are kept, where its measurements are the same.

    Args:
        database: what to learn from; nothing, where there is none.
        traces: where operators come from.
        train: fit anew in any case.
        keep: write what is fitted anew beside the database.
        stale: those that are kept will do, whatever was measured since.
        hear: told before something is fitted.
    """
    if database is None:
        return _fitted(StoredCases((), {}), NOT_CALIBRATED, "", traces, {}, None)
    stored, calibrated = stored_cases(database), stored_limits(database)
    kept = _kept(database)
    learned_from = _hash(stored.learnable, calibrated)
    if not train and (same := _same(kept, stored, calibrated, learned_from, stale=stale)):
        return same
    if not train and not traces.takes:
        untraced = _kept(database, _UNTRACED)
        if same := _same(untraced, stored, calibrated, learned_from, stale=stale):
            for entry in filter(None, untraced.values()):
                traces.left_out |= {*entry.left_out}
            return same
    if stored.cases:
        hear(f"Learning from {stored.said} …")
    begin = {
        target: entry.predictor.process.variances
        for target, entry in kept.items()
        if entry and entry.predictor.process and not train
    }
    place = (database.path.parent / FOLDER, database) if keep else None
    return _fitted(stored, calibrated, learned_from, traces, begin, place)


def kept_predictors(database: Database, stored: StoredCases) -> Predictors | None:
    """Return the predictors next to a database; None if its measurements changed."""
    calibrated = stored_limits(database)
    return _same(_kept(database), stored, calibrated, _hash(stored.learnable, calibrated))


def _kept(database: Database, kind: str = "") -> dict[str, KeptPredictor | None]:
    folder = database.path.parent / FOLDER
    return {target: _read(_path(folder, database, target, kind), target) for target in TARGETS}


def _same(
    kept: Mapping[str, KeptPredictor | None],
    stored: StoredCases,
    calibrated: Calibrated,
    learned_from: str,
    *,
    stale: bool = False,
) -> Predictors | None:
    """Those that are kept, where all learned from these measurements, or where any will do."""
    limits = _hash((), calibrated)
    same = {target: entry.predictor for target, entry in kept.items()
            if entry and (entry.learned_from == learned_from
                          or (stale and entry.limits == limits))}  # fmt: skip
    if len(same) < len(TARGETS):
        return None
    notes = tuple(dict.fromkeys(note for entry in kept.values() if entry for note in entry.notes))
    return Predictors(same, stored, learned_from, False, notes, calibrated)


def is_kept(database: Database) -> bool:
    """Whether predictors of a database lie beside it, of whatever measurements."""
    folder = database.path.parent / FOLDER
    return all(_path(folder, database, target).is_file() for target in TARGETS)


def _fitted(
    stored: StoredCases,
    calibrated: Calibrated,
    learned_from: str,
    traces: Traces,
    begin: Mapping[str, Floats],
    place: tuple[Path, Database] | None,
) -> Predictors:
    measured, notes = drawn_evenly(stored.learnable)
    cases, failures = traces.of_cases([entry.case for entry in measured])
    notes += [f"the operators of {name} are not known: not learned from" for name in failures]
    traced = {entry.case: entry for entry in cases}
    of = {
        target: fitted_predictor(measured, traced, target, calibrated, begin.get(target))
        for target in TARGETS
    }
    # What was learned from coarse operators is kept apart from what those have who trace them.
    kind = _UNTRACED if traces.left_out else ""
    if place is not None and measured:
        folder, database = place
        try:
            for target, predictor in of.items():
                path = _path(folder, database, target, kind)
                limits = _hash((), calibrated)
                _write(path, predictor, learned_from, limits, notes, sorted(traces.left_out))
        except (StoreError, OSError) as error:
            notes.append(f"the trained predictor could not be kept: {error}")
    return Predictors(of, stored, learned_from, True, tuple(notes), calibrated)


def drawn_evenly(measured: Sequence[MeasuredCase]) -> tuple[Sequence[MeasuredCase], list[str]]:
    """Return as many cases as a predictor is fitted to, with a note if there are more."""
    if len(measured) <= MOST_CASES:
        return measured, []
    rows = np.sort(np.random.default_rng(0).choice(len(measured), MOST_CASES, replace=False))
    note = f"learned from {MOST_CASES:,} of {len(measured):,} cases, drawn evenly"
    return tuple(measured[int(row)] for row in rows), [note]


def fitted_predictor(
    measured: Sequence[MeasuredCase],
    traced: Mapping[PredictedCase, TracedCase],
    target: str,
    calibrated: Calibrated = NOT_CALIBRATED,
    begin: Floats | None = None,
) -> CasePredictor:
    """Fit a predictor to cases, from variances to begin with; leave out untraced cases."""
    with _one_thread():
        return predictor_of(measured, traced, target, calibrated).fit(begin=begin)


def _one_thread() -> AbstractContextManager[object]:
    """numpy's products by one thread, where what sets that is installed.

    Matrices of a thousand rows gain little by two threads, and on two busy cores those wait for
    each other: 781 cases took 16 s of both, and take 1.1 s of one.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    limited: AbstractContextManager[object] = threadpool_limits(1, "blas")
    return limited


def _hash(measured: Sequence[MeasuredCase], calibrated: Calibrated) -> str:
    """Of all that a predictor rests on: terms of time are at the devices' measured limits."""
    places = {place: asdict(place) for place in {m.case.configuration for m in measured}}
    rows = [
        [m.case.model, m.case.part, places[m.case.configuration], m.case.shapes.batch,
         sizes_of(m.case.shapes), m.latency_ms, m.memory_mb]
        for m in measured
    ]  # fmt: skip
    limits = [[*key, plain(calibrated[key].peaks), calibrated[key].bandwidth]
              for key in sorted(calibrated)]  # fmt: skip
    content = {"version": VERSION, "traces": TRACE_VERSION, "rows": rows, "limits": limits}
    return digest(content)


def _path(folder: Path, database: Database, target: str, kind: str = "") -> Path:
    return folder / f"{database.path.name}-{target}{kind}.json"


def _write(
    path: Path,
    predictor: CasePredictor,
    learned_from: str,
    limits: str,
    notes: Sequence[str],
    left_out: Sequence[str],
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    process = predictor.process
    content = {
        "version": VERSION,
        "target": predictor.target,
        "learned_from": learned_from,
        "limits": limits,
        "notes": list(notes),
        "left_out": list(left_out),
        "terms": TIME_TERMS if predictor.target == TARGETS[0] else MEMORY_TERMS,
        "factors": _factors(predictor.rooflines.whole),
        "configurations": [
            {"configuration": asdict(configuration), "factors": _factors(sums)}
            for configuration, sums in predictor.rooflines.of.items()
        ],
        "variances": process.variances.tolist() if process else [],
        "widths": {basis.name: width for basis, width in predictor.widths.items()},
        "widening": predictor.widening,
        "unseen": _plain(predictor.unseen),
        "cases": [
            {
                "model": case.model,
                "family": case.family,
                "shapes": asdict(case.shapes),
                "configuration": asdict(case.configuration),
                "part": case.part,
                "terms": terms.tolist(),
                "sizes": sizes.tolist(),
                "least": float(least),
                "log_value": float(value),
                "unlike": predictor.unlike.get((case.model, case.configuration), 1.0),
            }
            for case, terms, sizes, least, value in zip(
                predictor.known.cases, predictor.known.terms, predictor.known.sizes,
                predictor.known.least, predictor.log_values, strict=True,
            )
        ],
    }  # fmt: skip
    # What it holds is told by a hash of its own: a file that was changed by hand is learned anew.
    write_over(path, json.dumps({**content, "digest": digest(content)}).encode())


def _plain(errors: tuple[Floats, Floats] | None) -> list[list[float | None]] | None:
    """Errors as JSON has them, which has no NaN."""
    if errors is None:
        return None
    return [[None if np.isnan(v) else float(v) for v in values] for values in errors]


def _unseen(content: Any) -> tuple[Floats, Floats] | None:
    if content is None:
        return None
    error, standard = (np.array(values, dtype=np.float64) for values in content)
    return error, standard


@dataclass(frozen=True)
class KeptPredictor:
    """A predictor as it was kept, with hashes of what it learned from and of devices' limits.

    Attributes:
        left_out: models whose analytic cost stood in for their operators.
    """

    learned_from: str
    limits: str
    notes: tuple[str, ...]
    left_out: tuple[str, ...]
    predictor: CasePredictor


def _read(path: Path, target: str) -> KeptPredictor | None:
    """What a file holds; None of one that is not there, is broken or of another version."""
    try:
        content = loads(path.read_text(encoding="utf-8"))
        known = content.pop("digest")
        if (content["version"], content["target"]) != (VERSION, target):
            return None
        if known != digest(content):
            return None
        notes = tuple(content["notes"])
        left_out = tuple(content.get("left_out", ()))
        return KeptPredictor(
            content["learned_from"], content["limits"], notes, left_out,
            _predictor(target, content),
        )  # fmt: skip
    except (
        OSError, JsonError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError,
        np.linalg.LinAlgError,
    ):  # fmt: skip
        return None


def _predictor(target: str, content: Mapping[str, Any]) -> CasePredictor:
    entries = content["cases"]
    known = CaseFeatures(
        tuple(
            PredictedCase(
                entry["model"], entry["family"], Shapes(**entry["shapes"]),
                CaseConfiguration(**entry["configuration"]), entry["part"],
            )
            for entry in entries
        ),
        np.array([entry["terms"] for entry in entries]),
        np.array([entry["sizes"] for entry in entries]),
        np.array([float(entry["least"]) for entry in entries]),
    )  # fmt: skip
    predictor = CasePredictor(
        target,
        known,
        np.array([entry["log_value"] for entry in entries]),
        _sums(content),
        widths={Basis[name]: width for name, width in content["widths"].items()},
        widening=float(content["widening"]),
        unlike={
            (case.model, case.configuration): float(entry["unlike"])
            for case, entry in zip(known.cases, entries, strict=True)
            if entry["unlike"] > 1.0
        },
        unseen=_unseen(content.get("unseen")),
    )
    return predictor.condition(np.array(content["variances"]))


def _factors(sums: PositiveSum) -> list[float]:
    factors: list[float] = np.exp(sums.theta).tolist()
    return factors


def _sums(content: Mapping[str, Any]) -> ConfigurationSums:
    return ConfigurationSums(
        PositiveSum(np.log(np.array(content["factors"]))),
        {
            CaseConfiguration(**entry["configuration"]): PositiveSum(
                np.log(np.array(entry["factors"]))
            )
            for entry in content["configurations"]
        },
    )
