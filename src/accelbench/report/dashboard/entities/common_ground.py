"""What two devices, or two engines, have both answered: chosen in SQL, compared with each other.

The snapshot finds the configurations in common; the launches of these alone are read from the
store. `analysis.speed_ups` makes the ratios.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from accelbench.analysis.questions import AXES, ComparisonAxis, Key
from accelbench.analysis.speed_ups import SpeedUps, speed_ups
from accelbench.core.rows import Row, number, text
from accelbench.query.baselines import COLUMNS
from accelbench.query.histories import histories_of
from accelbench.query.stored_results import rows_of
from accelbench.report.dashboard.entities.lists import DEVICE
from accelbench.report.dashboard.snapshots.cells import Cell
from accelbench.report.dashboard.snapshots.snapshot import Snapshot
from accelbench.store.database import Database

#: Configurations in common that are compared with each other on a page, of each model the smallest
#: batch first: a ratio with its interval takes a millisecond.
MOST_COMMON = 500
#: Launches of each cell: a sweep has five, an import any number.
_MOST_LAUNCHES = 12
#: Launches that are read at all.
_MOST_READ = 6000
_COUNTS = "status = 'ok' AND kind IN ('measured', 'imported')"
#: What else is narrowed down by: its name in an address → the column.
NARROWED: Mapping[str, str] = {"mode": "mode", "precision": "precision", "batch": "batch_size"}

#: Cells of both, of each way to run the newest version, of the questions that both answered.
#: What only one of them answered is left out first, by a hash: to tell questions and versions of
#: two hundred thousand cells takes half a second.
_COMMON = """
WITH of_both AS (
    SELECT hash({alike}) AS about FROM cell WHERE {condition}
    GROUP BY 1 HAVING count(DISTINCT {side}) = 2
), here AS (
    SELECT rowid AS place, {side} AS side, md5(concat_ws(chr(31), {alike})) AS question,
        batch_size, model
    FROM cell WHERE {condition} AND hash({alike}) IN (FROM of_both)
    QUALIFY row_number() OVER (
        PARTITION BY {side}, {alike}, {way}, kind, machine ORDER BY moment DESC NULLS LAST, key) = 1
), common AS (
    SELECT question, any_value(batch_size) AS batch, any_value(model) AS model
    FROM here GROUP BY 1 HAVING count(DISTINCT side) = 2
), of_models AS (
    SELECT *, row_number() OVER (PARTITION BY model ORDER BY batch NULLS LAST, question) AS of_model
    FROM common
), numbered AS (
    SELECT question, count(*) OVER () AS every,
        row_number() OVER (ORDER BY of_model, lower(model), question) AS nth FROM of_models
)
SELECT key, results[:{launches}] AS results, every
FROM here JOIN numbered USING (question) JOIN cell ON cell.rowid = here.place
WHERE nth <= {most} ORDER BY nth, here.side, key
"""


@dataclass(frozen=True)
class TwoSides:
    """Which two things are compared with each other, and where.

    Attributes:
        base: what stands for once.
        other: what is compared with it.
        column: what they are, in SQL over cells.
        axis: on which they lie.
        device: where, of engines; any where it is empty.
        narrowed: of `NARROWED` the values that count.
    """

    base: str
    other: str
    column: str
    axis: ComparisonAxis
    device: str = ""
    narrowed: Mapping[str, str] = field(default_factory=dict)

    @property
    def of_devices(self) -> bool:
        """Whether they are devices, and not engines."""
        return self.axis.name == "hardware"

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from others."""
        return self.axis.name, self.base, self.other, self.device, *self.narrowed.items()

    def pairs(self) -> list[tuple[str, str]]:
        """As an address says it."""
        device = [("device", self.device)] if self.device else []
        return [("a", self.base), ("b", self.other), *device, *self.narrowed.items()]

    def where(self) -> tuple[str, list[str]]:
        """Their cells, as SQL and its parameters."""
        parts = [_COUNTS, f"{self.column} IN (?, ?)"]
        values = [self.base, self.other]
        if self.device:
            parts.append(f"{DEVICE} = ?")
            values.append(self.device)
        for name, value in self.narrowed.items():
            parts.append(f"{NARROWED[name]}::VARCHAR = ?")
            values.append(value)
        return " AND ".join(parts), values


