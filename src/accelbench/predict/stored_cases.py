"""The measured cases of a store, from which the predictor of cases learns.

A case has the median of the usable launches of its current measurement, each by the median of its
steps: by means, which one disturbed step may shift, unseen models in PyTorch were off by 15.4 %
instead of 13.5. Cases whose launches scatter are left out.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench import __version__
from accelbench.core.axes import AXES, numeric_axes
from accelbench.core.errors import StoreError, UnsupportedError, UsageError
from accelbench.core.formatting import format_count, join_first
from accelbench.core.identity import digest
from accelbench.core.jsonc import JsonError, loads
from accelbench.core.result_statistics import STEP_SQL
from accelbench.core.rows import Row, number, text
from accelbench.core.vocabulary import SINGLE_STREAM, Mode, Provenance
from accelbench.evidence.launches import QUALITY_COLUMNS
from accelbench.evidence.measurements import MEASUREMENT_COLUMNS, configurations_sql
from accelbench.exchange.writing import replace_file
from accelbench.judge.older_runs import OF_NO_CHECK_SQL
from accelbench.models.find import every_model, find_exact, key_of
from accelbench.models.inputs import settle
from accelbench.predict.cases import (
    CaseConfiguration,
    MeasuredCase,
    PredictedCase,
    case_of_values,
    case_values,
    family_of,
    measured_cases,
    shapes_from,
    sizes_of,
)
from accelbench.predict.graph_file_models import (
    FOLDER,
    FileModel,
    TableModels,
    kept_tables,
    named_model,
)

if TYPE_CHECKING:
    from accelbench.core.model import ModelSpec
    from accelbench.store.database import Database

_KEY = (
    "model", "hardware", "device_name", "runtime", "precision", "mode", "compiled", "threads",
    "options", "optimizer", "batch_size", *(axis.column for axis in AXES), "device_fingerprint",
    "provenance",
)  # fmt: skip
_CELL = f"""concat_ws(chr(31), {", ".join(f"coalesce({name}::VARCHAR, '')" for name in _KEY)})"""
_MEASURED = (
    *(*_KEY, "memory_peak_mb", "ttft_ms", "tpot_ms", "usable", "run_key", "answered", "status"),
    "verification",
)
_READ = dict.fromkeys((*_MEASURED, *MEASUREMENT_COLUMNS, *QUALITY_COLUMNS))
_NO_TABLES = TableModels()
_MOST_NAMED = 3
#: Raised when kept cases have another form.
_PACKED = 2
#: Launches differ by this ratio at most, that of the ends of an interval of ±25 %.
_WIDEST_SPREAD = 1.25 / 0.75
#: The ratio by which launches differ; of five and more the middle half, as one may be an outlier.
_SPREAD_SQL = """
CASE WHEN count(*) < 5 THEN max(latency_ms) / min(latency_ms)
ELSE quantile_cont(latency_ms, 0.75) / quantile_cont(latency_ms, 0.25) END
"""
_SQL = f"""
WITH measured AS (
    SELECT {", ".join(_READ)}, {_CELL} AS cell, conditions->'source'->>'name' AS source,
        {STEP_SQL} AS latency_ms
    FROM launches
    WHERE comparable AND answered AND NOT coalesce(emulated, false) AND {OF_NO_CHECK_SQL}
        AND coalesce(world_size, 1) = 1
        AND coalesce(scenario, '{SINGLE_STREAM}') = '{SINGLE_STREAM}'
        AND batch_size > 0 AND model IS NOT NULL
), newest AS (SELECT cell, run AS run_key FROM ({configurations_sql(("cell",), "measured")})
    WHERE usable_times)
SELECT {", ".join(f"any_value({name}) AS {name}" for name in _KEY)},
    coalesce(max(started_at), 'epoch'::TIMESTAMP) AS moment,
    max(source) AS source, median(latency_ms) AS latency_ms, median(memory_peak_mb) AS memory_mb,
    median(ttft_ms) AS ttft_ms, median(tpot_ms) AS tpot_ms, {_SPREAD_SQL} AS spread
