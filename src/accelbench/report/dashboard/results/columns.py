"""The columns that a table of results can have: the one registry of them. Pure.

What can be ordered by, filtered by a number, grouped by and shown is an entry here, by its name in
an address. SQL is made of these columns alone, whatever an address says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from accelbench.core.axes import AS_TOLD, axes_of


@dataclass(frozen=True)
class ResultColumn:
    """A column of a table of results.

    Attributes:
        name: in an address.
        label: its heading.
        column: of a cell of the snapshot.
        order: what a table is ordered by, in SQL; the column itself where nothing is said.
        unit: what a number of it is in, beside a field to filter by it.
        number: it holds numbers, and can be filtered by the least and the most.
        group: rows can be grouped by it.
        usual: shown unasked where rows differ in it.
        field: a form offers to filter by it.
    """

    name: str
    label: str
    column: str
    order: str = ""
    unit: str = ""
    number: bool = False
    group: bool = False
    usual: bool = False
    field: bool = False

    @property
    def sql(self) -> str:
        """What it is ordered by."""
        return self.order or self.column


def _told(name: str, label: str, column: str = "", *, usual: bool = False) -> ResultColumn:
    """A column of words, of which several results have the same."""
    return ResultColumn(name, label, column or name, group=True, usual=usual)


def _count(
    name: str, label: str, column: str = "", *, usual: bool = False, field: bool = False
) -> ResultColumn:
    """A column of whole numbers that was asked for, of which several results have the same."""
    column = column or name
    return ResultColumn(name, label, column, number=True, group=True, usual=usual, field=field)


def _figure(name: str, label: str, column: str = "", unit: str = "") -> ResultColumn:
    """A column of what was measured."""
    return ResultColumn(name, label, column or name, unit=unit, number=True, field=True)


_SIZES = tuple(
    ResultColumn(
        axis.column,
        axis.column.replace("_", " ").capitalize(),
        axis.column,
        number=not axis.text,
        group=True,
    )
    for axis in axes_of(*AS_TOLD)
)
MODEL = ResultColumn("model", "Model", "model", order="lower(model)", group=True)
SIZE = ResultColumn("size", "Size", "", order=", ".join(size.column for size in _SIZES), usual=True)
#: What is measured: its interval and its quality stand beside it.
FIGURES = (
    _figure("latency", "Median latency, ms", unit="ms"),
    _figure("throughput", "Items/s"),
    _figure("memory", "Peak memory, MB", unit="MB"),
    _figure("cost", "Cost of a million", "cost_per_million"),
)
_ALL = (
    MODEL,
    ResultColumn(
        "hardware", "Hardware", "hardware", "hardware, device_name", group=True, usual=True
    ),
    _told("device", "Device", "device_name", usual=True),
    _told("runtime", "Runtime", usual=True),
    _told("precision", "Precision", usual=True),
    _count("batch", "Batch", "batch_size", usual=True, field=True),
    SIZE,
    *_SIZES,
    _told("mode", "Mode", usual=True),
    # What was measured comes before what is alike in most rows: a narrow screen shows it.
    *FIGURES,
    _told("scenario", "Scenario", usual=True),
    _told("compiled", "Compiled", usual=True),
    _count("threads", "Threads", usual=True, field=True),
    _count("devices", "Processes", "world_size", usual=True),
    _told("machine", "Machine", usual=True),
    _told("provenance", "Provenance", "kind"),
    _told("family", "Family"),
    _told("architecture", "Architecture"),
    _told("model_size", "Size of model"),
    _count("parameters", "Parameters", field=True),
    _told("weights", "Weights", usual=True),
    _told("optimizer", "Optimizer", usual=True),
    _told("data", "Data", "data_source", usual=True),
    _told("options", "Options"),
    _told("versions", "Versions"),
    ResultColumn("tail", "Tail latency, ms", "tail", unit="ms", number=True),
    _told("unit", "Unit of rate", "throughput_unit"),
    _told("quality", "Quality"),
    _told("verification", "Verification"),
    _told("status", "Status"),
    _told("reason", "Reason"),
    ResultColumn("launches", "Launches", "launches", number=True),
    ResultColumn("samples", "Samples", "samples", number=True),
    ResultColumn("runs", "Runs", "runs", number=True),
    ResultColumn("warnings", "Warnings", "warnings", number=True),
    ResultColumn("workarounds", "Workarounds", "workarounds", number=True),
    _told("run", "Run", "run_id"),
    ResultColumn("date", "Newest", "moment"),
)
COLUMNS: Mapping[str, ResultColumn] = {column.name: column for column in _ALL}
#: What is shown of every row whatever rows differ in, where any has a value.
OF_EVERY_ROW = (*(figure.name for figure in FIGURES), "launches", "date")
#: What can be filtered by its least and its most.
NUMBERS: Mapping[str, ResultColumn] = {
    name: column for name, column in COLUMNS.items() if column.number
}
#: Of these what a form has fields for.
NUMBER_FIELDS = tuple(column for column in _ALL if column.field)
GROUPS: Mapping[str, ResultColumn] = {
    name: column for name, column in COLUMNS.items() if column.group
}
