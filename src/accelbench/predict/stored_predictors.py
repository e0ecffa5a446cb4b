"""Trained predictors of cases, kept beside the database that they learned from.

A file holds what was learned and from what: factors, variances, widths, and the cases with their
terms, so that predicting needs neither torch nor the database's rows. It names the hash of the
measurements and calibrations; when they have changed, predictors are fitted anew from where the old
ones stood. It is a NumPy archive, whose checksums reveal a damaged file.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from accelbench.core.errors import StoreError
from accelbench.core.formatting import join_first
from accelbench.core.identity import digest, to_plain
from accelbench.core.jsonc import JsonError, loads
from accelbench.exchange.writing import replace_file
from accelbench.judge.calibrations import stored_limits
from accelbench.predict.case_predictions import Basis, CasePredictions
from accelbench.predict.case_predictor import (
    CaseFeatures,
    CasePredictor,
    PredictorsByKind,
    fit_predictors,
    grids_of,
)
from accelbench.predict.cases import (
    TARGETS,
    CaseConfiguration,
    MeasuredCase,
    PredictedCase,
    case_of_values,
    case_values,
)
from accelbench.predict.graph_file_models import FOLDER, kept_operators
from accelbench.predict.positive_sum import ConfigurationSums, PositiveSum
from accelbench.predict.signatures import Floats
from accelbench.predict.stored_cases import StoredCases, kept_cases, stored_cases
from accelbench.predict.terms import NOT_CALIBRATED, Calibrated, TracedCase, time_terms
from accelbench.predict.traces import TRACE_VERSION, Traces

if TYPE_CHECKING:
    from accelbench.store.database import Database

#: Beside those that learned from operators alone lie others, that had the analytic cost of some
#: models: who traces nothing needs no better ones, and fitting anew took most of each answer.
_UNTRACED = "-untraced"
#: What is held out of kept predictors, in order.
_HELD_OUT = (
    Basis.OTHER_SIZES, Basis.ELSEWHERE, Basis.FAMILY, Basis.OTHER_MODELS,
    Basis.OTHER_CONFIGURATIONS,
)  # fmt: skip
#: Raised whenever terms or the kernel change: kept predictors are fitted anew.
VERSION = 17
#: Of more cases of a store as many are drawn evenly: fitting 8,000 takes some ten seconds.
MOST_CASES = 40_000


@dataclass(frozen=True)
class Predictors:
    """The predictors of a database, by target.

    Attributes:
        learned_from: the hash of the measurements and of the limits.
        fitted: whether they were fitted now, and not read.
    """

    of: Mapping[str, PredictorsByKind]
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
        return _fitted(StoredCases((), {}), NOT_CALIBRATED, "", traces, None, None)
    traces.tables = tables = kept_operators(database.path)
    stored, calibrated = kept_cases(database, tables, keep=keep), stored_limits(database)
    kept = _read(_path(database))
    learned_from = _hash(stored.digest, calibrated)
    if not train and (same := _same(kept, stored, calibrated, learned_from, stale=stale)):
        return same
    if not train and not traces.takes:
        untraced = _read(_path(database, _UNTRACED))
        if same := _same(untraced, stored, calibrated, learned_from, stale=stale):
            traces.left_out |= {*(untraced.left_out if untraced else ())}
            return same
    if stored.cases:
        hear(f"Learning from {stored.said} …")
    return _fitted(
        stored,
        calibrated,
        learned_from,
        traces,
        None if train else kept,
        database if keep else None,
    )


def with_names(known: Predictors, database: Database) -> Predictors:
    """Return the predictors with those of models that only their name is known of.

    They are learned in half a second from 13,000 results, and not kept.
    """
    stored = known.stored
    if not stored.others.rows:  # kept cases are without them
        stored = stored_cases(database, kept_operators(database.path))
    of = {
        target: PredictorsByKind(target, one.of, grids_of(stored.named, target))
        for target, one in known.of.items()
    }
    return replace(known, of=of, stored=stored)


def kept_predictors(database: Database, stored: StoredCases) -> Predictors | None:
    """Return the predictors next to a database; None if its measurements changed."""
    calibrated = stored_limits(database)
    return _same(_read(_path(database)), stored, calibrated, _hash(stored.digest, calibrated))


def _same(
    kept: KeptPredictors | None,
    stored: StoredCases,
    calibrated: Calibrated,
    learned_from: str,
    *,
    stale: bool = False,
) -> Predictors | None:
    """Those that are kept, if they learned from these measurements, or if any will do."""
    if kept is None:
        return None
    limits = _hash("", calibrated)
    if kept.learned_from == learned_from or (stale and kept.limits == limits):
        return Predictors(kept.of, stored, learned_from, False, kept.notes, calibrated)
    return None


def is_kept(database: Database) -> bool:
    """Whether predictors of a database lie beside it, of whatever measurements."""
    return _path(database).is_file()


def _fitted(
    stored: StoredCases,
    calibrated: Calibrated,
    learned_from: str,
    traces: Traces,
    begin: KeptPredictors | None,
    database: Database | None,
) -> Predictors:
    measured, notes = drawn_evenly(stored.learnable)
    cases, failures = traces.of_cases([entry.case for entry in measured])
    if failures:
        notes.append(f"the operators of {join_first([*failures])} are not known: not learned from")
    traced = {entry.case: entry for entry in cases}
    of = {
        target: fitted_predictors(measured, traced, target, calibrated, begin) for target in TARGETS
    }
    if database is not None and measured:
        # What was learned from coarse operators is kept apart from what those have who trace them.
        path = _path(database, _UNTRACED if traces.left_out else "")
        kept = KeptPredictors(
            learned_from, _hash("", calibrated), tuple(notes), tuple(sorted(traces.left_out)), of
        )
        try:
            _write(path, kept)
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


def fitted_predictors(
    measured: Sequence[MeasuredCase],
    traced: Mapping[PredictedCase, TracedCase],
    target: str,
    calibrated: Calibrated = NOT_CALIBRATED,
    begin: KeptPredictors | None = None,
) -> PredictorsByKind:
    """Fit predictors to cases, from kept ones to begin with; leave out untraced cases."""
    variances = begin.variances(target) if begin else None
    with _one_thread():
        return fit_predictors(measured, traced, target, calibrated, variances)


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


def _hash(cases: str, calibrated: Calibrated) -> str:
    """Of all that a predictor rests on: terms of time are at the devices' measured limits."""
    limits = [[*key, to_plain(calibrated[key].peaks), calibrated[key].bandwidth]
              for key in sorted(calibrated)]  # fmt: skip
    return digest({"version": VERSION, "traces": TRACE_VERSION, "cases": cases, "limits": limits})


