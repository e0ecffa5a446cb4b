"""Requests to a dashboard that is up: of each of its pages how long, and of what processor time.

Each request of a page asks for something else, so that nothing that was kept for the one before
answers it. Processor time is that of the server alone: beside other work on the machine it says
what a page costs, where the clock says what it had to wait for.
"""

from __future__ import annotations

import html
import http.client
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, cycle, islice, product, repeat
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote, unquote, unquote_plus, urlencode, urlsplit

#: Addresses that are asked for of a page, and of filters.
VARIANTS, FILTERS = 8, 20
FILTER_MS, PAGE_MS, FIRST_MS = 200.0, 1000.0, 500.0
_KEY = re.compile(r'name="cell" value="([0-9a-f]{16})"')
_CHOICE = re.compile(r'id="[a-z]+-\d+" name="([a-z]+)" value="([^"]*)"')
_COLUMN = re.compile(r'name="col" value="([a-z_]+)"')
_SELECT = re.compile(r'<select[^>]*name="(\w+)"[^>]*>(.*?)</select>', re.DOTALL)
_OPTION = re.compile(r'<option(?: value="([^"]*)")?')
_ENTITY = r'href="/%s(?:/([^"?]+)|\?name=([^"&]+))"'
_WORKED_OUT = "being worked out"
_READ = 202
#: Findings of which nobody waits longer.
_PATIENCE_S = 120.0
#: Facets of which a form names few values are compared with each other as well.
_EACH = 4


@dataclass(frozen=True)
class Answered:
    """One answer."""

    status: int
    wall_ms: float
    cpu_ms: float
    body: str


@dataclass(frozen=True)
class Offered:
    """What a store's own pages lead to and offer to choose."""

    facets: Mapping[str, Sequence[str]]
    cells: Sequence[str]
    models: Sequence[str]
    devices: Sequence[str]
    engines: Sequence[str]
    runs: Sequence[str]
    columns: Sequence[str]
    groups: Sequence[str]

    def filters(self) -> Iterator[Sequence[tuple[str, str]]]:
        """Filters of every kind: letters, numbers, a day, values of each facet, and two of them."""
        yield from ([("model", letters)] for letters in ("res", "zzz", "e", "mobilenet v"))
        yield [("latency-max", "5")]
        yield [("latency-min", "1"), ("batch-max", "8")]
        yield [("from", "2023-01-01")]
        for place in (0, -1, 1, 2):
            for name, values in self.facets.items():
                if len(values) > abs(place):
                    yield [(name, values[place])]
        for (one, of_one), (other, of_other) in combinations(self.facets.items(), 2):
            for pair in product(of_one[:_EACH], of_other[:_EACH]):
                yield [(one, pair[0]), (other, pair[1])]


@dataclass(frozen=True)
class PageTarget:
    """A page, which addresses of it are asked for, and within how many milliseconds it answers."""

    name: str
    within_ms: float
    addresses: Callable[[Offered], Iterable[str]]
    most: int = VARIANTS


