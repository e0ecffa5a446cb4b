"""Filters of results: words as people type them, as columns, values and SQL.

Hardware as people name it among results: a platform, or `platform:device`, in SQL and in Python.

A device is named by a part of its name in any case (`cuda:rtx 4090`), by its whole name behind an
equals sign (`cuda:=NVIDIA GeForce RTX 4090`), by its number (`cuda:1`) or by its kind of unit
(`openvino:gpu`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TypeVar

from accelbench.core.errors import UsageError
from accelbench.core.formatting import split_words
from accelbench.core.precision import normalise_precision, spellings
from accelbench.core.rows import Row
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import parse_mode
from accelbench.evidence.launches import COMPARABLE_SQL

#: From so many digits on, what follows `cuda:` is a part of a name, such as 3090, and no ordinal.
_MODEL_NUMBER = 3


def named_sql(word: str) -> str:
    """That a result is of what a word names, in SQL: one parameter, which is the word."""
    _, colon, device = word.partition(":")
    if not colon:
        return "hardware = ?"
    if device.startswith("="):
        return "hardware || ':=' || device_name = ?"
    if _is_ordinal(device):
        return "hardware || ':' || split_part(device, ':', -1) = ?"
    escaped = r"replace(replace(replace(lower(?), '\', '\\'), '%', '\%'), '_', '\_')"
    about = "lower(hardware || ':' || coalesce(device_name, '') || ' ' || coalesce(device, ''))"
    # Whatever stands before the part that is named; of a platform's name all of it.
    return rf"{about} LIKE replace({escaped}, ':', ':%') || '%' ESCAPE '\'"


def is_named(row: Row, word: str) -> bool:
    """The same of a row."""
    platform, colon, device = word.partition(":")
    if row.get("hardware") != (platform.lower() if _is_part(colon, device) else platform):
        return False
    if not colon:
        return True
    if device.startswith("="):
        return row.get("device_name") == device[1:]
    where = str(row.get("device") or "")
    if _is_ordinal(device):
        return where.rpartition(":")[2] == device
    about = f"{row.get('device_name') or ''} {where}".lower()
    for part in filter(None, device.lower().split(":")):
        _, hit, about = about.partition(part)
        if not hit:
            return False
    return True


def has_one_of(row: Row, column: str, wanted: Sequence[object]) -> bool:
    """Whether a row has one of the values that are asked for in a column."""
    if column == "hardware":
        return any(is_named(row, str(word)) for word in wanted)
    return row.get(column) in wanted


def _is_part(colon: str, device: str) -> bool:
    return bool(colon) and not device.startswith("=") and not _is_ordinal(device)


def _is_ordinal(device: str) -> bool:
    return device.isdecimal() and len(device) < _MODEL_NUMBER


#: A value of a column that a list of a command names.
Value = str | int
Word = TypeVar("Word", bound=Value)
Filters = dict[str, tuple[Value, ...]]


def filters_of(
    models: Sequence[str] | None = None,
    hardware: Sequence[str] = (),
    runtimes: Sequence[str] = (),
    precisions: Sequence[str] = (),
    batch_sizes: Sequence[str] = (),
    modes: Sequence[str] = (),
) -> Filters:
    """Column → the values that count; a column is left out where any do."""
    named = model_words(models)
    filters: Filters = {
        "model": tuple(dict.fromkeys(n for name in named for n in _spellings(name))),
        "hardware": tuple(
            dict.fromkeys(
                platform for name in hardware_words(hardware) for platform in _platforms(name)
            )
        ),
        "runtime": tuple(
            dict.fromkeys(
                runtime
                for name in split_words(list(runtimes))
                for runtime in _runtimes(name.lower())
            )
        ),
        "precision": tuple(
            dict.fromkeys(
                spelt for name in split_words(list(precisions)) for spelt in spellings(name)
            )
        ),
        "batch_size": tuple(_number(word) for word in split_words(list(batch_sizes))),
        "mode": tuple(parse_mode(word, misplaced(word)).value for word in split_words(list(modes))),
    }
    return {column: wanted for column, wanted in filters.items() if wanted}


def model_words(values: Iterable[str] | None, *, files_here: bool = True) -> tuple[str, ...]:
    """Return the models of a list option; the name of a file may have spaces and commas in it.

    A value is one name if it is a file here. Otherwise it is one name if only its last part looks
    like a file or code, as in "my model.onnx": results keep the name without the folder.

    Args:
        values: of the option.
        files_here: whether to look for files; a page's form must not.
    """
    given = list(values or ())
    names: list[str] = []
    for value in given:
        parts = split_words([value]) if value.strip(" ,") else ()
        whole = len(parts) > 1 and ((files_here and _exists(value)) or _is_one_file(parts))
        names += [value] if whole else parts
    if given and not names:
        split_words(given)  # refuses it
    return tuple(dict.fromkeys(names))


def _exists(value: str) -> bool:
    path = value.rpartition("=")[2]
    return any(Path(name).expanduser().exists() for name in (path, path.rpartition(":")[0]) if name)


def _is_one_file(parts: Sequence[str]) -> bool:
    is_file = [any(mark in part for mark in ".:/") for part in parts]
    return is_file == [False] * (len(parts) - 1) + [True] and not any(map(in_catalogue, parts))


def hardware_words(values: Sequence[str]) -> tuple[str, ...]:
    """Platforms and devices of a list option: a device's name may well have spaces in it."""
    from accelbench.hardware.detect import GPU, list_platforms

    plain = {*list_platforms(), "all", "here", GPU}
    parts = [part.strip() for value in values for part in value.split(",") if part.strip()]
    if values and not parts:
        split_words(values)  # refuses it
    names: list[str] = []
    for part in parts:
        several = part.split()
        names += several if plain.issuperset(word.lower() for word in several) else [part]
    return tuple(dict.fromkeys(names))


