"""The commands that measure what was asked for."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.catalog.find import known_as
from accelbench.core.axes import AXES
from accelbench.core.cards import FP32, default_precision
from accelbench.core.free_dimensions import sizes_in
from accelbench.core.rows import Row
from accelbench.query.conditions import where_of
from accelbench.query.filters import Value, catalogued, in_catalogue, same_model, words_of

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
        from accelbench.hardware.detect import known

        return known()
    if column == "runtime":
        from accelbench.runtimes.shared.names import known_runtimes

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


def command_again(database: Database, filters: Asked) -> str:
    """Return the command that measures once more what a database has, or ""."""
    asked = {column: values for column, values in filters.items() if column not in OF_RUNS}
    where, values = where_of(asked)
    names = ("model", "precision", "batch_size", *(axis.column for axis in AXES))
    _, found = database.query(
        f"SELECT DISTINCT {', '.join(names)} FROM benchmark_results WHERE {where} ORDER BY ALL",  # noqa: S608 — our columns
        values,
    )
    rows = [dict(zip(names, row, strict=True)) for row in found]
    models = _measurable(str(row["model"]) for row in rows)
    if not models:
        return command_for(asked) + into_option(database) if command_for(asked) else ""
    more = _asked_words(asked, ("model", "family", "batch_size"))
    options = [*more, *size_words_of(rows)]
    return " ".join(["accelbench run", *models[:_NAMED], *options]) + into_option(database)


def command_along(database: Database, axis: str, rows: Sequence[Row], filters: Asked) -> str:
    """Return the command that measures models at several values of an axis, or "".

    Args:
        database: into which.
        axis: by which results are to be compared.
        rows: the results that there are; the command asks for their models, precisions and sizes.
        filters: what was typed.
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
    """Return the options of `run` that ask for the sizes of results, if they are not the default.

    Args:
        rows: results.
        batch: whether their batch sizes are asked for too.
    """
    sizes: dict[str, dict[str, None]] = {}
    needed: set[str] = set()
    for row in rows:
        spec = known_as(str(row["model"]))
        if batch and row.get("batch_size") is not None:
            needed.add("--batch-sizes")
            sizes.setdefault("--batch-sizes", {})[str(row["batch_size"])] = None
        for axis in AXES:
            value = row.get(axis.column)
            if value is None:
                continue
            named = sizes_in(str(value)).items() if axis.text else [("", value)]
            for name, size in named:
                option = f"{axis.option} {name}=" if name else axis.option
                sizes.setdefault(option, {})[str(size)] = None
                if spec is None or axis.own(spec) != value:
                    needed.add(option)
    return [
        f"{option}{'' if option.endswith('=') else ' '}{','.join(sorted(values, key=float))}"
        for option, values in sizes.items()
        if option in needed
    ]


def into_option(database: Database) -> str:
    """The option that puts results into a database, where they do not go by themselves."""
    from accelbench.store.lake import store_at

    return "" if database.name == store_at(None).name else f" --db {shlex.quote(database.name)}"
