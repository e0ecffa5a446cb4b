"""Every figure of tables, points and files of 500 cells by chance is SQL's.

SQL is asked of the store's own tables (`plain_cells`), and not by anything that makes a page.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest
from plain_cells import Cell
from shown_rows import row_figures, row_launches
from walked_store import IN_CSV, IN_FILES, MANY, Held, WalkedStore

from accelbench.present.dashboard.explore_points import FIGURES as EXPLORED
from accelbench.present.dashboard.page_query import COLUMNS
from accelbench.present.dashboard.snapshot import taken
from accelbench.present.publishing.bundle import rows_of_table, write_results

# -- tables


def test_the_table_of_results_as_it_stands(store):
    held, seen = Held(), set()
    for rows in store.pages("/results"):
        seen |= {row.key for row in rows}
        for row in rows:
            if row.key in store.chosen:
                cell = store.cells[row.key]
                row_figures(held, row.key, row, cell, "results")
                row_launches(held, row.key, row.cells["Launches"].text, cell)
                held.exact(row.key, row.cells["Newest"].text, str(cell["moment"])[:10])
    assert seen == set(store.cells)
    held.past(4 * MANY)


def test_the_table_of_results_with_all_columns(store):
    held = Held()
    columns = "&".join(f"col={name}" for name in COLUMNS)
    for rows in store.pages(f"/results?{columns}&sort=-latency"):
        for row in rows:
            if row.key not in store.chosen:
                continue
            cell = store.cells[row.key]
            row_figures(held, row.key, row, cell, "results")
            words = {
                "Hardware": cell["hardware"], "Runtime": cell["runtime"],
                "Precision": cell["precision"], "Mode": cell["mode"], "Status": cell["status"],
                "Run": cell["run_id"], "Provenance": cell["kind"], "Family": cell["family"],
            }  # fmt: skip
            for name, value in words.items():
                held.exact(f"{row.key} {name}", row.cells[name].text, value)
            for name, value in (
                *(("Batch", cell["batch_size"]), ("Parameters", cell["parameters"])),
                *(("Samples", cell["samples"]), ("Runs", cell["runs"])),
            ):
                held.figure(f"{row.key} {name}", row.cells[name].lead, value, whole=True)
            held.figure(f"{row.key} tail", row.cells["Tail latency, ms"].lead, cell["tail"])
    held.past(15 * MANY)


_FILTERS: Mapping[str, tuple[str, str]] = {
    "hardware=cuda&hardware=rocm": ("hardware IN ('cuda', 'rocm')", ""),
    "model=BERT&precision=fp16": ("contains(lower(model), 'bert') AND precision = 'fp16'", ""),
    "provenance=measured&status=ok": ("kind = 'measured' AND status = 'ok'", ""),
    "mode=training": ("mode = 'training'", ""),
    "batch-min=8&batch-max=32": ("batch_size BETWEEN 8 AND 32", ""),
    "latency-max=10&sort=latency": ("latency <= 10", "latency"),
    "throughput-min=500&sort=-throughput": ("throughput >= 500", "-throughput"),
    "memory-min=1000&memory-max=5000&sort=memory": ("memory BETWEEN 1000 AND 5000", "memory"),
    "cost-max=5": ("cost <= 5", ""),
    "from=2026-03-04&to=2026-03-05": (
        "moment >= DATE '2026-03-04' AND moment < DATE '2026-03-06'",
        "",
    ),
    "runtime=openvino&family=vision": ("runtime = 'openvino' AND family = 'vision'", ""),
}


@pytest.mark.parametrize("address", _FILTERS)
def test_what_a_filter_leaves(store, address):
    held, seen = Held(), list[str]()
    where, order = _FILTERS[address]
    for rows in store.pages(f"/results?{address}"):
        seen += [row.key for row in rows]
        for row in rows:
            row_figures(held, row.key, row, store.cells[row.key], "results")
    asked = {row["number"] for row in store.plain.ask(f"SELECT number FROM plain WHERE {where}")}
    assert asked == {store.cells[key]["number"] for key in seen}
    assert len(seen) == len(asked)
    if order:
        figures = [store.cells[key][order.lstrip("-")] for key in seen]
        assert figures == sorted(figures, reverse=order.startswith("-"))
    held.past(20)


_GROUPED = """
SELECT {groups}, count(*) AS n, count(figure) AS known, {best}(figure) AS best,
    median(figure) AS middle, min(figure) AS low, max(figure) AS high,
    count(DISTINCT CASE WHEN figure > 0 THEN coalesce(unit, '') = 'tokens/s' END) AS kinds