def catalogued(name: str) -> str:
    """The name results are stored under; a custom model's name stays as it is."""
    return _of_catalogue(name) or name


def same_model(name: str) -> str:
    """Return a name that all spellings of a model have in common: my-llama, ./my-llama/ …"""
    return _of_catalogue(name) or folder_model(name)


def folder_model(word: str) -> str:
    """Return the name under which results of the folder of this name are stored."""
    return f"{PurePath(word).name}/"


def _spellings(name: str) -> tuple[str, ...]:
    """Return the names that results of a model may have; the one that was typed comes last.

    They have the catalogue's name, the folder's, or the one that another program gave.
    """
    known = _of_catalogue(name)
    return (folder_model(name) if known is None else known, name)


def words_of(filters: Mapping[str, Sequence[Value]], column: str) -> tuple[str, ...]:
    """The values that count in a column of words; none where any do."""
    return tuple(map(str, filters.get(column, ())))


def by_word(column: str, values: Sequence[Word]) -> dict[Word, list[Word]]:
    """The words of a column as they were typed, each with every spelling that counts for it."""
    groups: dict[Value, list[Word]] = {}
    for value in values:
        same = {
            "model": same_model,
            "precision": normalise_precision,
            "hardware": _device_or_all,
        }.get(column)
        groups.setdefault(value if same is None else same(str(value)), []).append(value)
    return {spelt[-1]: spelt for spelt in groups.values()}


def _device_or_all(word: str) -> str:
    return word.partition(":")[2] or word


def in_catalogue(name: str) -> bool:
    """Whether a model is found by this name without looking at what is stored."""
    return _of_catalogue(name) is not None


def misplaced(word: str) -> str:
    """Return the advice for a model that a list option took as its only value, or ""."""
    from accelbench.models.selection import is_model_word

    return f"{word} is a model: models come before the options." if is_model_word(word) else ""


def _of_catalogue(name: str) -> str | None:
    from accelbench.models.find import find_exact

    spec = find_exact(name)
    return None if spec is None else spec.id


def _platforms(word: str) -> tuple[str, ...]:
    from accelbench.hardware.detect import stored_platforms

    return stored_platforms(word)


def _runtimes(word: str) -> tuple[str, ...]:
    """Runtimes of ours, beside the word itself: somebody else may have it for one of theirs."""
    from accelbench.engines.shared.names import runtimes_named

    try:
        return (*runtimes_named([word]), word)
    except UsageError:
        return (word,)


def _number(word: str) -> int:
    if not word.isdecimal():
        raise UsageError(f"{in_quotes(word)} is no batch size.", misplaced(word))
    return int(word)


#: What may be compared at all: what nobody measured is not among it.
_COUNTS = f"{COMPARABLE_SQL} AND model IS NOT NULL AND status IS NOT NULL"
#: OpenVINO is a platform of its own in a store, and on the machine's processor one of its engines.
_ON_THE_CPU = (
    "hardware = 'openvino' AND device_name IN (SELECT environment->>'cpu' FROM benchmark_runs)"
)


def where_of(
    filters: Mapping[str, Sequence[object]], counting: str = _COUNTS
) -> tuple[str, list[object]]:
    """Results that count and have these values in these columns: SQL and its parameters."""
    parts: list[str] = [counting]
    values: list[object] = []
    for column, wanted in filters.items():
        parts.append(one_of(column, wanted))
        values += wanted
    return " AND ".join(parts), values


def one_of(column: str, wanted: Sequence[object]) -> str:
    """That a column has one of so many values, in SQL with a parameter for each.

    What runs on the CPU is all its engines.
    """
    if column != "hardware":
        return f"{column} IN ({marks(wanted)})"
    clause = " OR ".join(named_sql(str(word)) for word in wanted)
    return f"({clause} OR {_ON_THE_CPU})" if "cpu" in wanted else f"({clause})"


def marks(values: Sequence[object]) -> str:
    """What stands in SQL for so many parameters."""
    return ", ".join("?" * len(values))
