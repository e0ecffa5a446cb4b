"""The dashboard at scale: how long from a click to the picture of a million results?

Public tables are repeated until there are so many results, as in `scale.py`, and imported into a
database. A second database has the same results as some hundred thousand cells without a history:
more to filter, and more to keep. A third has the tables as they are. Of each: the command until
it answers and until the first page, what its findings take, and then every page many times, each
time of something else (`dashboard_requests`). The first two are looked at in Chromium as well: the
first page, and each filter from its change to the next frame that has the answer.

    python benchmarks/dashboard.py --tidy timm.parquet aihub.parquet …  [--results 1000000]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import duckdb

import scale
from dashboard_requests import Asking, page_figures
from keeping import keep, verdict

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "present"))

from chrome import Chrome, program

FIRST_PAGE_S = 1.0
FILTER_MS = 300.0
#: Processor time of what the first page says of the store.
FINDINGS_S = 5.0
_TIMES = 5

#: Set a filter as a hand would, and wait for the frame after the one that has the answer.
_FILTERED = """
(async () => {
  const before = document.querySelector('#results').firstElementChild;
  const input = document.querySelector(%s);
  const start = performance.now();
  if (input.type === 'search') {
    input.value = %s;
    input.dispatchEvent(new Event('input', {bubbles: true}));
  } else input.click();
  while (document.querySelector('#results').firstElementChild === before)
    await new Promise((done) => { new MutationObserver((_, one) => { one.disconnect(); done(); })
      .observe(document.querySelector('#results'), {childList: true}); });
  await new Promise(requestAnimationFrame);
  await new Promise((done) => { const turn = new MessageChannel(); turn.port1.onmessage = done;
    turn.port2.postMessage(0); });
  return performance.now() - start;
})()
"""


#: Each run's launches are a cell of their own, under a model's name of its own.
_MANY = """
COPY (
    SELECT * REPLACE (
        model || '-' || substr(run_id, 2) AS model,
        series_key || run_id AS series_key,
        case_id || run_id AS case_id
    ) FROM '{path}'
) TO '{many}' (FORMAT parquet)
"""


def made(folder: Path, tidy: list[Path], results: int, many: bool) -> Path:
    """A database of so many results: many runs of some cells, or many cells."""
    file = folder / ("many.duckdb" if many else "long.duckdb")
    path = scale.synthesised(tidy, results, folder)
    if many:
        told = path.with_name("many.parquet")
        duckdb.connect().execute(_MANY.format(path=path, many=told))
        path.unlink()
        path = told
    words = ["db", "import", "parquet", str(path), "--json", "--db", str(file)]
    subprocess.run([sys.executable, "-m", "accelbench", *words], check=True, capture_output=True)
    path.unlink()
    scale.begin_runs(file)
    return file


def as_it_is(folder: Path, tidy: list[Path]) -> Path:
    """A database of the tables themselves: nearly every result of these is a cell of its own."""
    file = folder / "real.duckdb"
    for path in tidy:
        words = ["db", "import", "tidy", str(path), "--json", "--db", str(file)]
        line = [sys.executable, "-m", "accelbench", *words]
        subprocess.run(line, check=True, capture_output=True)
    return file


@contextmanager
def served(file: Path) -> Iterator[tuple[str, float, int]]:
    """The command, its address, how long it took until it gave one, and its process."""
    start = time.monotonic()
    line = [sys.executable, "-m", "accelbench", "dashboard", "--port", "0", "--db", str(file)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as one:
        assert one.stdout is not None
        said = one.stdout.readline()
        try:
            yield said.split()[-1], time.monotonic() - start, one.pid
        finally:
            one.terminate()


def asked_for(file: Path) -> dict[str, Any]:
    """Figures of the requests of one database."""
    with served(file) as (address, started, pid):
        asking, begun = Asking(address, pid), time.monotonic()
        asking.first_page()
        first, spent = started + time.monotonic() - begun, asking.cpu()
        asking.findings()
        findings = {"seconds": time.monotonic() - begun, "cpu_seconds": asking.cpu() - spent}
        print(f"{file.name}: the first page {first:.2f} s after the start ({spent:.2f} s of")
        print(f"  processor time), its findings {findings['cpu_seconds']:.2f} s of it later")
        figures = page_figures(asking)
    print(f"  memory: {figures['memory']['now_mib']:.0f} MiB, {figures['memory']['most_mib']:.0f}")
    return {"first_page_s": first, "first_page_cpu_s": spent, "findings": findings, **figures}


def looked_at(file: Path, tab: Chrome) -> dict[str, Any]:
    """Figures of one database in a browser."""
    with served(file) as (root, started, _):
        address = f"{root}results"
        begun = time.monotonic()
        tab.go(address)
        tab.until(lambda: tab.js("!!document.querySelector('#results tbody tr')"))
        cold = time.monotonic() - begun
        pages = []
        for _ in range(_TIMES):
            begun = time.monotonic()
            tab.go(address)
            pages.append(time.monotonic() - begun)
        cells = tab.js("document.querySelector('#count').textContent.trim()")
        filters = {}
        for selector, value in wanted(tab):
            times = []
            for _ in range(_TIMES):
                tab.go(address)
                times.append(float(tab.js(_FILTERED % (repr(selector), repr(value)))))
            filters[selector + (f" {value}" if value else "")] = median(times)
    print(f"{file.name}: {cells}")
    print(f"  the command answers after {started:.2f} s")
    print(f"  the first page, the store just opened: {cold:.2f} s; again {median(pages):.2f} s")
    for name, ms in filters.items():
        print(f"  {name}: {ms:.0f} ms")
    return {
        "cells": cells,
        "command_s": started,
        "first_page_s": cold,
        "page_s": median(pages),
        "filters_ms": filters,
    }


def wanted(tab: Chrome) -> list[tuple[str, str]]:
    """The first and the last value of every facet, and letters of a name."""
    ids = tab.js(
        "[...document.querySelectorAll('form[data-instant] fieldset')].flatMap((one) => {"
        " const all = [...one.querySelectorAll('input[type=checkbox]')];"
        " return all.length ? ['#' + all[0].id, '#' + all.at(-1).id] : []; })"
    )
    return [("#model", "res"), ("#model", "zzz"), *((one, "") for one in dict.fromkeys(ids))]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tidy", type=Path, nargs="+")
    parser.add_argument("--results", type=int, default=1_000_000)
    parser.add_argument("--db", type=Path, nargs="+", help="look at these instead")
    parser.add_argument("--without-browser", action="store_true", help="requests alone")
    asked = parser.parse_args()
    where = program()
    if where is None and not asked.without_browser:
        raise SystemExit("There is no Chromium here: accelbench setup browser --with-chromium")
    figures: dict[str, Any] = {}
    seen: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="accelbench-dashboard-") as name:
        tidy = [one.resolve() for one in asked.tidy or ()]
        files = asked.db or [made(Path(name), tidy, asked.results, many) for many in (False, True)]
        real = [] if asked.db else [as_it_is(Path(name), tidy)]
        for file in [*files, *real]:
            figures[file.name] = asked_for(file)
        if where is not None and not asked.without_browser:
            with Chrome(where) as tab:
                seen = {file.name: looked_at(file, tab) for file in files}
    reached = {**kept_to(figures), **seen_in_time(seen)}
    kept = {"results": asked.results, "requests": figures, "figures": seen, "reached": reached}
    keep("dashboard", kept)


def kept_to(figures: dict[str, Any]) -> dict[str, bool]:
    """Whether every page answers in time, at its worst and of every database."""
    every = [page for one in figures.values() for page in one["pages"].items()]
    worst: dict[str, float] = {}
    for name, page in every:
        worst[name] = max(page["wall_worst_ms"], worst.get(name, 0.0))
    limits = {name: page["target_ms"] for name, page in every}
    told = {
        name: verdict(f"{name}, milliseconds at worst", ms, limits[name])
        for name, ms in worst.items()
    }
    slowest = max(one["findings"]["cpu_seconds"] for one in figures.values())
    told["findings"] = verdict("findings, processor seconds", slowest, FINDINGS_S)
    return told


def seen_in_time(seen: dict[str, Any]) -> dict[str, bool]:
    """Whether it is in time in a browser."""
    if not seen:
        return {}
    slowest = max(one["first_page_s"] for one in seen.values())
    slow = max(ms for one in seen.values() for ms in one["filters_ms"].values())
    return {
        "first page": verdict("first page, seconds", slowest, FIRST_PAGE_S),
        "filter": verdict("slowest filter, milliseconds", slow, FILTER_MS),
    }


if __name__ == "__main__":
    main()