def _path(database: Database, kind: str = "") -> Path:
    return database.path.parent / FOLDER / f"{database.path.name}{kind}.npz"


@dataclass(frozen=True)
class KeptPredictors:
    """Predictors as they are kept, with hashes of what they learned from and of devices' limits.

    Attributes:
        left_out: models whose analytic cost stood in for their operators.
        of: by target.
    """

    learned_from: str
    limits: str
    notes: tuple[str, ...]
    left_out: tuple[str, ...]
    of: Mapping[str, PredictorsByKind]

    def variances(self, target: str) -> dict[str, Floats]:
        """The variances that the predictors of a target have, by kind."""
        of = self.of[target].of
        return {kind: one.process.variances for kind, one in of.items() if one.process}


def _write(path: Path, kept: KeptPredictors) -> None:
    arrays: dict[str, Any] = {}
    predictors = [
        {"target": target, "kind": kind, **_described(one, f"{target}/{kind}", arrays)}
        for target, by_kind in kept.of.items()
        for kind, one in by_kind.of.items()
    ]
    about = {
        "version": VERSION, "learned_from": kept.learned_from, "limits": kept.limits,
        "notes": kept.notes, "left_out": kept.left_out, "predictors": predictors,
    }  # fmt: skip
    content = io.BytesIO()
    np.savez(content, about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8), **arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content.getvalue())