class Asking:
    """Whoever asks a server, with a clock of its processor time."""

    def __init__(self, address: str, pid: int) -> None:
        self._host, self._pid = urlsplit(address).netloc, pid

    def cpu(self) -> float:
        """Seconds of processor time that the server has taken: clock_getcpuclockid(3) of it."""
        return time.clock_gettime((~self._pid << 3) | 2)

    def memory(self) -> dict[str, float]:
        """MiB that the server has now, and had at most."""
        told = Path(f"/proc/{self._pid}/status").read_text()
        names = {"now_mib": "VmRSS", "most_mib": "VmHWM"}
        return {
            name: int(found[1]) / 1024
            for name, line in names.items()
            if (found := re.search(rf"{line}:\s+(\d+) kB", told))
        }

    def get(self, path: str) -> Answered:
        """One page, read to its end."""
        connection = http.client.HTTPConnection(self._host, timeout=300)
        begun, spent = time.perf_counter(), self.cpu()
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        wall, cpu = time.perf_counter() - begun, self.cpu() - spent
        connection.close()
        return Answered(answer.status, wall * 1e3, cpu * 1e3, body.decode(errors="replace"))

    def first_page(self) -> None:
        """Wait until the first page is no word that the store is being read."""
        while self.get("/").status == _READ:
            time.sleep(0.02)

    def findings(self) -> None:
        """Wait until the first page has its findings."""
        begun = time.perf_counter()
        while _WORKED_OUT in self.get("/").body and time.perf_counter() - begun < _PATIENCE_S:
            time.sleep(0.1)

    def offered(self) -> Offered:
        """What there is to be asked for."""
        results, devices = self.get("/results").body, self.get("/devices").body
        facets: dict[str, list[str]] = {}
        for name, value in _CHOICE.findall(results):
            facets.setdefault(name, []).append(html.unescape(value))
        return Offered(
            facets,
            _once(_KEY.findall(results)),
            _names(self.get("/models").body, "model"),
            _names(devices, "device"),
            _options(self.get("/engines").body, "a"),
            _options(self.get("/runs/compare").body, "a"),
            _once(_COLUMN.findall(results)),
            _options(results, "group"),
        )


