"""How a row of any table of a dashboard shows a cell, compared with what SQL says of it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from plain_cells import Cell
from shown_figures import ShownCell, ShownRow
from walked_store import Held

#: Student's t for 95 % of as many launches.
_QUANTILES = {5: 2.77645}
#: What the columns of figures are called in three kinds of tables.
_FORMS: Mapping[str, tuple[str, str, str, str]] = {
    "results": ("Median latency, ms", "Items/s", "Peak memory, MB", "$/M"),
    "compared": ("Median latency, ms", "Items/s", "Peak, MB", "$/M"),
    "entity": ("Latency, ms", "Items/s", "Peak, MB", "$/M"),
}


def row_figures(held: Held, where: str, row: ShownRow, cell: Cell, form: str) -> None:
    latency, rate, memory, cost = (row.cells.get(name) for name in _FORMS[form])
    if cell["status"] != "ok":
        for shown in filter(None, (rate, memory, cost)):
            held.exact(where, shown.text, "no data")
        return
    if memory is not None:
        held.figure(f"{where} memory", memory.lead, cell["memory"])
    if cell["kind"] == "emulated":
        assert latency is not None
        held.exact(where, latency.text, "no times: emulated")
        if rate is not None:
            held.exact(where, rate.text, "n/a")
        return
    if latency is not None:
        _latency(held, where, latency, cell)
    if rate is not None:
        held.figure(f"{where} rate", rate.lead, cell["throughput"])
        tokens = cell["throughput"] is not None and cell["unit"] == "tokens/s"
        held.exact(f"{where} unit", "tokens/s" in rate.text, tokens)
    if cost is not None:
        held.figure(f"{where} cost", cost.lead, cell["cost"])


def _latency(held: Held, where: str, shown: ShownCell, cell: Cell) -> None:
    if cell["latency"] is None and cell["tail"] is not None:
        held.figure(f"{where} tail", shown.lead, cell["tail"])
        held.exact(f"{where} tail", cell["tail_of"] in shown.text, True)
        return
    held.figure(f"{where} latency", shown.lead, cell["latency"])
    mean = re.search(r"mean(?: ([\d,.]+))?", shown.text)
    held.exact(f"{where} statistic", bool(mean and not mean[1]), cell["latency_of"] == "mean")
    if mean and mean[1]:
        held.figure(f"{where} mean", mean[1], cell["mean_ms"])
    held.exact(f"{where} use", "unusable" in shown.text, cell["unusable"])
    if cell["by_median"] and cell["timed"] in _QUANTILES and cell["spread_log"]:
        said = re.match(r"95 % interval (\S+) to (\S+), of (\d) launches$", shown.title("sure"))
        reach = _QUANTILES[cell["timed"]] * cell["spread_log"] / math.sqrt(cell["timed"])
        held.exact(f"{where} has an interval", said is not None, True)
        if said is not None:
            ends = [math.exp(cell["mean_log"] + way * reach) for way in (-1.0, 1.0)]
            exact = (*ends, cell["timed"])
            for text, value in zip(said.groups(), exact, strict=True):
                held.figure(f"{where} interval", text, value, whole=value == cell["timed"])


def row_launches(held: Held, where: str, text: str, cell: Cell) -> None:
    answered = cell["answered"]
    shown = answered - cell["left_out"] if answered else cell["launches"]
    said = [f"{shown} of"] if shown != cell["launches"] else []
    said.append(str(cell["launches"]))
    if cell["failing"] and answered:
        said.append(f"{cell['failing']} of {cell['launches']} launches failed")
    held.exact(f"{where} launches", text, " ".join(said))
