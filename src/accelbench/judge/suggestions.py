"""Errors for empty answers: a slip, another spelling, or the command that measures it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from accelbench.core.axes import AXES
from accelbench.core.devices import FP32, default_precision
from accelbench.core.errors import EXIT_INCONCLUSIVE, AccelbenchError, UsageError
from accelbench.core.formatting import MIN_SIMILARITY, find_similar, join_first
from accelbench.core.free_dimensions import parse_sizes
from accelbench.core.rows import Row
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import Mode
from accelbench.evidence.launches import COMPARABLE_SQL
from accelbench.judge.filters import (
    Value,
    by_word,
    catalogued,
    in_catalogue,
    misplaced,
    same_model,
    where_of,
    words_of,
)
from accelbench.models.find import find_exact

if TYPE_CHECKING:
    from accelbench.store.database import Database


#: Column → the option of `accelbench run` that asks for it.
_ASKS = {
    "family": "--category",
    "hardware": "--hardware",
    "runtime": "--framework",
    "precision": "--precision",
    "batch_size": "--batch-sizes",
    "mode": "--mode",
}
#: Columns by which runs are chosen: no option of `accelbench run` asks for them.
OF_RUNS = ("run_id", "series_key")
#: Axis → the option of `accelbench run` that measures several values of it.
_ALONG = {
    "hardware": "--hardware all",
    "runtime": "--framework pytorch,onnxruntime",
    "engine": "--framework pytorch,onnxruntime",
    "precision": "--precision fp32,bf16",
    "batch": "--batch-sizes 1,8",
    "mode": "--mode both",
}
#: Columns of which this program knows every word itself, or finds it in its catalogue.
_KNOWN = frozenset({"model", "family", "hardware", "runtime", "precision"})
#: Models that a command names.
_NAMED = 6

Asked = Mapping[str, Sequence[Value]]


def known_words(column: str) -> tuple[str, ...]:
    """The words of a column that this program has itself; of models there are too many."""
    if column == "hardware":
        from accelbench.hardware.detect import list_platforms

        return list_platforms()
    if column == "runtime":
        from accelbench.engines.shared.names import known_runtimes

        return known_runtimes()
    if column == "precision":
        from accelbench.core.precision import PRECISIONS

        return PRECISIONS
    if column == "family":
        from accelbench.core.vocabulary import FAMILIES

        return tuple(family.value for family in FAMILIES)
    return ()


def command_for(filters: Asked) -> str:
    """The command that measures what was asked for; empty where this program cannot."""
    if not filters:
        return "accelbench run --set small --hardware all"
    words = ["accelbench run"]
    if models := words_of(filters, "model"):
        known = dict.fromkeys(catalogued(name) for name in models if in_catalogue(name))
        own = {same_model(name): name for name in models if Path(name).exists()}
        if not known and not own:
            return ""
        words += [*known, *map(shlex.quote, own.values())]
    elif "family" not in filters:
        words.append("--set small")
    for column, option in _ASKS.items():
        values = list(words_of(filters, column))
        if column in _KNOWN and values:
            values = [value for value in values if value in known_words(column)]
            if not values:
                return ""
        if values:
            words.append(f"{option} {','.join(values)}")
    if "precision" not in filters and (needed := _needed_precisions(filters)) != [FP32]:
        words.append(f"--precision {','.join(needed)}")
    return " ".join(words)


def _needed_precisions(filters: Asked) -> list[str]:
    """Return the precisions that a command takes if none is named, for all its hardware."""
    platforms = [word.partition(":")[0] for word in words_of(filters, "hardware")] or [""]
    runtimes: Sequence[str | None] = [*words_of(filters, "runtime")] or [None]
    return list(
        dict.fromkeys(
            default_precision(platform, runtime) for platform in platforms for runtime in runtimes
        )
    )


#: Columns that a repetition asks for, and the value that needs no option.
_REPEATED = {"hardware": None, "runtime": None, "precision": FP32, "mode": Mode.INFERENCE.value}
_THREADS = "try_cast(options::JSON ->> '$.threads' AS INTEGER)"


def command_again(database: Database, filters: Asked) -> str:
    """Return the command that measures once more what a database has, or ""."""
    asked = {column: values for column, values in filters.items() if column not in OF_RUNS}
    where, values = where_of(asked)
    names = ("model", "batch_size", *_REPEATED, *(axis.column for axis in AXES))
    _, found = database.query(
        f"SELECT DISTINCT {', '.join(names)}, {_THREADS} FROM benchmark_results"  # noqa: S608 — our columns
        f" WHERE {where} ORDER BY ALL",
        values,
    )
    rows = [dict(zip((*names, "threads"), row, strict=True)) for row in found]
    models = _measurable(str(row["model"]) for row in rows)
    if not models:
        return command_for(asked) + into_option(database) if command_for(asked) else ""
    stored: dict[str, Sequence[Value]] = {}
    for column, usual in _REPEATED.items():
        distinct = list(dict.fromkeys(str(row[column]) for row in rows if row[column]))
        if set(distinct) - {usual}:
            stored[column] = distinct
    more = _asked_words({**stored, **asked}, ("model", "family", "batch_size"))
    threads = {row["threads"] for row in rows}
    options = [*more, *size_words_of(rows)]
    if len(threads) == 1 and (number := threads.pop()) is not None:
        options.append(f"--threads {number}")
    return " ".join(["accelbench run", *models[:_NAMED], *options]) + into_option(database)


def command_along(database: Database, axis: str, rows: Sequence[Row], filters: Asked) -> str:
    """Return the command that measures models at several values of an axis, or "".

    Args:
        rows: the results that there are; the command asks for their models, precisions and sizes.
    """
    known = _measurable(str(row["model"]) for row in rows if row.get("model"))
    option = _ALONG.get(axis)
    if not known or option is None:
        return ""
    others = dict.fromkeys(str(row["precision"]) for row in rows if row.get("precision"))
    if axis != "precision" and "precision" not in filters and set(others) - {"fp32"}:
        filters = {**filters, "precision": [name for name in others if name != "fp32"]}
    columns = {"engine": "runtime", "batch": "batch_size"}
    more = _asked_words(filters, ("model", "family", "batch_size", columns.get(axis, axis)))
    sizes = size_words_of(rows, batch=axis != "batch")
    return " ".join(["accelbench run", *known[:_NAMED], option, *more, *sizes]) + into_option(
        database
    )


def _measurable(models: Iterable[str]) -> list[str]:
    """Return the words for models that `run` finds: of the catalogue, or files and folders here."""
    known = dict.fromkeys(
        catalogued(name) if in_catalogue(name) else shlex.quote(name)
        for name in models
        if in_catalogue(name) or Path(name.partition(":")[0]).exists()
    )
    return list(known)


def _asked_words(filters: Asked, without: Sequence[str]) -> list[str]:
    """Return the options of `run` that ask for what filters name, as far as it knows the words."""
    options = []
    for column, option in _ASKS.items():
        values = [str(value) for value in filters.get(column, ())]
        if column in _KNOWN:
            values = [value for value in values if value in known_words(column)]
        if values and column not in without:
            options.append(f"{option} {','.join(values)}")
    return options


def size_words_of(rows: Iterable[Row], *, batch: bool = True) -> list[str]:
    """Return the options of `run` for the sizes of results, if they are not the default."""
    sizes: dict[str, dict[str, None]] = {}
    needed: set[str] = set()
    for row in rows:
        spec = find_exact(str(row["model"]))
        if batch and row.get("batch_size") is not None:
            needed.add("--batch-sizes")
            sizes.setdefault("--batch-sizes", {})[str(row["batch_size"])] = None
        for axis in AXES:
            value = row.get(axis.column)
            if value is None:
                continue
            named = parse_sizes(str(value)).items() if axis.text else [("", value)]
            for name, size in named:
                option = f"{axis.option} {name}=" if name else axis.option
                sizes.setdefault(option, {})[str(size)] = None
                if spec is None or axis.default_size(spec) != value:
                    needed.add(option)
    return [
        f"{option}{'' if option.endswith('=') else ' '}{','.join(sorted(values, key=float))}"
        for option, values in sizes.items()
        if option in needed
    ]


def into_option(database: Database) -> str:
    """The option that puts results into a database, where they do not go by themselves."""

    from accelbench.store.opening import open_store

    return "" if database.name == open_store(None).name else f" --db {shlex.quote(database.name)}"


#: Column → what is said of a word that nobody knows there.
_UNKNOWN = {
    "model": "No model is called {}.",
    "family": "There is no family named {}.",
    "hardware": "There is no hardware named {}.",
    "runtime": "There is no runtime named {}.",
    "precision": "There is no precision named {}.",
}
#: Names that are listed where none is like the one that was asked for.
#: How like a name has to be; platforms and precisions are short.
_LIKE = {"model": 0.6, "family": 0.6, "runtime": 0.6}


class NothingMeasuredError(AccelbenchError):
    """There are no results to judge."""

    exit_code = EXIT_INCONCLUSIVE


def nothing(message: str, filters: Asked, database: Database | None = None) -> NothingMeasuredError:
    """The error, with the command that would bring what was asked for.

    Args:
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
        from accelbench.engines.shared.names import runtimes_named

        try:
            return bool(runtimes_named([word]))
        except UsageError:
            return False
    if column == "hardware" and ":" in word:
        return False  # of which platform is known, of which device is stored
    return word in known_words(column)


