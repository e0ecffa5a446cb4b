"""Opening a database for a command, and advice on SQL that failed."""

from __future__ import annotations

import gc
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import UsageError
from accelbench.core.safe_text import in_quotes
from accelbench.judge import stored_results
from accelbench.present.terminal.terminal import complain
from accelbench.store.schema import VIEWS

if TYPE_CHECKING:
    from accelbench.store.database import Database


def typed_command() -> str:
    """Return the command line of this program, as it was typed."""
    return shlex.join(["accelbench", *sys.argv[1:]])


def filled(path: Path | None) -> Database:
    """The database, with what runs left in the journals."""
    return stored_results.filled(path, complain)


def filled_if_any(path: Path | None, filters: Mapping[str, Sequence[Any]]) -> Database:
    """As `filled`; where nobody named a database and there is none, nothing is measured yet."""
    return stored_results.filled_if_any(path, filters, complain)


#: How DuckDB names a column that is not there, and those that are near.
_COLUMN = re.compile(r'(?:Referenced column|does not have a column named) "([^"]+)"')
_CANDIDATES = re.compile(r"^Candidate bindings: (.+)$", re.MULTILINE)
_MEANT = re.compile(r"^Did you mean .+\?$", re.MULTILINE)
_MOST = 6
#: Below this, names are no more alike than any two words.
_ALIKE = 0.6


def refuse_but_one(query: str) -> None:
    """Refuse SQL of several statements, of which only the last would be answered, and of none."""
    import duckdb

    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error:
        return  # whoever runs it says what is wrong
    if not statements:
        raise UsageError("There is no SQL in that.", "Ask for example: FROM benchmark_results")
    if len(statements) > 1:
        raise UsageError(
            f"These are {len(statements)} statements, and one answer is shown.",
            "Ask them one by one, or put them together with UNION ALL.",
        )


def advised(error: UsageError, query: str, database: Database) -> UsageError:
    """The error with the names that may have been meant, of a column or of a table."""
    cause = str(error.__cause__ or "")
    wrong = _COLUMN.search(cause)
    if wrong is None:
        meant = _MEANT.search(cause)
        message = error.message.replace("!.", ".")
        return UsageError(message, f"{meant[0]} {error.advice}" if meant else error.advice)
    views = [view for view in VIEWS if re.search(rf"\b{view}\b", query, re.IGNORECASE)]
    where = " or ".join(views) or "what is asked"
    likely = _likely(wrong[1], _columns(database, views), cause)
    advice = f"Did you mean {', '.join(likely)}?" if likely else ""
    listing = [f"`accelbench db sql 'DESCRIBE {view}'`" for view in views]
    if listing:
        advice += f" {' and '.join(listing)} {'lists' if len(listing) == 1 else 'list'} all."
    return UsageError(f"There is no column {in_quotes(wrong[1])} in {where}.", advice.strip())


def _likely(wrong: str, columns: list[str], cause: str) -> list[str]:
    """Columns that hold the word, those that are spelled like it, and those that DuckDB names."""
    low = wrong.lower()
    held = [name for name in columns if low in name.lower()]
    alike = get_close_matches(low, columns, n=_MOST, cutoff=_ALIKE)
    named = _CANDIDATES.search(cause)
    candidates = re.findall(r'"([^"]+)"', named[1]) if named else []
    # DuckDB knows columns that the query makes itself, and names some that are not alike at all.
    own = [name for name in candidates if name not in columns]
    return list(dict.fromkeys([*sorted(held, key=len), *alike, *own]))[:_MOST]


def _columns(database: Database, views: list[str]) -> list[str]:
    names: list[str] = []
    for view in views:
        _, rows = database.query(f"DESCRIBE {view}")
        names += [str(name) for name, *_ in rows]
    return names


@contextmanager
def collected_later() -> Iterator[None]:
    """No search for garbage meanwhile: among ten thousands of points, all of them kept, it took a
    third of the time of a history, and a sixth of that of a report.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
