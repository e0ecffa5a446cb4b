"""What a store knows of a model whose operators nobody can read: why it is not predicted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.catalog.code_models.models import name_of as code_name_of
from accelbench.catalog.code_models.words import code_word
from accelbench.catalog.file_models.models import name_of
from accelbench.core.errors import UsageError
from accelbench.core.nouns import counted
from accelbench.core.provenance import COMPARABLE_SQL
from accelbench.core.visible import in_quotes, visible

if TYPE_CHECKING:
    from accelbench.store.database import Database


def not_predicted(database: Database | None, word: str) -> UsageError | None:
    """Why a model that was measured is not predicted, and what answers of it; None of any other.

    Args:
        database: where results are.
        word: what was typed: a model's name in results, or the file or code that it was.
    """
    code = code_word(word)
    if Path(word).exists() and code is None:
        return None  # it is read
    names = {word, name_of(Path(word)), "" if code is None else code_name_of(code)} - {""}
    stored = _results_of(database, names)
    why = (
        "its file is not here, and of its operators nothing is stored"
        if code is None
        else "operators are read from files and configs, and this is code"
    )
    if not stored:
        measure = f"Measure it: accelbench run {visible(word)}"
        if code is None:
            return None  # whoever looks for a file or a model of that name says that there is none
        return UsageError(f"{in_quotes(word)} is not predicted: {why}.", measure)
    name, results = stored
    return UsageError(
        f"{in_quotes(word)} is not predicted: {why}; {counted(results, 'result')} of it"
        f" {'is' if results == 1 else 'are'} stored.",
        f"They are what answers: accelbench recommend {visible(name)}, or accelbench compare",
    )


def _results_of(database: Database | None, names: set[str]) -> tuple[str, int] | None:
    """The name under which most results that count are stored, and how many."""
    if database is None:
        return None
    marks = ", ".join("?" * len(names))
    _, rows = database.query(
        f"SELECT model, count(*) FROM benchmark_results WHERE model IN ({marks})"  # noqa: S608
        f" AND {COMPARABLE_SQL} AND status = 'ok' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1",
        sorted(names),
    )
    return next(((str(name), int(str(number))) for name, number in rows), None)
