"""What is said where nothing is found: a slip, another spelling, or what is to be measured first.

Only what this program does not know itself is looked for in the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from accelbench.core.errors import EXIT_CANNOT_TELL, AccelbenchError, UsageError
from accelbench.core.near import LIKE, near
from accelbench.core.nouns import listed
from accelbench.core.provenance import COMPARABLE_SQL
from accelbench.core.visible import in_quotes
from accelbench.query.filters import (
    by_word,
    in_catalogue,
    misplaced,
    same_model,
    words_of,
)
from accelbench.query.suggested_commands import (
    OF_RUNS,
    Asked,
    command_for,
    into_option,
    known_words,
)

if TYPE_CHECKING:
    from accelbench.store.database import Database

#: Column → what is said of a word that nobody knows there.
_UNKNOWN = {
    "model": "No model is called {}.",
    "family": "There is no family named {}.",
    "hardware": "There is no hardware named {}.",
    "runtime": "There is no runtime named {}.",
    "precision": "There is no precision named {}.",
}
#: Names that are listed where none is like the one that was asked for.
_NAMED = 6
#: How like a name has to be; platforms and precisions are short.
_LIKE = {"model": 0.6, "family": 0.6, "runtime": 0.6}


class NothingMeasuredError(AccelbenchError):
    """There are no results to judge."""

    exit_code = EXIT_CANNOT_TELL


def nothing(message: str, filters: Asked, database: Database | None = None) -> NothingMeasuredError:
    """The error, with the command that would bring what was asked for.

    Args:
        message: what there is nothing of.
        filters: column → the values that would have counted.
        database: where it was looked for, unless nobody named one.
    """
    asked = {column: values for column, values in filters.items() if column not in OF_RUNS}
    command = command_for(asked)
    if command and database is not None:
        command += into_option(database)
    if len(asked) < len(filters):
        measure = f" To measure it: `{command}`." if asked and command else ""
        advice = f"Ask for less, or name other runs with --run.{measure}"
        return NothingMeasuredError(f"{message}.", advice)
    if not command:
        return NothingMeasuredError(
            f"{message}.", "Ask for less, or name a database that has it with --db."
        )
    return NothingMeasuredError(
        f"{message}: measure first, for example with `{command}`, or name a database with --db."
    )


def none_found(database: Database, filters: Asked, but: str = "") -> NothingMeasuredError:
    """The error where a database has nothing of what was asked for.

    Args:
        database: where it was looked for.
        filters: column → the values that would have counted.
        but: what there is of it all the same, and does not count.

    Raises:
        UsageError: a word is known nowhere, or stored in another spelling.
    """
    refuse_unknown(database, filters)
    stored = _stored(database, "model", COMPARABLE_SQL) if "model" in filters else []
    absent = _absent(words_of(filters, "model"), stored)
    for name in absent:
        if alike := _spelt_alike(name, stored):
            raise UsageError(
                f"{database.name} has no results of {in_quotes(name)}.",
                f"Did you mean {_or(alike)}?",
            )
    what = " of what was asked for" if filters else ""
    error = nothing(f"{database.name} has no results{what}{but}", filters, database)
    others = dict.fromkeys(model for name in absent for model in _near(name, stored, "model"))
    if others:
        error.advice = f"There are results of {', '.join(others)}."
    return error


def refuse_unknown(database: Database, filters: Asked, *, has_results: bool = False) -> None:
    """Tell a slip of the fingers from what nobody has measured yet.

    Args:
        database: where words are looked for that this program does not know.
        filters: column → the values that count.
        has_results: whether there are such results: then a column's only word needs no second look.

    Raises:
        UsageError: neither this program nor any result knows a word.
    """
    for column, template in _UNKNOWN.items():
        typed = by_word(column, words_of(filters, column))
        if has_results and len(typed) == 1:
            continue
        for word, names in typed.items():
            if not any(_is_known(column, n) or _is_stored(database, column, n) for n in names):
                raise UsageError(template.format(in_quotes(word)), _hint(database, column, word))


def _is_known(column: str, word: str) -> bool:
    """Whether this program knows a word, without asking any database."""
    if column == "model":
        return in_catalogue(word)
    if column == "runtime":
        from accelbench.runtimes.shared.names import runtimes_named

        try:
            return bool(runtimes_named([word]))
        except UsageError:
            return False
    if column == "hardware" and ":" in word:
        return False  # of which platform is known, of which device is stored
    return word in known_words(column)


def _is_stored(database: Database, column: str, word: str) -> bool:
    from accelbench.query.conditions import one_of

    _, rows = database.query(
        f"SELECT 1 FROM benchmark_results WHERE {one_of(column, [word])} LIMIT 1",  # noqa: S608
        [word],
    )
    return bool(rows)


def _stored(database: Database, column: str, where: str = "true") -> list[str]:
    """Every word that results have in a column."""
    _, rows = database.query(
        f"SELECT DISTINCT {column} FROM benchmark_results"  # noqa: S608 — our columns
        f" WHERE {column} IS NOT NULL AND {where} ORDER BY 1"
    )
    return [str(name) for (name,) in rows]


def _hint(database: Database, column: str, word: str) -> str:
    """What of all that is known or stored may have been meant."""
    if column != "model" and (advice := misplaced(word)):
        return advice
    if column == "hardware" and (advice := _devices_like(database, word)):
        return advice
    stored = _stored(database, column)
    alike = _near(word, dict.fromkeys([*known_words(column), *stored]), column)
    if alike:
        return f"Did you mean {_or(alike)}?"
    if stored:
        return f"There are results of {listed(stored, _NAMED)}."
    known = ", ".join(known_words(column))
    return f"Known: {known}." if known else "List the models with: accelbench models"


def _devices_like(database: Database, word: str) -> str:
    """The devices with results that a part of a name may mean, as they can be typed; else none."""
    platform, colon, part = word.rpartition(":")
    _, rows = database.query(
        "SELECT DISTINCT hardware, device_name FROM benchmark_results WHERE device_name IS NOT NULL"
        " AND (? = '' OR hardware = ?) ORDER BY ALL",
        [platform, platform],
    )
    names = {f"{hardware}:{device}": str(device) for hardware, device in rows}
    letters = _letters(part)
    matches = [name for name, device in names.items() if letters and letters in _letters(device)]
    if not matches and colon and names:
        matches = list(names)
    if not matches:
        return ""
    return f"There are results of {listed([in_quotes(name) for name in matches], _NAMED)}."


def _near(word: str, names: Iterable[str], column: str) -> list[str]:
    """Names that are like a word."""
    return near(word, names, _LIKE.get(column, LIKE))


def _absent(models: Sequence[str], stored: Sequence[str]) -> list[str]:
    """Models of which nothing is stored, as they were typed: the catalogue's name comes first."""
    stored_names = set(stored)
    typed: dict[str, list[str]] = {}
    for name in models:
        typed.setdefault(same_model(name), []).append(name)
    return [names[-1] for names in typed.values() if not stored_names.intersection(names)]


def _spelt_alike(name: str, stored: Sequence[str]) -> list[str]:
    """What of all that is stored is this very name, or another one of the same model."""
    from accelbench.catalog.find import find, names_of

    keys = {
        _letters(alias) for alias in (name, *(names_of(find(name)) if in_catalogue(name) else ()))
    }
    return [model for model in stored if _letters(model) in keys]


def _letters(name: str) -> str:
    """What is left of a name without its owner, its case and its dashes."""
    return "".join(c for c in PurePath(name).name.lower() if c.isalnum())


def _or(names: Sequence[str]) -> str:
    return " or ".join(names)
