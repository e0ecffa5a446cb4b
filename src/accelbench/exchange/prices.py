"""Prices from a file: the cost of an hour by machine, device or platform, as JSON with comments.

    {
      "currency": "USD",              // three letters; USD by default
      "per_hour": {
        "NVIDIA GeForce RTX 4090": 0.69,  // each such device, also as "rtx 4090"
        "cuda": 1.20,                     // each device of any other name there
        "lab-7": 0.35                     // that machine, with all its devices
      }
    }

Prices are the user's, not measurements: they are never stored with results.
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from accelbench.core.device_facts import match_device
from accelbench.core.errors import UsageError
from accelbench.core.jsonc import JsonError, Object, parse
from accelbench.core.safe_text import in_quotes

#: Environment variable with the file's path, used without the option.
PRICES_VARIABLE = "ACCELBENCH_PRICES"
#: Help of the option.
PRICES_HELP = f"What an hour costs, as JSON: figures in money; else ${PRICES_VARIABLE}."
DEFAULT_CURRENCY = "USD"
_SIGNS = {"USD": "$", "EUR": "€", "GBP": "£"}
_KEYS = ("currency", "per_hour")
_EXAMPLE = 'Write {"per_hour": {"cuda": 1.20}}.'


@dataclass(frozen=True)
class Prices:
    """Cost of an hour, by the name of a machine, device or platform as spelled in the file."""

    per_hour: Mapping[str, float]
    currency: str = DEFAULT_CURRENCY
    path: Path = Path("prices.json")

    @property
    def source(self) -> str:
        return self.path.name

    @property
    def sign(self) -> str:
        """Text before an amount: $, or the currency's letters."""
        return currency_sign(self.currency)

    @property
    def by_name(self) -> Mapping[str, str]:
        """The file's spelling of each name, by the normalised name."""
        return {normalise_name(name): name for name in self.per_hour}

    @cached_property
    def by_device(self) -> Mapping[str, str]:
        """The most explicit name in the file for each documented device."""
        matches = {name: match_device(name.rpartition(":")[2]) for name in self.per_hour}
        known = [(m.is_assumed, m.facts.name, name) for name, m in matches.items() if m]
        return {device: name for _, device, name in sorted(known, reverse=True)}

    def find_key(self, name: str) -> str | None:
        """Return the file's spelling of a machine, device or platform; None if it has no price."""
        return self.by_name.get(normalise_name(name))


def currency_sign(currency: str) -> str:
    """Return the text before an amount of a currency."""
    return _SIGNS.get(currency, f"{currency} ")


def price_sign(prices: Prices | None) -> str:
    """Return the text before an amount by these prices, or by the default currency."""
    return currency_sign(DEFAULT_CURRENCY if prices is None else prices.currency)


def normalise_name(name: str) -> str:
    """Return a name without differences of case and spaces, for comparisons."""
    return " ".join(name.split()).casefold()


def load_prices(path: Path | None) -> Prices | None:
    """Return the prices of the option, else of $ACCELBENCH_PRICES, else None."""
    if path is not None:
        return read_prices(path.expanduser())
    named = os.environ.get(PRICES_VARIABLE)
    return read_prices(Path(named).expanduser()) if named else None


def read_prices(path: Path) -> Prices:
    """Return the prices of a file, or raise UsageError."""
    whole = _read_object(path)
    for key in whole:
        if key not in _KEYS:
            raise _price_error(
                path, whole, key, "it is not a known key.", _suggest_key(key, whole[key])
            )
    if not isinstance(whole.get("per_hour"), Object) or not whole["per_hour"]:
        raise UsageError(f"{path}: it has no prices under 'per_hour'.", _EXAMPLE)
    prices = Prices(_read_per_hour(path, whole["per_hour"]), _read_currency(path, whole), path)
    if len(prices.by_name) < len(prices.per_hour):
        twice = next(n for n in prices.per_hour if n not in prices.by_name.values())
        raise _price_error(
            path, whole["per_hour"], twice, "it occurs twice.", "Remove one of them."
        )
    return prices


def _read_object(path: Path) -> Object:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text in UTF-8.", "Save it as UTF-8.") from error
    except OSError as error:
        raise UsageError(
            f"The prices {path} cannot be read: {error.strerror}.",
            f"Check the path of --prices, or of ${PRICES_VARIABLE}.",
        ) from error
    try:
        whole = parse(text)
    except JsonError as error:
        raise UsageError(f"{path}, line {error.line}: {error.message}.") from error
    if not isinstance(whole, Object):
        raise UsageError(f"{path}: prices are a JSON object.", _EXAMPLE)
    return whole


def _read_per_hour(path: Path, node: Object) -> dict[str, float]:
    by_name = {}
    for name, value in node.items():
        if not name.strip():
            raise _price_error(
                path, node, name, "a price needs a name.", "Name a platform, device or machine."
            )
        by_name[name] = _check_price(path, node, name, value)
    return by_name


def _check_price(path: Path, node: Object, name: str, value: Any) -> float:
    # A boolean is a number to Python, and 1e999 is infinite.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _price_error(
            path, node, name, "a price is a number.", "Write 0.69, without a currency."
        )
    if not 0 < value <= 1e9 or not math.isfinite(value):
        advice = "A price per hour is above 0. Leave out names without a price."
        raise _price_error(path, node, name, f"{value} is not a valid price.", advice)
    return float(value)


def _read_currency(path: Path, whole: Object) -> str:
    currency = whole.get("currency", DEFAULT_CURRENCY)
    code = currency.strip().upper() if isinstance(currency, str) else ""
    if len(code) != 3 or not (code.isascii() and code.isalpha()):
        advice = "Write three letters, such as USD or EUR."
        raise _price_error(
            path, whole, "currency", f"{in_quotes(currency)} is not a currency.", advice
        )
    return code


def _price_error(path: Path, node: Object, key: str, message: str, advice: str = "") -> UsageError:
    return UsageError(f"{path}, line {node.lines[key]}, {in_quotes(key)}: {message}", advice)


def _suggest_key(key: str, value: Any) -> str:
    near = find_similar(key, _KEYS)
    if near:
        return f"Did you mean {near[0]}?"
    known = f"Keys: {', '.join(_KEYS)}."
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return known
    return f'{known} Prices belong in per_hour: {{"per_hour": {{"{key}": {value}}}}}.'


def find_similar(word: str, names: Iterable[str]) -> list[str]:
    """Return names that are similar to a word or contain it, ignoring case."""
    plain = {normalise_name(name): name for name in names}
    low = normalise_name(word)
    near = dict.fromkeys(difflib.get_close_matches(low, plain, n=3, cutoff=0.6))
    near |= dict.fromkeys(name for name in plain if low in name)
    return [plain[name] for name in list(near)[:3]]