def _is_stored(database: Database, column: str, word: str) -> bool:
    from accelbench.judge.filters import one_of

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
        return f"There are results of {join_first(stored, _NAMED)}."
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
    return f"There are results of {join_first([in_quotes(name) for name in matches], _NAMED)}."


def _near(word: str, names: Iterable[str], column: str) -> list[str]:
    """Names that are like a word."""
    return find_similar(word, names, _LIKE.get(column, MIN_SIMILARITY))


def _absent(models: Sequence[str], stored: Sequence[str]) -> list[str]:
    """Models of which nothing is stored, as they were typed: the catalogue's name comes first."""
    stored_names = set(stored)
    typed: dict[str, list[str]] = {}
    for name in models:
        typed.setdefault(same_model(name), []).append(name)
    return [names[-1] for names in typed.values() if not stored_names.intersection(names)]


def _spelt_alike(name: str, stored: Sequence[str]) -> list[str]:
    from accelbench.models.find import find, names_of

    keys = {
        _letters(alias) for alias in (name, *(names_of(find(name)) if in_catalogue(name) else ()))
    }
    return [model for model in stored if _letters(model) in keys]


def _letters(name: str) -> str:
    return "".join(c for c in PurePath(name).name.lower() if c.isalnum())


def _or(names: Sequence[str]) -> str:
    return " or ".join(names)
