"""Every figure on the pages of a cell, of several, of models, of devices and of runs is SQL's.

A page of one cell takes a tenth of a second: some are opened, and with `-m full` those of all.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote

import pytest
from plain_cells import Cell
from shown_figures import ShownCell, is_shown, tables_of, text_of
from shown_rows import row_figures, row_launches
from walked_store import IN_CSV, MANY, SEED, Held, WalkedStore

#: Pages of one cell that are opened in `make test`, and pages of histories.
_OPENED, _PAGES = 16, 3


def _some(store: WalkedStore, many: int) -> list[str]:
    """Of the chosen ones so many, of each kind and outcome in turn."""
    by_kind: dict[tuple[object, ...], list[str]] = {}
    for key in sorted(store.chosen):
        cell = store.cells[key]
        how = (cell["kind"], cell["status"], cell["latency_of"], cell["unusable"])
        by_kind.setdefault(how, []).append(key)
    turns = max(map(len, by_kind.values()))
    return [keys[n] for n in range(turns) for keys in by_kind.values() if n < len(keys)][:many]


# -- pages of one cell


_LAUNCH = "SELECT * FROM counting WHERE result_id IN (SELECT unnest(?)) ORDER BY started_at, launch"


def _a_page(held: Held, store: WalkedStore, key: str) -> None:
    cell, page = store.cells[key], store.page(f"/cell/{key}")
    tiles = {
        text_of(name): ShownCell(markup)
        for name, markup in re.findall(
            r"<dt>(.*?)</dt><dd>(.*?)</dd>",
            page.partition('class="tiles"')[2].partition("</dl>")[0],
        )
    }
    (latency,) = (tile for name, tile in tiles.items() if " latency of a batch" in name)
    if cell["kind"] != "emulated":
        middle = cell["tail"] if cell["latency"] is None else cell["latency"]
        held.figure(f"{key} tile", latency.lead, middle)
        held.figure(f"{key} tile", tiles["Throughput"].lead, cell["throughput"])
    held.figure(f"{key} tile", tiles["Peak memory"].lead, cell["memory"])
    held.figure(f"{key} tile", tiles["Launches"].lead, cell["answered"], whole=True)
    held.figure(f"{key} tile", tiles["Samples"].lead, cell["samples"], whole=True)
    tables = tables_of(page)
    launches = store.plain.ask(_LAUNCH, cell["results"])
    shown = next(tables)
    assert len(shown) == len(launches)
    for row, launch in zip(shown, launches, strict=True):
        for heading, name in (
            *(("Median, ms", "latency_p50_ms"), ("Mean, ms", "latency_mean_ms")),
            *(("Items/s", "throughput"), ("Peak, MB", "memory_peak_mb")),
            ("First, ms", "first_inference_ms"),
        ):
            held.figure(f"{key} {name}", row.cells[heading].text, launch[name])
        tails = row.cells["p90, p95, p99, ms"].text.split(" · ")
        for text, name in zip(tails, ("p90", "p95", "p99"), strict=True):
            rough = bool(launch[f"latency_{name}_rough"])
            held.exact(f"{key} {name}", text.startswith("~"), rough)
            held.figure(f"{key} {name}", text.lstrip("~"), launch[f"latency_{name}_ms"])
        ends = row.cells["95 % within it, ms"].text.split(" to ")
        for text, end in zip(ends, ("low", "high"), strict=False):
            held.figure(f"{key} {end}", text, launch[f"latency_ci_{end}_ms"])
        samples = row.cells["Samples"].text
        held.figure(f"{key} samples", samples, launch["sample_count"], whole=True)
    for row in next(tables, []):
        row_figures(held, f"beside {key}", row, store.cells[row.key], "entity")


def _a_document(held: Held, store: WalkedStore, key: str) -> None:
    cell, document = store.cells[key], store.site.get(f"/cell/{key}.json").json()
    for name, ours in (IN_CSV).items():
        held.exact(f"{key}.json {name}", document["cell"][name], cell[ours])
    launches = {launch["result_id"]: launch for launch in document["launches"]}
    for launch in store.plain.ask(_LAUNCH, cell["results"]):
        for name in ("latency_p50_ms", "latency_mean_ms", "latency_p99_ms", "throughput"):
            held.exact(f"{key}.json {name}", launches[launch["result_id"]][name], launch[name])


def test_pages_and_documents_of_a_cell(store):
    held = Held()
    for key in _some(store, _OPENED):
        _a_page(held, store, key)
        _a_document(held, store, key)
    held.past(40 * _OPENED)


@pytest.mark.full
def test_pages_and_documents_of_every_cell(store):
    held = Held()
    for key in store.cells:
        _a_page(held, store, key)
        _a_document(held, store, key)
    held.past(40 * len(store.cells))


# -- one compared with others


def _speed(cell: Cell, base: Cell) -> float | None:
    """Items in the same time, by medians or by rates; None where another figure is compared."""
    if not (cell["by_median"] and base["by_median"] and cell["batch_size"] and base["batch_size"]):
        return None
    tokens = [one["unit"] == "tokens/s" for one in (cell, base)]
    if any(tokens):
        return cell["throughput"] / base["throughput"] if all(tokens) else None
    items = [float(one["latency"]) / one["batch_size"] for one in (cell, base)]
    return items[1] / items[0]


def test_comparisons(store):
    held, ratios = Held(), 0
    models = sorted({str(store.cells[key]["model"]) for key in store.chosen})
    by = random.Random(SEED)
    for model in models:
        keys = [key for key in sorted(store.chosen) if store.cells[key]["model"] == model]
        picked = by.sample(keys, min(12, len(keys)))
        (rows,) = tables_of(store.page("/compare?" + "&".join(f"cell={key}" for key in picked)))
        base = store.cells[picked[0]]
        for row in rows:
            cell = store.cells[row.key]
            row_figures(held, f"compared {row.key}", row, cell, "compared")
            row_launches(held, f"compared {row.key}", row.cells["Launches"].text, cell)
            speed, memory = row.cells["Speed"], row.cells.get("Memory")
            known = _speed(cell, base)
            if row.key == picked[0] or known is None or not re.match(r"[\d,.]+×", speed.text):
                continue
            ratios += 1
            held.figure(f"speed {row.key}", speed.lead.removesuffix("×"), known)
            if memory is not None and cell["memory"] and base["memory"]:
                share = cell["memory"] / base["memory"]
                held.figure(f"memory {row.key}", memory.text.removesuffix("×"), share)
    assert ratios > 20
    held.past(3 * 200)


def test_run_against_run(store):
    """Each side is the middle of its launches: geometric, and the median where one stands alone."""
    held = Held()
    sql = """SELECT list(x) FILTER (x > 0) AS each FROM (SELECT {figure} AS x FROM launch
        WHERE run_id = ? AND series_key = ? AND ran
            AND (coalesce(quality, '') <> 'unusable' OR {any}))"""
    figures = {
        "ms p50": ("latency_p50_ms", "false"),
        "ms mean": ("latency_mean_ms", "false"),
        "items/s": ("coalesce(throughput, 1e3 * batch_size / latency_mean_ms)", "false"),
        "MB": ("memory_peak_mb", "true"),
    }
    figures |= dict.fromkeys(("images/s", "tokens/s"), figures["items/s"])
    series = {
        row["key"]: row["series_key"]
        for row in store.plain.ask(
            "SELECT DISTINCT number AS key, series_key FROM plain JOIN counting"
            " ON list_contains(plain.results, counting.result_id)"
        )
    }
    for then, now in (("lab-0", "lab-1"), ("lab-3", "lab-5"), ("office-1", "office-2")):
        page = store.page(f"/runs/compare?a={then}&b={now}")
        key = ""
        for row in re.findall(r"<tr>.*?</tr>", page.partition("<tbody>")[2], re.DOTALL):
            if 'scope="row"' in row:
                continue
            found = re.search(r'scope="rowgroup".*?</th>', row, re.DOTALL)
            if found:
                cell = re.search(r"/cell/([0-9a-f]{16})", found[0])
                key = cell[1] if cell else ""
                row = row.replace(found[0], "")
                row = re.sub(r'<td rowspan="\d+".*?</td>', "", row, count=1, flags=re.DOTALL)
            if not key:
                continue
            name, before, after, *_ = (text_of(one) for one in re.findall(r"<td.*?</td>", row))
            of, any_quality = figures[name]
            for run, shown in ((then, before), (now, after)):
                (side,) = store.plain.ask(
                    sql.format(figure=of, any=any_quality), run, series[store.cells[key]["number"]]
                )
                several = sorted(side["each"] or [])
                held.count += 1
                middles = (
                    math.exp(sum(map(math.log, several)) / len(several)),
                    (several[(len(several) - 1) // 2] + several[len(several) // 2]) / 2,
                )
                if not any(is_shown(shown, value) for value in middles):
                    held.wrong.append(f"{run} {key} {name}: {shown}, and it is {middles}")
    held.past(60)


_POINTS = """
WITH series AS (SELECT DISTINCT number, place, series_key FROM (
    SELECT number, place, unnest(results) AS result_id FROM plain) JOIN counting
    USING (result_id, place))
