"""The pages of devices and engines: a list, one device, and two of them beside each other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from accelbench.analysis.comparison import Compared, doubtful
from accelbench.analysis.speed_ups import other_versions, verdict
from accelbench.core.calibration import DeviceCalibration, ProbeKind
from accelbench.core.errors import UsageError
from accelbench.core.rows import Row
from accelbench.core.visible import in_quotes
from accelbench.query.calibrations import calibrations
from accelbench.report.charts import CHARTS
from accelbench.report.charts.spread import SPEED_UPS, speed_ups_picture
from accelbench.report.charts.words import safe
from accelbench.report.dashboard.asked import NEWEST_FIRST, PAGE, PageQuery, page_of
from accelbench.report.dashboard.entities import lists as entities
from accelbench.report.dashboard.entities.common_ground import (
    NARROWED,
    CommonGround,
    TwoSides,
    answer,
    common_ground,
    devices_beside,
    engines_beside,
    losers,
    most_in_common,
    narrowings,
)
from accelbench.report.dashboard.entities.lists import DEVICE, MOST_CELLS
from accelbench.report.dashboard.entities.model_pages import name_of
from accelbench.report.dashboard.site import NotThereError, SitePages
from accelbench.report.dashboard.snapshots.snapshot import Snapshot

if TYPE_CHECKING:
    from accelbench.report.charts.chart import Picture
    from accelbench.store.database import Database

#: Ratios of a page of its table.
RATIOS = 40
#: Devices, or engines, that a list to choose from has.
_MOST_NAMES = 300
#: Of these a sentence names so many.
_MOST_TOLD = 12
_ROOFLINE = "roofline"
_INFO = """
SELECT hardware, vendor, unit_count, memory_mb, power_limit_watts, driver, runtime_version,
    details::VARCHAR AS details, measured_at::VARCHAR AS measured_at
