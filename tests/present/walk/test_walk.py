"""Every table, page, chart and export shows figures of the rows that were imported or measured.

A number that stands as a latency, a rate, a memory or a ratio has to be carried by a row of its
source, read without accelbench, or be a stated mean or ratio of several.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pytest
from carried import Carried, Kind, SourceRow
from keyed import figures_of_document, figures_of_row, figures_of_spec
from printed import figures_in, figures_of_page
from small_tables import FORMATS, imported, measured
from surfaces import Surface, drawn, exports, pages, reports, terminal
from walked import Walk, foreign

from accelbench.store.database import Database

#: Of each public table the machine that it is, and the axes along which it has something.
PUBLIC = {
    "timm": ("source timm", ("hardware", "batch", "run")),
    "aihub": ("source qai-hub-models", ("engine",)),
    "mlperf": ("source mlperf-inference", ("hardware",)),
    "ncnn": ("source ncnn-benchmark", ("threads",)),
    "tidy": ("source somebody", ("batch", "run")),
}
OURS = [
    *(["compare", "--by", axis] for axis in ("hardware", "engine", "batch", "run")),
    ["compare", "--pivot"],
    *(["history", "--all", "--metric", one] for one in ("latency", "throughput")),
    ["check", "--run", "night-1", "--baseline", "night-0"],
    ["recommend", "bert-tiny", "--batch-size", "1"],
    ["recommend", "bert-tiny", "--max-latency-ms", "50"],
    ["matrix"],
    ["db", "status"],
]
THEIRS = [
    *(
        ["compare", "--machine", machine, "--by", axis]
        for machine, axes in PUBLIC.values()
        for axis in axes
    ),
    ["compare", "--machine", "source timm", "--pivot"],
    ["recommend", "net_b", "--max-latency-ms", "50"],
]


@dataclass(frozen=True)
class Table:
    """A database, and what its sources say."""

    database: Database
    asked: Sequence[Sequence[str]]
    rows: list[SourceRow]
    reported: Sequence[str]

    @cached_property
    def carried(self) -> Carried:
        return Carried(self.rows)


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """All formats of others."""
    folder, rows = tmp_path_factory.mktemp("public"), []
    database = Database(folder / "walked.duckdb")
    for name, (kind, write, read) in FORMATS.items():
        (folder / name).mkdir()
        path = write(folder / name)
        imported(database, kind, path)
        rows += read(path)
    return Table(database, THEIRS, rows, ("--machine", "source somebody"))


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Two runs of ours."""
    database = Database(tmp_path_factory.mktemp("ours") / "walked.duckdb")
    return Table(database, OURS, measured(database), ())


@pytest.fixture(params=["public", "ours"])
def table(request: pytest.FixtureRequest) -> Table:
    found: Table = request.getfixturevalue(request.param)
    return found


def _past(surfaces: Iterable[Surface], table: Table) -> None:
    walk = Walk()
    walk.past(surfaces, table.carried)
    assert walk.strange == [], "\n".join(walk.strange)
    assert walk.figures.total() > 0


def test_commands(table, tmp_path):
    _past(terminal(table.database, table.asked, tmp_path), table)


def test_pages(table):
    _past(pages(table.database, most=4), table)


def test_charts(table):
    _past(drawn(table.database, ()), table)


def test_reports(table, tmp_path):
    _past(reports(table.database, table.reported, tmp_path), table)


def test_exports(table, tmp_path):
    _past(exports(table.database, tmp_path), table)


ROW = SourceRow("net", "asked", 8, {"mean": 41.2345, "p90": 55.6789}, 194.012, 123.456)
OTHER = SourceRow("net", "elsewhere", 8, {"mean": 20.7654}, 385.257)
RIGHT = (
    " hardware   mean ms   items/s    MB   times as fast \n"
    " ────────────────────────────────────────────────── \n"
    " cpu           41.2       194   123        baseline \n"
    " cuda          20.8       385   no data       1.99× \n"
)


@pytest.mark.parametrize(
    ("right", "wrong", "kind"),
    [
        ("41.2", "42.1", Kind.TIME),
        ("194", "197", Kind.RATE),
        ("123 ", "132 ", Kind.MEMORY),
        ("1.99×", "2.02×", Kind.RATIO),
    ],
)
def test_a_wrong_figure_in_a_terminal_is_found(right, wrong, kind):
    carried = Carried([ROW, OTHER])
    assert foreign(list(figures_in(RIGHT)), carried) == []
    (found,) = foreign(list(figures_in(RIGHT.replace(right, wrong))), carried)
    assert found.kind is kind
    assert f"{found.value:g}" == wrong.strip(" ×")


@pytest.mark.parametrize(
    ("text", "strange"),
    [
        ("41.2 ms a step", []),
        ("5.15 ms an item, 194 sequences/s, 0.0412 s", []),
        ("0.0014 ms", [0.0014]),
        ("41.2 ms an item", [41.2]),
        ("takes 1.99× as long, 55.7 ms", []),
        ("takes 2.5× as long (95 % interval 2.40 to 2.60)", [2.5]),
        ("≈17 ms", []),
    ],
)
def test_sentences_are_read(text, strange):
    found = foreign(list(figures_in(text)), Carried([ROW, OTHER]))
    assert [one.value for one in found] == strange


def test_a_wrong_figure_in_a_page_a_document_a_table_and_a_chart_is_found():
    carried = Carried([ROW])
    page = "<table><tr><th>Median latency, ms</th></tr><tr><td>{}</td></tr></table><p>{} MB</p>"
    spec = {
        "data": {"values": [{"value": 41.2345, "other": 1.0, "launches": 1}]},
        "encoding": {"x": {"field": "value", "title": "mean latency of a batch, ms"}},
    }
    wrong = [
        *figures_of_page(page.format("41.3", "123")),
        *figures_of_page(page.format("41.2", "124")),
        *figures_of_document({"latency_ms": 41.2346, "throughput": 194.012}),
        *figures_of_document({"latency (ms)": {"value": 5.1543125}}),
        *figures_of_row({"model": "net", "latency_p90_ms": "55.6788"}),
        *figures_of_spec(spec),
    ]
    found = [(one.value, one.kind) for one in foreign(wrong, carried)]
    assert found == [
        (41.3, Kind.TIME),
        (124.0, Kind.MEMORY),
        (41.2346, Kind.TIME),
        (5.1543125, Kind.TIME),
        (55.6788, Kind.TIME),
        (1.0, Kind.UNKNOWN),
    ]


def test_the_walk_finds_a_figure_that_its_source_does_not_carry(ours, tmp_path):
    first, *others = ours.rows
    carried = Carried([replace(first, times={**first.times, "p90": 1.0}), *others])
    walk = Walk()
    walk.past(exports(ours.database, tmp_path, ("csv",)), carried)
    (found,) = walk.strange
    assert f"{first.times['p90']:g} ms" in found
