"""Files with a compatibility matrix: the one that is named, and the one that the documents know."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from accelbench.core.errors import UsageError
from accelbench.hardware.detect import known
from accelbench.select.query import validation
from accelbench.select.rank.matrices import MatrixLayer
from accelbench.select.rank.matrix_pages import of_markdown

CLAUDE_FILE = "CLAUDE.md"


def pages(
    named: str | PathLike[str] | None, own: Iterable[str] = ()
) -> tuple[list[MatrixLayer], list[MatrixLayer]]:
    """The pages with a matrix: those believed before the database, and those after it.

    Args:
        named: a page, where one is.
        own: platforms that the configuration brings.

    Raises:
        UsageError: the page that was named has no matrix.
    """
    path = validation.path("matrix_file", named)
    if path is None:
        return [], _beside(own)
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise UsageError(
            f"The matrix file {named} cannot be read: {why}.", "Name a Markdown page."
        ) from error
    layer = of_markdown(text, path, (*own, *known()))
    if not layer.entries:
        raise UsageError(
            f"There is no compatibility matrix in {named}.",
            "A table is expected with families down, platforms across, levels in its cells.",
        )
    return [layer], []


def _beside(own: Iterable[str]) -> list[MatrixLayer]:
    """The page that the documents look for where nobody names one."""
    try:
        text = Path(CLAUDE_FILE).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return []
    return [of_markdown(text, f"./{CLAUDE_FILE}", (*own, *known()), named=False)]
