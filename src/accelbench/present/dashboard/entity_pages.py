"""The pages of models, devices and engines: lists, one of them, and two compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from accelbench.core.calibration import DeviceCalibration, ProbeKind
from accelbench.core.errors import UsageError
from accelbench.core.formatting import describe_references
from accelbench.core.precision import error_of
from accelbench.core.rows import Row, number, text
from accelbench.core.safe_text import in_quotes
from accelbench.judge.calibrations import calibrations
from accelbench.judge.comparison import Compared, doubtful
from accelbench.judge.older_runs import histories_of
from accelbench.judge.speed_ups import other_versions, verdict
from accelbench.judge.summary import fastest_lines
from accelbench.present.charts import CHARTS
from accelbench.present.charts.chart import Picture, Subject
from accelbench.present.charts.spread import SPEED_UPS, speed_ups_picture
from accelbench.present.charts.words import safe
from accelbench.present.dashboard import common_ground, page_query
from accelbench.present.dashboard import common_ground as entities
from accelbench.present.dashboard.cells import Cell
from accelbench.present.dashboard.page_base import NotThereError, SitePages
from accelbench.present.dashboard.pictures import chart_of
from accelbench.present.dashboard.snapshot import Snapshot
from accelbench.present.prediction_evidence import BATCH_SCALING, scaling_of

if TYPE_CHECKING:
    from accelbench.store.database import Database

#: Lists by noun: the SQL of a name, and the other entities that are counted.
_LISTS = {
    "model": ("model", ("devices", "engines")),
    "device": (common_ground.DEVICE, ("models", "engines", "machines")),
    "engine": ("runtime", ("models", "devices")),
}
#: The charts of a model; of alternatives the first that has something to show.
_DRAWN = (
    ("model-panels",),
    ("pareto",),
    ("memory-by-batch", "hardware-memory"),
    ("cold-warm",),
)


@dataclass(frozen=True)
class VerifiedWay:
    """The verification of an engine in a precision on a device."""

    row: Row  # a result of it
    found: str  # failed, not_done, ok or reference
    reference: str  # what the outputs were compared with
    error: float | None  # the largest of its launches
    tolerance: float | None
    launches: int


class EntityPages(SitePages):
    """Pages of a kind of entity."""

    def _list(self, request: Request, noun: str) -> Response:
        snapshot, query = self._requested(request, page_query.NEWEST_FIRST)
        sql, others = _LISTS[noun]
        listed, count = entities.listed(snapshot, query, sql)
        return self.site.page(
            request,
            "entities.html",
            query,
            snapshot=snapshot,
            noun=noun,
            others=others,
            listed=listed,
            count=count,
            last=page_query.pages_in(count),
            names=_names(snapshot, sql) if noun != "model" else [],
            devices=_names(snapshot, common_ground.DEVICE) if noun == "engine" else [],
            pair=self._pair(snapshot, noun == "device") if noun != "model" else (),
        )

    def _pair(self, snapshot: Snapshot, of_devices: bool) -> Sequence[str]:
        key = ("most in common", of_devices)
        found = self._once(
            snapshot, key, lambda: common_ground.most_in_common(snapshot, of_devices)
        )
        return found or _names(snapshot, common_ground.DEVICE if of_devices else "runtime")[:2]

    def _named(self, request: Request, noun: str) -> tuple[Snapshot, str, Row]:
        """Return the newest snapshot, the name of an address and what is known of it."""
        snapshot, named = self.site.snapshot(), request.path_params.get("name")
        name = str(request.query_params.get("name", "") if named is None else named)
        about = entities.about(snapshot, _LISTS[noun][0], name)
        if about is None:
            raise NotThereError(f"There is no {noun} {in_quotes(safe(name))} here.")
        return snapshot, name, about


class ModelPages(EntityPages):
    """The pages of models."""

    def all(self, request: Request) -> Response:
        """List the models."""
        return self._list(request, "model")

    def model(self, request: Request) -> Response:
        """Show a model: the fastest first, then all devices, engines, precisions and batches.

        Sentences and pictures are the same on each page of the table.
        """
        snapshot, name, about = self._named(request, "model")
        mode, modes = self._mode(request, snapshot, name)
        told = _fitting(entities.of_model(snapshot, name, mode))
        page = page_query.page_of(request.query_params.get("page"))
        cells, count = entities.page_of_model(snapshot, name, mode, page)
        query = page_query.PageQuery(cells=tuple(cell["key"] for cell in told))
        subject = self.site.pictures.subject(snapshot, query)
        return self.site.page(
            request,
            "model.html",
            snapshot=snapshot,
            entity=name,
            about=about,
            modes=modes,
            mode=mode,
            answers=self._answers(snapshot, subject),
            cells=cells,
            count=count,
            page=page,
            last=page_query.pages_in(count, common_ground.CONFIGURATIONS),
            told=len(told),
            implausible=entities.implausible(snapshot, "model", name),
            drawn=list(self._drawn(snapshot, query)),
            verified=verified_ways(subject.rows),
            of_it=page_query.address_of_pairs([("name", name), ("mode", mode)]),
            of_model=page_query.PageQuery(model=page_query.exactly_named(name)),
        )

    def picture(self, request: Request) -> Response:
        """Return a picture of a model as a file."""
        snapshot, name, _ = self._named(request, "model")
        chart = chart_of(str(request.path_params["chart"]))
        mode, _ = self._mode(request, snapshot, name)
        cells = _fitting(entities.of_model(snapshot, name, mode))
        query = page_query.PageQuery(cells=tuple(cell["key"] for cell in cells))
        return self._chart_file(request, snapshot, chart, query)

    def _mode(self, request: Request, snapshot: Snapshot, name: str) -> tuple[str, Sequence[str]]:
        modes = entities.modes_of_model(snapshot, name)
        return page_query.one_of("mode", request.query_params.get("mode") or modes[0], modes), modes

    def _answers(self, snapshot: Snapshot, subject: Subject) -> list[str]:
        machines = {str(machine): machine for machine in snapshot.machines.values()}
        alone = machines.get(subject.machine)
        sides = [(machines.get(p.machine, alone), p.rows) for p in subject.points]
        with self.site.database.keep_open():
            known = histories_of(self.site.database, sides)
        return fastest_lines(subject.points, known)

    def _drawn(self, snapshot: Snapshot, query: page_query.PageQuery) -> Iterator[Picture]:
        for names in _DRAWN if query.cells else ():
            made = (self.site.pictures.of(snapshot, CHARTS[name], query) for name in names)
            yield from [picture for picture in made if picture is not None][:1]

    def predictions(self, request: Request) -> Response:
        """Show predicted latency and throughput over batches, or why there are none."""
        snapshot, name, _ = self._named(request, "model")
        picture, why = self._scaling(snapshot, name)
        return self.site.page(
            request,
            "model_predictions.html",
            snapshot=snapshot,
            entity=name,
            drawn=picture,
            why=why,
        )

    def predictions_file(self, request: Request) -> Response:
        """Return the picture of predictions as a file."""
        snapshot, name, _ = self._named(request, "model")
        made, why = self._scaling(snapshot, name)
        return self._picture_file(request, snapshot, BATCH_SCALING.name, (name,), made, why)

    def _scaling(self, snapshot: Snapshot, name: str) -> tuple[Picture | None, str]:
        def made() -> tuple[Picture | None, str]:
            with self.site.database.keep_open():
                return scaling_of(self.site.database, name)

        return self._once(snapshot, ("model predictions", name), made)


def verified_ways(rows: Sequence[Row]) -> list[VerifiedWay]:
    """Return the verification of each engine and precision on a device, the worst first."""
    ways: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row.get("status") == "ok" or row.get("reason") == "wrong_outputs":
            place = ("device_name", "hardware", "runtime", "precision")
            ways.setdefault(tuple(text(row, column) for column in place), []).append(row)
    every = (_verified(several) for several in ways.values())
    return sorted(every, key=lambda way: (_WORDS.index(way.found), -(way.error or 0.0)))


_WORDS = ("failed", "not_done", "ok", "reference")


def _verified(rows: Sequence[Row]) -> VerifiedWay:
    words = {
        "failed" if row.get("reason") == "wrong_outputs" else str(row.get("verification"))
        for row in rows
    }
    found = next((word for word in _WORDS if word in words), "not_done")
    worst = max(rows, key=lambda row: error_of(row) or 0.0)
    held = [row for row in rows if row.get("verification") in ("ok", "failed")]
    tolerance = number(worst, "verification_tolerance")
    return VerifiedWay(
        worst,
        found,
        describe_references(held) if held else "",
        error_of(worst),
        None if tolerance is None else float(tolerance),
        len(rows),
    )


def _fitting(cells: Sequence[Cell]) -> list[Cell]:
    kept: list[Cell] = []
    launches = 0
    for cell in cells[: common_ground.MOST_CELLS]:
        launches += len(cell["results"])
        if kept and launches > common_ground.MOST_LAUNCHES:
            break
        kept.append(cell)
    return kept


#: Rows of a page of ratios.
RATIOS = 40
#: Names in a list to choose from.
_MOST_NAMES = 300
#: Names in a sentence.
_MOST_TOLD = 12
_ROOFLINE = "roofline"
_INFO = """
SELECT hardware, vendor, unit_count, memory_mb, power_limit_watts, driver, runtime_version,
    details::VARCHAR AS details, measured_at::VARCHAR AS measured_at