@dataclass(frozen=True)
class CommonGround:
    """Two things beside each other.

    Attributes:
        made: the ratios.
        count: how many configurations they have in common.
        held: how many of them were looked at.
        cells: of each launch's run and question the cell, to lead to it: by result.
        machines: those of either side.
    """

    made: SpeedUps
    count: int
    held: int
    cells: Mapping[str, str]
    machines: Sequence[Sequence[str]]

    def cell_of(self, row: Row) -> str:
        """The key of the cell that a launch is of."""
        return self.cells.get(text(row, "result_id"), "")


def devices_beside(base: str, other: str, narrowed: Mapping[str, str]) -> TwoSides:
    """Two devices."""
    return TwoSides(base, other, DEVICE, AXES["hardware"], narrowed=narrowed)


def engines_beside(base: str, other: str, device: str, narrowed: Mapping[str, str]) -> TwoSides:
    """Two engines on a device, or on each that ran both."""
    return TwoSides(base, other, "runtime", AXES["runtime"], device, narrowed)


def common_ground(snapshot: Snapshot, database: Database, two: TwoSides) -> CommonGround:
    """Everything that both have answered, up to a limit."""
    condition, values = two.where()
    names = [f"coalesce({name}::VARCHAR, '')" for name in two.axis.alike]
    if not two.of_devices:
        names.append(DEVICE)
    found = cast(
        "list[Cell]",
        snapshot.ask(
            _COMMON.format(
                side=two.column,
                alike=", ".join(names),
                way=", ".join(two.axis.along),
                condition=condition,
                launches=_MOST_LAUNCHES,
                most=MOST_COMMON,
            ),
            [*values, *values],
        ),
    )
    count = int(number(cast(Row, found[0]), "every") or 0) if found else 0
    ids, by_result = _launches(found)
    with database.asking():
        rows = _read(database, ids) if ids else []
        placed = [_placed(row, two) for row in rows]
        runs = {text(row, "run_id") for row in rows}
        machines = {run: snapshot.machines.get(snapshot.ran.get(run, "")) for run in runs}
        by_run = (
            [
                (machines[run], [row for row in placed if text(row, "run_id") == run])
                for run in sorted(runs)
            ]
            if len(runs) < _FEW_RUNS
            else [(None, placed)]
        )
        known = histories_of(database, by_run)
    made = speed_ups(placed, two.axis, _place(two.base, two), _place(two.other, two), known)
    sides = [
        sorted(
            {
                str(machines[text(row, "run_id")])
                for row in placed
                if two.axis.value(row) == _place(side, two) and machines[text(row, "run_id")]
            }
        )
        for side in (two.base, two.other)
    ]
    return CommonGround(made, count, len(made.lines), by_result, sides)


#: Of more runs nobody asks which machine each older run was on.
_FEW_RUNS = 200


def _launches(found: Sequence[Cell]) -> tuple[list[str], dict[str, str]]:
    """Ids of launches, and the cell of each; as many as are read."""
    by_result: dict[str, str] = {}
    for cell in found:
        if len(by_result) + len(cell["results"]) > _MOST_READ:
            break
        by_result.update(dict.fromkeys(cell["results"], cell["key"]))
    return list(by_result), by_result


def _read(database: Database, ids: Sequence[str]) -> list[Row]:
    columns = tuple(dict.fromkeys((*COLUMNS, "result_id", "arm")))
    condition = "result_id IN (SELECT unnest(?::VARCHAR[]))"
    return [dict(row) for row in rows_of(database, columns, condition, [list(ids)])]


def _placed(row: Row, two: TwoSides) -> Row:
    """A device of several platforms, as OpenVINO's processor, is one place."""
    if not two.of_devices:
        return row
    name = str(row.get("device_name") or row.get("hardware"))
    return {**row, "device_name": name, "hardware": _PLATFORM}


#: Of two devices the name alone is their place.
_PLATFORM = "device"


def _place(name: str, two: TwoSides) -> Key:
    return (_PLATFORM, name) if two.of_devices else (name,)


def narrowings(snapshot: Snapshot, two: TwoSides) -> dict[str, list[str]]:
    """Of each name that narrows down the values that either side has."""
    condition, values = replace(two, narrowed={}).where()
    offered = {}
    for name, column in NARROWED.items():
        rows = snapshot.ask(
            f"SELECT {column}::VARCHAR AS value FROM cell WHERE {condition}"  # noqa: S608
            f" AND {column} IS NOT NULL GROUP BY {column}"
            f" HAVING count(DISTINCT {two.column}) = 2 ORDER BY {column}",
            values,
        )
        offered[name] = [str(row["value"]) for row in rows]
    return offered