FROM measured JOIN newest USING (cell, run_key) WHERE usable GROUP BY cell ORDER BY ALL
"""  # noqa: S608 — our columns


@dataclass(frozen=True)
class StoredCases:
    """The training data of a store.

    Attributes:
        cases: those of models of the catalogue, each once.
        parts: the first token of requests and a later one, as cases of their own.
        without_operators: the number of results of each other model.
        several: names of cases' devices that several devices have.
        scattered: the number of cases that are left out because their launches scatter.
        others: the rows of models that only their name is known of. There may be a hundred
            thousand: they become cases when a question needs them.
    """

    cases: tuple[MeasuredCase, ...]
    without_operators: Mapping[str, int]
    several: tuple[str, ...] = ()
    parts: tuple[MeasuredCase, ...] = ()
    scattered: int = 0
    others: CaseRows = field(default_factory=lambda: CaseRows((), ()))

    @property
    def learnable(self) -> tuple[MeasuredCase, ...]:
        """All cases that a predictor is fitted to."""
        return self.cases + self.parts

    @property
    def notes(self) -> list[str]:
        """What a reader of predictions should know of the results of a store."""
        notes = []
        if others := self.without_operators:
            names = sorted(others, key=lambda name: (-others[name], name))
            notes.append(
                f"{sum(others.values()):,} measured cases are of models whose operators are unknown"
                f" ({join_first(names, _MOST_NAMED)}); they predict those models alone, on other"
                " devices, until --graph-features names their operators"
            )
        if self.several:
            notes.append(
                f"several devices are called {join_first(self.several, _MOST_NAMED)}: of each case"
                " what was measured here counts before what was imported, and then the newest"
            )
        if self.scattered:
            notes.append(
                f"{format_count(self.scattered, 'measured case')} not learned from: launches"
                " differ by more than ±25 %; measure again with more launches"
            )
        if not self.cases:
            notes.append(
                "nothing is measured: predictions are from devices' peaks and usual efficiencies"
            )
        return notes

    @cached_property
    def digest(self) -> str:
        """The hash of what predictors are fitted to."""
        return digest_of_cases(self.learnable)

    @cached_property
    def named_models(self) -> Mapping[str, FileModel]:
        """The models that only their name is known of, at the sizes that most results have."""
        columns = [self.others.columns.index(name) for name in ("model", *_SIZES)]
        counts: dict[str, Counter[tuple[int | None, ...]]] = {}
        for row in self.others.rows:
            model, *sizes = (row[column] for column in columns)
            each = counts.setdefault(str(model), Counter())
            each[tuple(None if size is None else int(str(size)) for size in sizes)] += 1
        return {
            model: named_model(model, (usual[0], usual[1]))
            for model, each in counts.items()
            for usual, _ in each.most_common(1)
        }

    @cached_property
    def named(self) -> tuple[MeasuredCase, ...]:
        """The cases of models that only their name is known of, each once."""
        models = self.named_models if self.others.rows else {}
        return _gathered(self.others, lambda name: models[name].spec).cases

    @property
    def said(self) -> str:
        """The number of cases and who measured them, as a text."""
        of_others = sum(entry.provenance == Provenance.IMPORTED for entry in self.cases)
        return measured_cases(len(self.cases), of_others)


def stored_cases(database: Database, tables: TableModels = _NO_TABLES) -> StoredCases:
    """Return the measured cases of a store, each once.

    A case may be stored several times: with and without its default sizes, under other names of its
    model, on several devices of one name, by others. Our own results precede imported ones, then
    the newest counts.

    Args:
        database: the store.
        tables: models of tables of operators, by name.
    """

    def model_of(name: str) -> ModelSpec | None:
        of_table = tables.find(name)
        return of_table.spec if of_table else find_exact(name)

    names, rows = database.query(_SQL)
    return _gathered(CaseRows(tuple(names), rows), model_of)


def digest_of_cases(measured: Sequence[MeasuredCase]) -> str:
    """Return a hash of cases and of what was measured of them."""
    places = {place: asdict(place) for place in {m.case.configuration for m in measured}}
    return digest([
        [m.case.model, m.case.part, places[m.case.configuration], m.case.shapes.batch,
         sizes_of(m.case.shapes), m.latency_ms, m.memory_mb]
        for m in measured
    ])  # fmt: skip


def kept_cases(database: Database, tables: TableModels, *, keep: bool = True) -> StoredCases:
    """Return the measured cases of a store, read once for each state of its file.

    Reading 140,000 results takes two seconds, reading what is kept of them a third. Kept cases are
    without the rows of models that only their name is known of.
    """
    path = database.path.parent / FOLDER / f"{database.path.name}-cases.json"
    state = _state_of(database.path)
    try:
        content = loads(path.read_text(encoding="utf-8"))
        if content["state"] == state:
            return _unpacked(content)
    except (OSError, JsonError, LookupError, TypeError, ValueError):
        pass
    stored = stored_cases(database, tables)
    if keep and stored.learnable and state == _state_of(database.path):
        with suppress(StoreError, OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, json.dumps({"state": state, **_packed(stored)}).encode())
    return stored


def _state_of(path: Path) -> list[object]:
    """Return what changes with the content of a store, its tables of operators and the catalogue.

    Every writer of the store changes the time of its file, in nanoseconds.
    """
    files = [path, path.with_name(f"{path.name}.wal")]
    stats = [file.stat() for file in files if file.is_file()]
    tables = [file.name for file in kept_tables(path)]
    return [
        __version__, _PACKED, [spec.id for spec in every_model()],
        *([s.st_size, s.st_mtime_ns, s.st_ino] for s in stats), *tables,
    ]  # fmt: skip


def _packed(stored: StoredCases) -> dict[str, object]:
    places = {entry.case.configuration: None for entry in stored.learnable}
    number = {place: at for at, place in enumerate(places)}
    rows = (
        [
            [case_values(m.case, number[m.case.configuration]), m.latency_ms, m.memory_mb,
             m.provenance, m.source]
            for m in some
        ]
        for some in (stored.cases, stored.parts)
    )  # fmt: skip
    cases, parts = rows
    return {
        "digest": stored.digest, "places": [asdict(place) for place in places], "cases": cases,
        "parts": parts, "without_operators": dict(stored.without_operators),
        "several": stored.several, "scattered": stored.scattered,
    }  # fmt: skip


def _unpacked(content: Mapping[str, Any]) -> StoredCases:
    places = [CaseConfiguration(**place) for place in content["places"]]
    cases, parts = (
        tuple(
            MeasuredCase(case_of_values(case, places), *measured)
            for case, *measured in content[name]
        )
        for name in ("cases", "parts")
    )
    stored = StoredCases(
        cases, content["without_operators"], tuple(content["several"]), parts, content["scattered"]
    )
    stored.__dict__["digest"] = str(content["digest"])
    return stored


#: Of models that several devices ran, as a result of one tells nothing of another.
_NAMED_SQL = """
SELECT any_value(model), sequence_length, image_size FROM launches
WHERE regexp_replace(lower(model), '[^\\p{L}\\p{N}/]', '', 'g') = ? AND usable
GROUP BY sequence_length, image_size
QUALIFY sum(count(DISTINCT device_fingerprint)) OVER () > 1 ORDER BY count(*) DESC, 2, 3 LIMIT 1
"""


def measured_name(database: Database, name: str) -> FileModel | None:
    """Return the model of a name that only results of several devices have; None for others."""
    _, rows = database.query(_NAMED_SQL, [key_of(name)])
    for model, *sizes in rows:
        sequence, image = (None if size is None else int(str(size)) for size in sizes)
        return named_model(str(model), (sequence, image))
    return None


@dataclass(frozen=True)
class CaseRows:
    """Rows of the query of measured cases."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