FROM hardware_info WHERE device_fingerprint IN (SELECT unnest(?::VARCHAR[])) ORDER BY ALL
"""
#: The labels of columns of `hardware_info`.
_LABELS = {
    "hardware": "Platform",
    "vendor": "Vendor",
    "unit_count": "Units",
    "memory_mb": "Memory, MB",
    "power_limit_watts": "Power limit, W",
    "driver": "Driver",
    "runtime_version": "Runtime",
    "measured_at": "Looked at, UTC",
}


class DevicePages(EntityPages):
    """The pages of devices and engines."""

    def all(self, request: Request) -> Response:
        """List the devices, or compare two that are named."""
        two = _two(request, "devices")
        return self._beside(request, two) if two.is_asked else self._list(request, "device")

    def engines(self, request: Request) -> Response:
        """List the engines, or compare two that are named."""
        two = _two(request, "engines")
        return self._beside(request, two) if two.is_asked else self._list(request, "engine")

    def device(self, request: Request) -> Response:
        """Show a device: its facts, its measured limits and its models."""
        snapshot, name, about = self._named(request, "device")
        _, query = self._requested(request)
        database = self.site.database
        cells, count = entities.of_device(snapshot, name, query.page)
        with database.keep_open():
            facts = _facts(database, about)
            calibrated = _calibrated(database, about, name)
        return self.site.page(
            request,
            "device.html",
            query,
            snapshot=snapshot,
            entity=name,
            about=about,
            facts=facts,
            calibrated=[(one, _limits(one)) for one in calibrated],
            roofline=self._roofline(snapshot, name),
            cells=cells,
            implausible=entities.implausible(snapshot, common_ground.DEVICE, name),
            count=count,
            last=page_query.pages_in(count),
            others=[other for other in _names(snapshot, common_ground.DEVICE) if other != name],
            engines=about["engines"],
            of_it=page_query.address_of_pairs([("name", name)]),
        )

    def picture(self, request: Request) -> Response:
        """Return the roofline of a device as a file."""
        snapshot, name, _ = self._named(request, "device")
        return self._chart_file(request, snapshot, CHARTS[_ROOFLINE], self._counted(snapshot, name))

    def speed_ups(self, request: Request) -> Response:
        """Return the distribution of ratios as a file."""
        snapshot, two = self.site.snapshot(), _two(request, request.path_params["of"])
        why = f"There is nothing to show: it needs {SPEED_UPS.needs}."
        made = self._picture(snapshot, two)
        return self._picture_file(request, snapshot, SPEED_UPS.name, two.key, made, why)

    def _beside(self, request: Request, two: common_ground.TwoSides) -> Response:
        snapshot = self.site.snapshot()
        known = _names(snapshot, two.column)
        missing = [
            why for side in (two.base, two.other) if (why := _why_not(snapshot, two, side, known))
        ]
        sides = [] if missing else [two.base, two.other]
        ground = self._ground(snapshot, two) if all(sides or [""]) else None
        lines = ground.made.lines if ground else ()
        page = page_query.page_of(request.query_params.get("page"))
        return self.site.page(
            request,
            "beside.html",
            status=404 if missing else 200,
            snapshot=snapshot,
            two=two,
            missing=missing,
            names=[*known, *(one for one in sides if one and one not in known)],
            devices=_names(snapshot, common_ground.DEVICE),
            offered=common_ground.narrowings(snapshot, two) if ground else {},
            ground=ground,
            lines=lines[(page - 1) * RATIOS : page * RATIOS],
            page=page,
            last=page_query.pages_in(len(lines), RATIOS),
            answer=common_ground.answer(two, ground) if ground else "",
            losers=common_ground.losers(ground) if ground else [],
            drawn=self._picture(snapshot, two) if ground else None,
            verdict=verdict,
            doubtful=doubtful,
            of_newest_software=any(map(_of_newest_software, lines)),
        )

    def _ground(
        self, snapshot: Snapshot, two: common_ground.TwoSides
    ) -> common_ground.CommonGround:
        if two.base == two.other:
            raise UsageError("Both sides are the same.", "Choose another one.")
        database = self.site.database
        key = ("common ground", two.key)
        return self._once(
            snapshot, key, lambda: common_ground.common_ground(snapshot, database, two)
        )

    def _picture(self, snapshot: Snapshot, two: common_ground.TwoSides) -> Picture | None:
        made = self._ground(snapshot, two).made
        key = ("speed-ups", two.key)
        return self._once(snapshot, key, lambda: speed_ups_picture(made, two.base, two.other))

    def _counted(self, snapshot: Snapshot, name: str) -> page_query.PageQuery:
        """Return the cells of a roofline, those of the largest models first."""
        rows = snapshot.ask(
            f"SELECT key FROM cell WHERE {common_ground.DEVICE} = ? AND {entities.COUNTS}"  # noqa: S608
            " AND latency IS NOT NULL ORDER BY parameters DESC NULLS LAST, key LIMIT ?",
            [name, common_ground.MOST_CELLS],
        )
        return page_query.PageQuery(cells=tuple(str(row["key"]) for row in rows))

    def _roofline(self, snapshot: Snapshot, name: str) -> Picture | None:
        query = self._counted(snapshot, name)
        if not query.cells:
            return None
        return self.site.pictures.of(snapshot, CHARTS[_ROOFLINE], query)


def _two(request: Request, of: str) -> common_ground.TwoSides:
    asked = request.query_params
    sides = asked.get("a", ""), asked.get("b", "")
    narrowed = {name: value for name in common_ground.NARROWED if (value := asked.get(name, ""))}
    return common_ground.sides_of(of == "devices", *sides, asked.get("device", ""), narrowed)


def _names(snapshot: Snapshot, column: str) -> list[str]:
    rows = snapshot.ask(
        f"SELECT {column} AS name FROM cell WHERE {column} IS NOT NULL AND status = 'ok'"  # noqa: S608
        f" GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT {_MOST_NAMES}"
    )
    return [str(row["name"]) for row in rows]


def _why_not(
    snapshot: Snapshot, two: common_ground.TwoSides, name: str, known: Sequence[str]
) -> str:
    """Return why a side cannot be compared, or ""."""
    if not name or name in known:
        return ""
    sql = f"SELECT bool_or(status = 'ok') AS figures FROM cell WHERE {two.column} = ?"  # noqa: S608
    (row,) = snapshot.ask(sql, [name])
    if row["figures"]:
        return ""  # beyond the end of the list
    noun = "device" if two.of_devices else "engine"
    called = in_quotes(safe(name))
    first = (
        f"There is no {noun} {called} here."
        if row["figures"] is None
        else f"The {noun} {called} has no results here."
    )
    more = f" and {len(known) - _MOST_TOLD:,} more" if len(known) > _MOST_TOLD else ""
    there = ", ".join(safe(one, 40) for one in known[:_MOST_TOLD])
    return f"{first} Those with results: {there}{more}." if there else first


def _of_newest_software(line: Compared) -> bool:
    """Return whether versions differ, one of which is the newest that was measured here."""
    rows = (line.side.row, (line.baseline or line.side).row)
    return any(row.get("provenance") == "measured" for row in rows) and bool(other_versions(line))


def _facts(database: Database, about: Row) -> list[tuple[Row, Row]]:
    names, rows = database.query(_INFO, [about["fingerprints"]])
    facts: list[tuple[Row, Row]] = []
    for row in rows:
        known = dict(zip(names, row, strict=True))
        details = json.loads(str(known["details"] or "{}"))
        plain = {
            label: str(known[name])[:16] if name == "measured_at" else known[name]
            for name, label in _LABELS.items()
            if known[name] not in (None, "")
        }
        if (plain, details) not in facts:
            facts.append((plain, details))
    return facts


def _calibrated(database: Database, about: Row, name: str) -> list[DeviceCalibration]:
    prints = about["fingerprints"]
    known = set(prints) if isinstance(prints, list) else set()
    return [
        one
        for one in calibrations(database)
        if one.fingerprint in known or (one.device_name or one.hardware) == name
    ]


def _limits(calibration: DeviceCalibration) -> Sequence[Row]:
    """Return the best value of each probe and precision, with its interval."""
    rows = []
    for kind in (ProbeKind.MATRIX, ProbeKind.ATTENTION, ProbeKind.MEMORY, ProbeKind.LAUNCH):
        for precision in calibration.precisions(kind):
            best = calibration.best(kind, precision)
            if best is None:
                continue
            scale, unit = {"FLOP/s": (1e9, "GFLOP/s"), "B/s": (1e9, "GB/s")}.get(
                best.spec.unit, (1e-6, "µs")
            )
            ends = [None if end is None else end / scale for end in (best.low, best.high)]
            rows.append(
                {
                    "probe": kind.value,
                    "precision": precision,
                    "value": best.value / scale,
                    "low": ends[0],
                    "high": ends[1],
                    "unit": unit,
                    "blocks": len(best.samples_ns),
                }
            )
    return rows