FROM (SELECT *, CASE WHEN status = 'ok' AND kind IN ('measured', 'imported') AND {figure} > 0
    {usable} THEN {figure} END AS figure FROM plain) GROUP BY ALL
"""


def _groups(store: WalkedStore, figure: str, *names: str) -> dict[tuple[str, ...], Any]:
    sql = _GROUPED.format(
        groups=", ".join(names),
        figure=figure,
        best="max" if figure == "throughput" else "min",
        usable="" if figure == "memory" else "AND NOT unusable",
    )
    return {
        tuple("no data" if row[name] is None else str(row[name]) for name in names): row
        for row in store.plain.ask(sql)
    }


def _amounts(figure: str, group: Mapping[str, Any]) -> Mapping[str, float | None]:
    """What is said of a group; of rates of images and of tokens there is nothing in common."""
    unlike = figure in ("throughput", "cost") and group["kinds"] > 1
    names = ("best", "middle", "low", "high")
    return {name: None if unlike else group[name] for name in names}


@pytest.mark.parametrize("figure", ["latency", "throughput", "memory", "cost"])
def test_groups(store, figure):
    held = Held()
    # Training and inference are never of one group, whatever is asked for.
    # Batches of different sizes take different times: a list of latencies does not mix them.
    more = (("batch_size", "Batch"),) if figure == "latency" else ()
    groups = _groups(store, figure, "model", "hardware", "mode", *(name for name, _ in more))
    heads = ("Model", "Hardware", "Mode", *(head for _, head in more))
    address = f"/results?group=model&group=hardware&figure={figure}"
    for rows in store.pages(address):
        for row in rows:
            name = tuple(row.cells[of].text for of in heads)
            group = groups.pop(name)
            known = _amounts(figure, group)
            held.figure(f"{name} n", row.cells["Configurations"].lead, group["n"], whole=True)
            best = row.cells["Best"].lead or row.cells["Best"].text
            if best != "can't tell":
                held.figure(f"{name} best", best, known["best"])
            held.figure(f"{name} median", row.cells["Median"].lead, known["middle"])
            low, _, high = row.cells["Range"].text.partition(" … ")
            held.figure(f"{name} low", low, known["low"])
            held.figure(f"{name} high", high or low, known["high"])
    assert groups == {}
    held.past(300)


@pytest.mark.parametrize("by", ["best", "median"])
@pytest.mark.parametrize("figure", ["latency", "throughput", "memory"])
def test_pivots(store, figure, by):
    held = Held()
    groups = _groups(store, figure, "model", "mode", "runtime")
    address = f"/results?group=model&group=runtime&as=pivot&figure={figure}&by={by}"
    for rows in store.pages(address):
        for row in rows:
            heading, *columns = row.cells
            model, _, mode = row.cells[heading].text.removesuffix(" ≠").rpartition(" ")
            for column in columns:
                group = groups.pop((model, mode, column), None)
                shown = row.cells[column].lead or row.cells[column].text.partition(" of ")[0]
                if group is None:
                    held.exact(f"{model} {column}", shown, "no data")
                    continue
                known = _amounts(figure, group)["best" if by == "best" else "middle"]
                if shown != "can't tell":
                    held.figure(f"{model} {column}", shown, known)
    assert groups == {}
    held.past(50)


# -- explored, at a glance, and to be kept


_EXPLORED = {
    **{name: name for name in ("latency", "throughput", "tail", "memory", "cost", "energy")},
    **{name: name for name in ("error", "ttft", "flops")},
    "token-rate": "token_rate",
    "parameters": "parameters",
    "batch": "batch_size",
}
_SCALED = {"parameters": 1e6, "flops": 1e9}
_TIMED = frozenset(_EXPLORED) - {"memory", "error", "parameters", "flops", "batch"}


@pytest.mark.parametrize("along", sorted(EXPLORED))
def test_points_by_every_figure(store, along):
    held, up = Held(), "memory" if along in ("latency", "tail") else "latency"
    document = store.site.get(f"/explore/points.json?x={along}&y={up}").json()
    timed = {along, up} & _TIMED
    for key, x, y in zip(document["key"], document["x"], document["y"], strict=True):
        for name, value in ((along, x), (up, y)):
            exact = store.cells[key][_EXPLORED[name]]
            held.exact(f"{name} of {key}", value, float(exact) / _SCALED.get(name, 1.0))
    there = {
        key
        for key, cell in store.cells.items()
        if cell["status"] == "ok"
        and cell["kind"] in ("measured", "imported")
        and not (timed and cell["unusable"])
        and all(cell[_EXPLORED[name]] for name in (along, up))
    }
    assert set(document["key"]) == there
    held.past(10)


def test_the_table_as_a_file(store):
    import csv

    held = Held()
    for row in csv.DictReader(io.StringIO(store.page("/cells.csv"))):
        cell = store.cells[row["key"]]
        for name, ours in (IN_CSV).items():
            value = cell[ours]
            shown = float(row[name]) if row[name] else None
            held.exact(f"{row['key']} {name}", shown, None if value is None else float(value))
        held.exact(row["key"], row["status"], cell["status"])
        held.exact(row["key"], row["run_id"], cell["run_id"])
        held.exact(row["key"], row["latency_of"] or None, cell["latency_of"])
        held.exact(row["key"], row["quality"] == "unusable", cell["unusable"])
    held.past(20 * len(store.cells))


def test_the_table_of_a_published_bundle(store, database, tmp_path_factory):
    held, path = Held(), tmp_path_factory.mktemp("bundle") / "results.parquet"
    write_results(rows_of_table(taken(database, "now")), (), path)
    rows = pq.read_table(path).to_pylist()
    assert {row["key"] for row in rows} == set(store.cells)
    for row in rows:
        cell = store.cells[row["key"]]
        for name in IN_FILES.keys() & row.keys():
            value = cell[IN_FILES[name]]
            held.exact(f"{row['key']} {name}", row[name], None if value is None else float(value))
        held.exact(row["key"], row["tail_of"], cell["tail_of"] if cell["tail"] else None)
        if cell["cost"] is not None:
            held.figure(f"{row['key']} cost", row["cost"], cell["cost"])
    held.past(10 * len(store.cells))


@pytest.mark.parametrize(
    "changed",
    [
        lambda cell: {"latency": (cell["latency"] or 1.0) * 1.02},
        lambda cell: {"memory": (cell["memory"] or 1.0) * 0.98},
        lambda cell: {"launches": cell["launches"] + 1},
        lambda cell: {"unusable": not cell["unusable"]},
    ],
    ids=["latency", "memory", "launches", "use"],
)
def test_a_wrong_figure_of_a_table_is_found(store, changed):
    key = next(key for key, cell in _in_order(store) if cell["by_median"] and cell["memory"])
    other = replace(
        store, cells={**store.cells, key: {**store.cells[key], **changed(store.cells[key])}}
    )
    held = Held()
    for rows in store.pages("/results?status=ok&provenance=measured"):
        for row in rows:
            row_figures(held, row.key, row, other.cells[row.key], "results")
            row_launches(held, row.key, row.cells["Launches"].text, other.cells[row.key])
    assert held.wrong
    assert all(one.startswith(key) for one in held.wrong)


def _in_order(store: WalkedStore) -> Iterator[tuple[str, Cell]]:
    return iter(sorted((k, c) for k, c in store.cells.items() if c["kind"] == "measured"))
