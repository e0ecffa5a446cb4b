"""Every place where people and machines read figures of a database, one after the other."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from asked_store import said as store_said
from dashboard_world import visitor
from keyed import figures_of_document, figures_of_row, figures_of_spec
from printed import Printed, figures_in, figures_of_page

from accelbench.judge.matrix import RULE
from accelbench.judge.points import points
from accelbench.judge.questions import AXES
from accelbench.present.charts import CHARTS
from accelbench.present.charts.chart import Subject, picture
from accelbench.present.dashboard import details
from accelbench.store.database import Database

#: What a chart's `value` is; its axis says so too.
OF_CHART = {
    "hardware-latency": "ms", "hardware-throughput": "items/s", "hardware-memory": "MB",
    "latency-by-batch": "ms", "throughput-by-batch": "items/s", "memory-by-batch": "MB",
    "training-inference": "ms", "precision": "ms", "framework": "ms",
    "architecture": "ms an item", "hardware-cost": "money", "cost-by-batch": "money",
    "training-cost": "money", "latency-distribution": "ms", "cold-warm": "ms",
    "pareto": "items/s", "energy-latency": "J", "roofline": "operations", "trend": "ms",
    "compatibility": "", "scaling": "items/s", "communication": "ms", "ranks": "",
    "collectives": "", "model-panels": "ms",
}  # fmt: skip
CAPTIONS = {
    **{f"Figures of {CHARTS[name].title}": of for name, of in OF_CHART.items()},
    **{
        CHARTS[name].answers[:1].upper() + CHARTS[name].answers[1:]: of
        for name, of in OF_CHART.items()
    },
}
FORMATS = ("csv", "json", "md", "parquet", "arrow")
CI = ("github-action-benchmark", "bencher", "junit")
METRICS = ("latency", "throughput", "memory")
#: 0: an answer, 4: nothing to answer, which is text all the same; 1: check's "worse".
_FINE = (0, 1, 4)


@dataclass(frozen=True)
class Surface:
    """What one place shows of some models."""

    name: str
    figures: Sequence[Printed]
    size: int  # characters


def questions(models: Sequence[str]) -> list[list[str]]:
    """Every command that tells of results of some models."""
    return [
        *(["compare", *models, "--by", axis] for axis in AXES),
        ["compare", *models, "--pivot"],
        *(["history", *models, "--all", "--metric", one] for one in METRICS),
        *(["recommend", *models, "--batch-size", size] for size in ("1", "256")),
        ["recommend", *models, "--max-latency-ms", "50"],
        ["matrix", *models],
        ["db", "status"],
    ]


def terminal(database: Database, asked: Sequence[Sequence[str]], folder: Path) -> Iterator[Surface]:
    """What commands print for people and for machines, and what they write into files."""
    for number, words in enumerate(asked):
        for form in ((), ("--json",)):
            text = said(database, *words, *form)
            if form and text.startswith(("{", "[")):
                yield _surface([*words, *form], figures_of_document(json.loads(text)), text)
            else:
                # Why a result is implausible is a calculation with the documented peak, no figure.
                why = r"[\d.]+ [TG]?FLOP in[\s\S]*?documented\s+peak\s+of[^/]*/s"
                told = re.sub(why, "", text)
                told = re.sub(r"(?m)^ *size .*$", "", told) if words[0] == "db" else told
                yield _surface([*words, *form], figures_in(_plain(told)), text)
        for suffix in _WRITTEN.get(words[0], ()) if "--pivot" not in words else ():
            path = folder / f"{words[0]}-{number}.{suffix}"
            said(database, *words, "--output", str(path))
            if path.exists():
                found = _of_file(path)
                yield Surface(" ".join([*words, "--output"]), found.figures, found.size)
                path.unlink()


_WRITTEN = {"compare": ("csv",), "matrix": ("html", "md")}


def pages(
    database: Database, query: str = "", most: int = 6, charts: Iterable[str] = tuple(CHARTS)
) -> Iterator[Surface]:
    """The dashboard's pages and downloads.

    Args:
        database: whose.
        query: a filter, as `model=resnet50`.
        most: cells to open.
        charts: to look at, with their tables.
    """
    site = visitor(database)
    first = site.get(f"/results?{query}").text
    keys = list(dict.fromkeys(re.findall(r'href="/cell/([0-9a-f]{16})"', first)))
    chosen = "&".join(f"cell={key}" for key in keys[:most])
    orders = ("hardware", "latency", "-latency", "throughput", "-throughput", "memory")
    addresses = [
        *(f"/results?{query}&sort={order}" for order in orders),
        *(f"/{name}?{query}" for name in ("history", "matrix", "charts")),
        "/runs",
        f"/cells.csv?{query}",
        *(f"/compare?{chosen}",) * bool(keys),
        *(f"/cell/{key}" for key in keys[:most]),
        *(f"/cell/{key}.json" for key in keys[:most]),
        *(f"/chart/{name}?{query}" for name in charts),
    ]
    for address in addresses:
        found = site.get(address)
        assert found.status_code == 200, address
        text = found.text
        if address.startswith("/cells.csv"):
            yield _of_csv([address], text)
        elif ".json" in address:
            yield _surface([address], figures_of_document(json.loads(text)), text)
        else:
            yield _surface([address], figures_of_page(_plain(text), _captions(address)), text)


def cells(database: Database) -> Iterator[Surface]:
    """All cells of the dashboard, as the file that it offers."""
    yield _of_csv(["/cells.csv"], visitor(database).get("/cells.csv").text)


def drawn(database: Database, models: Sequence[str]) -> Iterator[Surface]:
    """The data of every chart, as it is handed to whatever draws it."""
    where = "" if not models else f"WHERE model IN ({', '.join('?' * len(models))})"
    _, found = database.query(f"SELECT result_id FROM benchmark_results {where}", list(models))
    rows = details.launches_in(database, [key for (key,) in found])
    subject = Subject(points(rows), rows=rows)
    for name, chart in CHARTS.items():
        made = picture(chart, subject)
        if made is not None:
            spec = figures_of_spec(made.spec, name)
            told = figures_of_document(made.records, OF_CHART[name], name)
            text = json.dumps(made.spec, default=str)
            yield _surface([f"chart {name}"], [*spec, *told], text)


def reports(database: Database, words: Sequence[str], folder: Path) -> Iterator[Surface]:
    """The report of models or a machine, as a page and as Markdown."""
    for suffix in ("html", "md"):
        path = folder / f"report.{suffix}"
        form = {"html": "html", "md": "markdown"}[suffix]
        said(database, "report", *words, "--format", form, "--output", str(path))
        if path.exists():
            yield _of_file(path)
            path.unlink()


def exports(
    database: Database, folder: Path, formats: Sequence[str] = (*FORMATS, *CI)
) -> Iterator[Surface]:
    """Every form in which results leave."""
    for name in formats:
        path = folder / (f"all-{name}" if name in CI else f"all.{name}")
        form = ["--format", name] if name in CI else []
        said(database, "db", "export", str(path), *form)
        yield _of_file(path)


def said(database: Database, *words: str) -> str:
    return store_said(database, *words, codes=_FINE)


def _of_file(path: Path) -> Surface:
    if path.suffix in (".parquet", ".arrow"):
        rows = _table(path)
        return _surface([path.name], figures_of_document(rows), str(rows)[:0])
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".csv":
        return _of_csv([path.name], text)
    if path.suffix == ".html":
        return _surface([path.name], figures_of_page(_plain(text), CAPTIONS), text)
    if path.name.endswith("junit"):
        return _surface([path.name], _of_junit(text), text)
    if text.startswith(("{", "[")):
        return _surface([path.name], figures_of_document(json.loads(text)), text)
    marked = text
    for caption, of in CAPTIONS.items():
        marked = marked.replace(f"<summary>{caption}", f"<summary>{caption}: {of}")
    return _surface([path.name], figures_in(_plain(marked)), text)


def _table(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    import pyarrow as pa

    with pa.OSFile(str(path)) as stream:
        return list(pa.ipc.open_file(stream).read_all().to_pylist())


def _of_csv(words: Sequence[str], text: str) -> Surface:
    csv.field_size_limit(2**27)
    rows = csv.DictReader(io.StringIO(text))
    return _surface(words, (one for row in rows for one in figures_of_row(row)), text)


def _of_junit(text: str) -> Iterator[Printed]:
    for name, value in re.findall(r'<property name="([^"]*)" value="([^"]*)"', text):
        for one in figures_of_document({name: {"value": float(value)}}):
            yield replace(one, reach=0.5e-5 * one.value)  # six digits
    for seconds in re.findall(r' time="([0-9.]+)"', text):
        if float(seconds):
            yield from figures_in(f"{seconds} s", tables=False)


def _captions(address: str) -> dict[str, str]:
    name = re.match(r"/chart/([a-z-]+)", address)
    return {"": OF_CHART[name[1]]} if name else CAPTIONS


def _plain(text: str) -> str:
    """Without a machine's own memory and the matrix's rule, whose bounds are nobody's figures."""
    text = re.sub(r"(CPUs?, )[0-9.]+ GiB", r"\1", text)
    for sentence in RULE:
        text = text.replace(sentence, "")
    return text


def _surface(words: Sequence[str], figures: Iterable[Printed], text: str) -> Surface:
    return Surface(" ".join(words), tuple(figures), len(text))