def _once(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _options(page: str, select: str) -> list[str]:
    found = dict(_SELECT.findall(page)).get(select, "")
    return [html.unescape(value) for value in _OPTION.findall(found) if value]


def _names(page: str, of: str) -> list[str]:
    found = re.findall(_ENTITY % of, page)
    return _once(unquote(path) if path else unquote_plus(name) for path, name in found)


def _at(path: str, *pairs: tuple[str, str]) -> str:
    return f"{path}?{urlencode(pairs)}" if pairs else path


def _again(path: str) -> Callable[[Offered], Iterator[str]]:
    return lambda _: repeat(path)


def _filtered(path: str) -> Callable[[Offered], Iterator[str]]:
    return lambda offered: (_at(path, *chosen) for chosen in offered.filters())


def _entities(kind: str, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        plain = "%" not in name and name not in ("", ".", "..")
        yield f"/{kind}/{quote(name, safe='')}" if plain else _at(f"/{kind}", ("name", name))


def _sorted(offered: Offered) -> Iterator[str]:
    for number, name in enumerate(("model", *offered.columns)):
        yield _at("/results", ("sort", f"{'-' * (number % 2)}{name}"))


def _grouped(offered: Offered) -> Iterator[str]:
    ways = (("figure", "throughput"), ("order", "count"), ("order", "best"), ("by", "median"))
    for name, way in zip(offered.groups, cycle(ways), strict=False):
        yield _at("/results", ("group", name), way)


def _crossed(offered: Offered) -> Iterator[str]:
    for down, across in combinations([name for name in offered.groups if name != "options"], 2):
        yield _at("/results", ("group", down), ("group", across), ("as", "pivot"))


def _pages(_: Offered) -> Iterator[str]:
    return (_at("/results", ("page", f"{number}")) for number in (2, 3, 5, 8, 99, 400))


def _three(offered: Offered) -> Iterator[str]:
    for first in range(0, len(offered.cells) - 2, 3):
        yield _at("/compare", *(("cell", key) for key in offered.cells[first : first + 3]))


def _two(path: str, names: Sequence[str]) -> Iterator[str]:
    return (_at(path, ("a", one), ("b", other)) for one, other in combinations(names[:8], 2))


_AXES = ("latency", "throughput", "memory", "batch", "parameters", "tail", "cost", "error")
_FIELDS = ("place", "device", "runtime", "hardware", "precision", "family", "mode", "batch")


def _axes(_: Offered) -> Iterator[str]:
    return (_at("/explore", ("x", x), ("y", y)) for x, y in combinations(_AXES, 2))


def _spread(_: Offered) -> Iterator[str]:
    for of, by in product(("latency", "throughput", "memory"), _FIELDS):
        yield _at("/explore/distribution", ("of", of), ("by", by))


_EVERY = 99
TARGETS = (
    PageTarget("/", FIRST_MS, _again("/"), FILTERS),
    PageTarget("/results, any filter", FILTER_MS, _filtered("/results"), FILTERS),
    PageTarget("/results by any column", PAGE_MS, _sorted, _EVERY),
    PageTarget("/results, a later page", PAGE_MS, _pages),
    PageTarget("/results in groups", PAGE_MS, _grouped, _EVERY),
    PageTarget("/results as a pivot", PAGE_MS, _crossed, FILTERS),
    PageTarget("/explore, any filter", PAGE_MS, _filtered("/explore"), FILTERS),
    PageTarget("/explore, any axes", PAGE_MS, _axes),
    PageTarget("/explore/points.json", PAGE_MS, _filtered("/explore/points.json")),
    PageTarget("/explore/distribution", PAGE_MS, _spread, FILTERS),
    PageTarget("/cell", PAGE_MS, lambda offered: (f"/cell/{key}" for key in offered.cells)),
    PageTarget("/compare of three", PAGE_MS, _three),
    PageTarget("/models", PAGE_MS, _filtered("/models")),
    PageTarget("/model", PAGE_MS, lambda offered: _entities("model", offered.models)),
    PageTarget("/devices", PAGE_MS, _filtered("/devices")),
    PageTarget("/device", PAGE_MS, lambda offered: _entities("device", offered.devices)),
    PageTarget("/devices, two", PAGE_MS, lambda offered: _two("/devices", offered.devices)),
    PageTarget("/engines, two", PAGE_MS, lambda offered: _two("/engines", offered.engines)),
    PageTarget("/runs", PAGE_MS, _again("/runs"), 3),
    PageTarget("/runs/compare", PAGE_MS, lambda offered: _two("/runs/compare", offered.runs), 5),
    PageTarget("/history", PAGE_MS, _filtered("/history")),
    PageTarget("/matrix", PAGE_MS, _filtered("/matrix")),
    PageTarget("/charts", PAGE_MS, _filtered("/charts")),
    PageTarget("/chart/hardware-latency", PAGE_MS, _filtered("/chart/hardware-latency"), 5),
)


def page_figures(asking: Asking) -> dict[str, Any]:
    """Figures of every page, each with the address that took most time, and the memory.

    The first matrix of a server looks at the machine that it is on, once.
    """
    offered = asking.offered()
    first_matrix = asking.get("/matrix").wall_ms
    figures: dict[str, Any] = {}
    for target in TARGETS:
        addresses = list(islice(target.addresses(offered), target.most))
        answers = [(asking.get(address), address) for address in addresses]
        if answers:
            figures[target.name] = told = _told(target, answers)
            print(
                f"  {target.name:26} {told['wall_p50_ms']:5.0f} ms, {told['wall_worst_ms']:5.0f}"
                f" at worst; processor {told['cpu_p50_ms']:5.0f}, {told['cpu_worst_ms']:5.0f}"
                f" of {told['requests']}: {told['slowest'][:90]}",
                flush=True,
            )
    return {"pages": figures, "first_matrix_ms": first_matrix, "memory": asking.memory()}


def _told(target: PageTarget, answers: Sequence[tuple[Answered, str]]) -> dict[str, Any]:
    wrong = [address for answer, address in answers if answer.status >= 500]
    if wrong:
        raise SystemExit(f"The dashboard came to nothing at {wrong[0]}.")
    walls = [answer.wall_ms for answer, _ in answers]
    cpus = [answer.cpu_ms for answer, _ in answers]
    return {
        "requests": len(answers),
        "refused": sum(answer.status != 200 for answer, _ in answers),
        "wall_p50_ms": median(walls),
        "wall_worst_ms": max(walls),
        "cpu_p50_ms": median(cpus),
        "cpu_worst_ms": max(cpus),
        "target_ms": target.within_ms,
        "slowest": max(answers, key=lambda pair: pair[0].wall_ms)[1],
    }