SELECT number, run_id, min(started_at) AS moment,
    median(latency_p50_ms) FILTER (latency_p50_ms > 0) AS p50,
    median(latency_mean_ms) FILTER (latency_mean_ms > 0) AS mean
FROM launch JOIN series USING (place, series_key)
WHERE ran AND coalesce(quality, '') <> 'unusable' AND NOT emulated
GROUP BY ALL ORDER BY number, moment
"""


def test_histories(store):
    """A point is a run, by the median over its launches of the figure that most runs have."""
    held = Held()
    points: dict[int, list[Mapping[str, Any]]] = {}
    for run in store.plain.ask(_POINTS):
        points.setdefault(run["number"], []).append(run)
    for rows in islice(store.pages("/history"), _PAGES):
        for row in rows:
            runs = points[store.cells[row.key]["number"]]
            by = max(("p50", "mean"), key=lambda name: sum(run[name] is not None for run in runs))
            figures = [run[by] for run in runs if run[by] is not None]
            held.figure(f"{row.key} runs", row.cells["Runs"].text, len(figures), whole=True)
            first, newest = (name for name in row.cells if name.startswith(("First", "Newest")))
            held.figure(f"{row.key} first", row.cells[first].text, figures[0])
            held.figure(f"{row.key} newest", row.cells[newest].lead, figures[-1])
    held.past(2 * 12 * _PAGES)


# -- pages of models and of devices


def test_pages_of_models(store):
    held, seen = Held(), set()
    for (model,) in sorted({(str(cell["model"]),) for cell in store.cells.values()}):
        for mode in ("inference", "training"):
            if not any(
                (cell["model"], cell["mode"]) == (model, mode) for cell in store.cells.values()
            ):
                continue
            tables = tables_of(store.page(f"/model/{model}?mode={mode}"))
            rows = next(rows for rows in tables if rows and "Latency, ms" in rows[0].cells)
            for row in rows:
                seen.add(row.key)
                cell = store.cells[row.key]
                row_figures(held, f"{model} {row.key}", row, cell, "entity")
                if cell["status"] == "ok":
                    shown = cell["answered"] - cell["left_out"]
                    held.exact(row.key, row.cells["Launches"].text.split()[0], str(shown))
    assert len(seen & store.chosen) > 0.8 * MANY  # a page has room for so many launches
    held.past(2 * MANY)


_FASTEST = """
SELECT {name} AS name,
    arg_min(1000 / item_ms, row(mode <> 'inference', item_ms)) FILTER (item_ms > 0) AS rate,
    count(*) AS n, count(*) FILTER (status <> 'ok') AS failed
    FROM (SELECT *, CASE WHEN status = 'ok' AND kind IN ('measured', 'imported') AND NOT unusable
        THEN 1 END AS counts, coalesce(device_name, hardware) AS device,
        coalesce(coalesce(latency, tail) / nullif(batch_size, 0), 1000 / nullif(throughput, 0))
            AS item_ms FROM plain)
    {where} GROUP BY 1"""


@pytest.mark.parametrize("name", ["model", "device"])
def test_lists_of_models_and_of_devices(store, name):
    held = Held()
    every = store.plain.ask(_FASTEST.format(name=name, where=""))
    fastest = {
        row["name"]: row["rate"]
        for row in store.plain.ask(_FASTEST.format(name=name, where="WHERE counts IS NOT NULL"))
    }
    rows = {row.cells[name.capitalize()].lead: row for row in next(store.pages(f"/{name}s"))}
    assert set(rows) == {row["name"] for row in every}
    for one in every:
        row = rows[one["name"]]
        held.figure(f"{one['name']} n", row.cells["Configurations"].lead, one["n"], whole=True)
        shown = row.cells["Fastest, items/s"].lead
        held.figure(f"{one['name']} fastest", shown, fastest.get(one["name"]))
    held.past(2 * len(every))


def test_pages_of_devices(store):
    held = Held()
    for device in sorted({str(cell["device_name"]) for cell in store.cells.values()}):
        page = store.page(f"/device/{quote(device)}")
        for rows in tables_of(page):
            for row in rows:
                if row.key:
                    row_figures(held, f"{device} {row.key}", row, store.cells[row.key], "entity")
    held.past(200)