FROM hardware_info WHERE device_fingerprint IN (SELECT unnest(?::VARCHAR[])) ORDER BY ALL
"""
#: What is said of a device first, by the column of `hardware_info`.
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


class DevicePages(SitePages):
    """Devices and engines."""

    def all(self, request: Request) -> Response:
        """Every device of what was asked for; two of them beside each other where two are named."""
        if request.query_params.get("a") or request.query_params.get("b"):
            return self._beside(request, _two_devices(request))
        snapshot, query = self._requested(request, NEWEST_FIRST)
        return self.site.page(
            request,
            "devices.html",
            query,
            snapshot=snapshot,
            listed=entities.listed(snapshot, query, DEVICE),
            names=_names(snapshot, DEVICE),
            pair=self._pair(snapshot, True),
        )

    def device(self, request: Request) -> Response:
        """One device: what it is, how fast it can be, what it did, and what others are beside."""
        snapshot, query = self._requested(request)
        name, database = name_of(request), self.site.database
        about = entities.about(snapshot, DEVICE, name)
        if about is None:
            raise NotThereError(f"Nothing here is of a device {in_quotes(safe(name))}.")
        cells, count = entities.of_device(snapshot, name, query.page)
        with database.asking():
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
            implausible=entities.implausible(snapshot, DEVICE, name),
            count=count,
            last=max(1, -(-count // PAGE)),
            others=[other for other in _names(snapshot, DEVICE) if other != name],
            engines=about["engines"],
            of_it=f"?{urlencode({'name': name})}",
        )

    def picture(self, request: Request) -> Response:
        """The roofline of a device as a file."""
        snapshot = self.site.snapshot()
        cells = self._counted(snapshot, name_of(request))
        return self._chart_file(request, snapshot, CHARTS[_ROOFLINE], cells)

    def engines(self, request: Request) -> Response:
        """Every engine; two of them beside each other on the same device where two are named."""
        if request.query_params.get("a") or request.query_params.get("b"):
            return self._beside(request, _two_engines(request))
        snapshot, query = self._requested(request, NEWEST_FIRST)
        return self.site.page(
            request,
            "engines.html",
            query,
            snapshot=snapshot,
            listed=entities.listed(snapshot, query, "runtime"),
            engines=_names(snapshot, "runtime"),
            pair=self._pair(snapshot, False),
            devices=_names(snapshot, DEVICE),
        )

    def speed_ups(self, request: Request) -> Response:
        """The distribution of either as a file."""
        of, snapshot = request.path_params["of"], self.site.snapshot()
        two = _two_devices(request) if of == "devices" else _two_engines(request)
        why = f"There is nothing to show: it needs {SPEED_UPS.needs}."
        made = self._picture(snapshot, two)
        return self._picture_file(request, snapshot, SPEED_UPS.name, two.key, made, why)

    def _beside(self, request: Request, two: TwoSides) -> Response:
        snapshot = self.site.snapshot()
        known = _names(snapshot, two.column)
        missing = [
            why for side in (two.base, two.other) if (why := _why_not(snapshot, two, side, known))
        ]
        sides = [] if missing else [two.base, two.other]
        ground = self._ground(snapshot, two) if all(sides or [""]) else None
        lines = ground.made.lines if ground else ()
        last, page = max(1, -(-len(lines) // RATIOS)), page_of(request.query_params.get("page"))
        return self.site.page(
            request,
            "beside.html",
            status=404 if missing else 200,
            snapshot=snapshot,
            two=two,
            missing=missing,
            names=[*known, *(one for one in sides if one and one not in known)],
            devices=_names(snapshot, DEVICE),
            offered=narrowings(snapshot, two) if ground else {},
            ground=ground,
            lines=lines[(page - 1) * RATIOS : page * RATIOS],
            page=page,
            last=last,
            answer=answer(two, ground) if ground else "",
            losers=losers(ground) if ground else [],
            drawn=self._picture(snapshot, two) if ground else None,
            verdict=verdict,
            doubtful=doubtful,
            of_newest_software=any(map(_of_newest_software, lines)),
        )

    def _ground(self, snapshot: Snapshot, two: TwoSides) -> CommonGround:
        if two.base == two.other:
            raise UsageError("These are one and the same.", "Choose another beside it.")
        database = self.site.database
        key = ("common ground", two.key)
        return self._once(snapshot, key, lambda: common_ground(snapshot, database, two))

    def _pair(self, snapshot: Snapshot, of_devices: bool) -> Sequence[str]:
        key = ("most in common", of_devices)
        found = self._once(snapshot, key, lambda: most_in_common(snapshot, of_devices))
        return found or _names(snapshot, DEVICE if of_devices else "runtime")[:2]

    def _picture(self, snapshot: Snapshot, two: TwoSides) -> Picture | None:
        made = self._ground(snapshot, two).made
        key = ("speed-ups", two.key)
        return self._once(snapshot, key, lambda: speed_ups_picture(made, two.base, two.other))

    def _counted(self, snapshot: Snapshot, name: str) -> PageQuery:
        """Some cells of a device, of its models the largest first: what a roofline is drawn of."""
        rows = snapshot.ask(
            f"SELECT key FROM cell WHERE {DEVICE} = ? AND {entities.COUNTS}"  # noqa: S608
            " AND latency IS NOT NULL ORDER BY parameters DESC NULLS LAST, key LIMIT ?",
            [name, MOST_CELLS],
        )
        return PageQuery(cells=tuple(str(row["key"]) for row in rows))

    def _roofline(self, snapshot: Snapshot, name: str) -> Picture | None:
        query = self._counted(snapshot, name)
        if not query.cells:
            return None
        return self.site.pictures.of(snapshot, CHARTS[_ROOFLINE], query)


def _two_devices(request: Request) -> TwoSides:
    return devices_beside(*_sides(request), _narrowed(request))


def _two_engines(request: Request) -> TwoSides:
    device = request.query_params.get("device", "")
    return engines_beside(*_sides(request), device, _narrowed(request))


def _sides(request: Request) -> tuple[str, str]:
    return request.query_params.get("a", ""), request.query_params.get("b", "")


def _narrowed(request: Request) -> Mapping[str, str]:
    asked = {name: request.query_params.get(name, "") for name in NARROWED}
    return {name: value for name, value in asked.items() if value}


def _names(snapshot: Snapshot, column: str) -> list[str]:
    rows = snapshot.ask(
        f"SELECT {column} AS name FROM cell WHERE {column} IS NOT NULL AND status = 'ok'"  # noqa: S608
        f" GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT {_MOST_NAMES}"
    )
    return [str(row["name"]) for row in rows]


def _why_not(snapshot: Snapshot, two: TwoSides, name: str, known: Sequence[str]) -> str:
    """Why a side is none that can be compared, with those that can; "" where it is one."""
    if not name or name in known:
        return ""
    sql = f"SELECT bool_or(status = 'ok') AS figures FROM cell WHERE {two.column} = ?"  # noqa: S608
    (row,) = snapshot.ask(sql, [name])
    if row["figures"]:
        return ""  # of so many that the list has not all
    noun = "device" if two.of_devices else "engine"
    called = in_quotes(safe(name))
    first = (
        f"There is no {noun} {called} here."
        if row["figures"] is None
        else f"The {noun} {called} has no figures here."
    )
    more = f" and {len(known) - _MOST_TOLD:,} more" if len(known) > _MOST_TOLD else ""
    there = ", ".join(safe(one, 40) for one in known[:_MOST_TOLD])
    return f"{first} Those with figures: {there}{more}." if there else first


def _of_newest_software(line: Compared) -> bool:
    """Whether versions are not alike of what was measured here, of which the newest stands."""
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
    """The best of each kind and precision, with its interval."""
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