#: Of the sizes of a model that only its name is known of.
_SIZES = ("sequence_length", "image_size")


def _gathered(stored: CaseRows, model_of: Callable[[str], ModelSpec | None]) -> StoredCases:
    # A store has a thousand names and thirty thousand rows of them.
    names, rows = stored.columns, stored.rows
    if not rows:
        return StoredCases((), {})
    catalogued, place_of_model = cache(model_of), names.index("model")
    unknown: list[Sequence[object]] = []
    newest: _Ordered = {}
    parts: _Ordered = {}
    others: dict[str, int] = {}
    scattered = 0
    prints: dict[tuple[str, str], set[str]] = {}
    for values in rows:
        model = str(values[place_of_model])
        spec = catalogued(model)
        # Most rows of public tables are of other models and are skipped at once.
        row: Row = {} if spec is None else dict(zip(names, values, strict=True))
        case = None if spec is None else _case(row, spec)
        if case is None:
            others[model] = others.get(model, 0) + 1
            unknown += [values] if spec is None else []
            continue
        if (number(row, "spread") or 1.0) > _WIDEST_SPREAD:
            scattered += 1
            continue
        place = case.configuration
        device = prints.setdefault((place.hardware, place.device), set())
        device.add(text(row, "device_fingerprint"))
        order = (text(row, "provenance") == Provenance.MEASURED, str(row["moment"]))
        measured = MeasuredCase(
            case,
            _positive(row, "latency_ms"),
            _positive(row, "memory_mb"),
            text(row, "provenance") or Provenance.MEASURED,
            text(row, "source"),
        )
        _take(newest, order, measured)
        for part in _parts(case, row):
            _take(
                parts, order, replace(part, provenance=measured.provenance, source=measured.source)
            )
    several = tuple(sorted(name for (_, name), known in prints.items() if len(known) > 1))
    return StoredCases(
        _measured(newest), others, several, _measured(parts), scattered, CaseRows(names, unknown)
    )