def _described(one: CasePredictor, name: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return what JSON holds of a predictor; numbers go into the arrays."""
    assert one.process is not None
    places = {case.configuration: None for case in one.known.cases}
    number = {place: at for at, place in enumerate(places)}
    weights, factor = one.process.posterior
    unseen = one.unseen or one.errors_of_unseen_models()
    nothing = np.full(len(one.known), np.nan)
    every = {
        "terms": one.known.terms, "sizes": one.known.sizes, "least": one.known.least,
        "log_values": one.log_values, "variances": one.process.variances, "weights": weights,
        "factor": factor, "unseen": np.stack(unseen), "whole": one.rooflines.whole.theta,
        "own": np.array([entry.theta for entry in one.rooflines.of.values()]),
        "errors": np.stack([one.errors.get(basis, nothing) for basis in _HELD_OUT]),
    }  # fmt: skip
    arrays |= {f"{name}/{key}": values for key, values in every.items()}
    return {
        "places": [asdict(place) for place in places],
        "own": [number[place] for place in one.rooflines.of],
        "cases": [case_values(case, number[case.configuration]) for case in one.known.cases],
        "widths": {basis.name: width for basis, width in one.widths.items()},
        "widening": one.widening,
        "unlike": [[model, number[place], by] for (model, place), by in one.unlike.items()],
        "deviations": [
            [model, asdict(engine), by] for (model, engine), by in one.deviations_by_engine.items()
        ],
    }  # fmt: skip


def _read(path: Path) -> KeptPredictors | None:
    """Return what a file holds; None if there is none, or it is broken or of another version."""
    try:
        with np.load(path, allow_pickle=False) as content:
            about = loads(bytes(content["about"]).decode())
            if about["version"] != VERSION:
                return None
            of: dict[str, dict[str, CasePredictor]] = {target: {} for target in TARGETS}
            for entry in about["predictors"]:
                of[entry["target"]][entry["kind"]] = _predictor(entry, content)
            return KeptPredictors(
                about["learned_from"], about["limits"], tuple(about["notes"]),
                tuple(about["left_out"]),
                {target: PredictorsByKind(target, some) for target, some in of.items()},
            )  # fmt: skip
    except (
        OSError, EOFError, JsonError, LookupError, TypeError, ValueError, AttributeError,
        ArithmeticError, zipfile.BadZipFile,
    ):  # fmt: skip
        return None


def _predictor(entry: Mapping[str, Any], content: Mapping[str, Any]) -> CasePredictor:
    def array(key: str) -> Floats:
        values: Floats = content[f"{entry['target']}/{entry['kind']}/{key}"]
        if key not in ("unseen", "errors") and not np.isfinite(values).all():
            raise ValueError(f"{key} of a kept predictor is not finite")
        return values

    places = [CaseConfiguration(**place) for place in entry["places"]]
    cases = tuple(case_of_values(values, places) for values in entry["cases"])
    known = CaseFeatures(cases, array("terms"), array("sizes"), array("least"))
    own = [PositiveSum(theta) for theta in array("own")]
    sums = dict(zip((places[at] for at in entry["own"]), own, strict=True))
    error, standard = array("unseen")
    predictor = CasePredictor(
        entry["target"],
        known,
        array("log_values"),
        ConfigurationSums(PositiveSum(array("whole")), sums),
        widths={Basis[name]: width for name, width in entry["widths"].items()},
        widening=float(entry["widening"]),
        unlike={(model, places[place]): by for model, place, by in entry["unlike"]},
        unseen=(error, standard),
        kind=entry["kind"],
        errors=dict(zip(_HELD_OUT, array("errors"), strict=True)),
        deviations={
            (model, CaseConfiguration(**engine)): by for model, engine, by in entry["deviations"]
        },
    )
    return predictor.condition(array("variances"), (array("weights"), array("factor")))
