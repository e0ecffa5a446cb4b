"""Costs of results, by a file of prices or by the caller's function."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.errors import UsageError
from accelbench.core.rows import Row, number
from accelbench.core.safe_text import in_quotes
from accelbench.core.unusable_reasons import COMPARABLE
from accelbench.exchange.prices import DEFAULT_CURRENCY, Prices, currency_sign, read_prices

if TYPE_CHECKING:
    from accelbench.judge.machines import Machine
    from accelbench.store.database import Database

#: The cost of a million items of a result, or None if no price is known.
PerMillion = Callable[[Row], float | None]


Given = PerMillion | Prices | str | PathLike[str]


def costs_of(given: Given | None, database: Database | None) -> Costs | None:
    """Return costs by a function, the path of a file, or its content; refuse anything else."""
    if given is None or isinstance(given, (FilePrices, CallerPrices)):
        return given
    if isinstance(given, Prices):
        return FilePrices(given, database)
    if isinstance(given, (str, PathLike)):
        return FilePrices(read_prices(Path(given).expanduser()), database)
    if callable(given):
        return CallerPrices(given)
    raise UsageError(
        f"prices takes the path of a price file, or a function, not {in_quotes(given)}.",
        "A function takes a result, and gives dollars per million items or None.",
    )


class FilePrices:
    """Costs by a file of prices for machines, devices or platforms."""

    def __init__(self, prices: Prices, database: Database | None) -> None:
        self._prices, self._database = prices, database
        self._machines: dict[str, Machine] = {}

    @property
    def currency(self) -> str:
        return self._prices.currency

    def __call__(self, row: Row) -> float | None:
        from accelbench.judge.sides import PER_MILLION

        return number(self._priced(row), PER_MILLION)

    def notes(self, rows: Sequence[Row]) -> list[str]:
        from accelbench.judge.costs import cost_notes

        return cost_notes([self._priced(row) for row in rows], self._prices)

    def _priced(self, row: Row) -> dict[str, object]:
        from accelbench.judge.costs import cost_of

        # A selector reads successful results only.
        whole = {"answered": True, "comparable": row.get("provenance") in COMPARABLE, **row}
        return {**whole, **cost_of(whole, self._prices, self._machine(str(row.get("run_id"))))}

    def _machine(self, run: str) -> Machine | None:
        """Return the machine of a run; read the runs again if it is unknown."""
        if run not in self._machines and self._database is not None:
            self._machines |= _machines(self._database)
        return self._machines.get(run)


class CallerPrices:
    """Costs in dollars by the caller's function."""

    currency = DEFAULT_CURRENCY

    def __init__(self, per_million: PerMillion) -> None:
        self._per_million = per_million

    def __call__(self, row: Row) -> float | None:
        cost = self._per_million(row)
        if cost is None:
            return None
        if isinstance(cost, bool) or not isinstance(cost, (int, float)) or not _is_cost(cost):
            raise UsageError(
                f"prices gave {in_quotes(cost)} for a million items.",
                "A cost is a number above 0, or None where no price is known.",
            )
        return float(cost)

    def notes(self, rows: Sequence[Row]) -> list[str]:
        bare = [_place(row) for row in rows if self(row) is None]
        sentences = [f"Without a price: {', '.join(dict.fromkeys(bare))}."] if bare else []
        return ["Priced by the caller's own function.", *sentences]


Costs = FilePrices | CallerPrices


def sign(costs: Costs | None) -> str:
    """Return the sign of the currency."""
    return currency_sign(costs.currency if costs else DEFAULT_CURRENCY)


def _is_cost(value: float) -> bool:
    return value > 0 and math.isfinite(value)


def _place(row: Row) -> str:
    device = row.get("device_name")
    return f"{device} ({row['hardware']})" if device else str(row["hardware"])


def _machines(database: Database) -> dict[str, Machine]:
    from accelbench.judge.machines import machine_of

    _, rows = database.query("SELECT run_id, environment::VARCHAR FROM benchmark_runs")
    return {
        str(run): machine_of(str(run), json.loads(str(environment)) if environment else None)
        for run, environment in rows
    }