#: Cases with the sort key that they were chosen by.
_Ordered = dict[PredictedCase, tuple[tuple[bool, str], MeasuredCase]]


def _take(newest: _Ordered, order: tuple[bool, str], measured: MeasuredCase) -> None:
    if measured.case not in newest or order > newest[measured.case][0]:
        newest[measured.case] = (order, measured)


def _measured(newest: _Ordered) -> tuple[MeasuredCase, ...]:
    return tuple(measured for _, measured in newest.values())


def _parts(case: PredictedCase, row: Row) -> list[MeasuredCase]:
    """Return the first token of a request and a later one, if they were timed separately."""
    if not case.shapes.new_tokens or case.configuration.mode != Mode.INFERENCE:
        return []
    parts = ((case.first_token, "ttft_ms"), (case.next_token, "tpot_ms"))
    timed = ((part, _positive(row, name)) for part, name in parts)
    return [MeasuredCase(part, ms, None) for part, ms in timed if ms is not None]


def _positive(row: Row, name: str) -> float | None:
    """Return a positive value; None for others, which a damaged store may have."""
    value = number(row, name)
    return value if value is not None and 0.0 < value < math.inf else None


def _case(row: Row, spec: ModelSpec) -> PredictedCase | None:
    """Return the case of a row; None if the model cannot have its sizes."""
    sizes = {
        axis.column: int(size) for axis in numeric_axes() if (size := number(row, axis.column))
    }
    try:
        shapes = settle(spec, shapes_from(int(number(row, "batch_size") or 1), sizes))
    except (UsageError, UnsupportedError):
        return None
    options = [text(row, "options")] if text(row, "options") not in {"", "{}", "null"} else []
    options += [text(row, "optimizer")] if text(row, "optimizer") else []
    threads = number(row, "threads")
    configuration = CaseConfiguration(
        hardware=text(row, "hardware"),
        device=text(row, "device_name"),
        runtime=text(row, "runtime"),
        precision=text(row, "precision") or "fp32",
        mode=text(row, "mode") or Mode.INFERENCE,
        compiled=bool(row.get("compiled")),
        threads=None if threads is None else int(threads),
        options=" ".join(options),
    )
    return PredictedCase(spec.id, family_of(spec), shapes, configuration)
