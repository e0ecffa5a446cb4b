"""What a selector is made of besides its store: a configuration, and pages with a matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.select.config import defaults, over_defaults, read
from accelbench.select.evidence import Cell, Known, Place, Tried
from accelbench.select.failures import Failure
from accelbench.select.matrices import Layer, of_markdown

CLAUDE_FILE = "CLAUDE.md"
StrPath = str | PathLike[str]


class Nothing:
    """What is known where nothing was measured."""

    @contextmanager
    def answering(self) -> Iterator[None]:
        yield

    def expect_many(self) -> None:
        """Nothing is read."""

    def cells(self, models: Sequence[str]) -> list[Cell]:
        return []

    def failures(self, models: Sequence[str]) -> list[Failure]:
        return []

    def peers(self, place: Place, known: Known) -> list[Cell]:
        return []

    def tried(self) -> list[Tried]:
        return []

    def models(self) -> dict[str, dict[str, Any]]:
        return {}

    def named(self) -> dict[str, str]:
        return {}

    def devices(self) -> dict[str, list[str]]:
        return {}


def configured(given: StrPath | Mapping[str, Any] | None) -> dict[str, Any]:
    """A configuration over the defaults: of a file, or as it is."""
    if given is None:
        return defaults()
    return over_defaults(dict(given)) if isinstance(given, Mapping) else read(given)


def pages(named: StrPath | None) -> tuple[list[Layer], list[Layer]]:
    """The pages with a matrix: those believed before the database, and those after it.

    Raises:
        UsageError: the page that was named has no matrix.
    """
    if named is None:
        return [], _beside()
    try:
        layer = of_markdown(Path(named).expanduser().read_text(encoding="utf-8"), str(named))
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise UsageError(f"The matrix file {named} cannot be read: {why}.") from error
    if not layer.entries:
        raise UsageError(
            f"There is no compatibility matrix in {named}.",
            "A table is expected with families down, platforms across, levels in its cells.",
        )
    return [layer], []


def _beside() -> list[Layer]:
    """The page that the documents look for where nobody names one."""
    try:
        return [of_markdown(Path(CLAUDE_FILE).read_text(encoding="utf-8"), f"./{CLAUDE_FILE}")]
    except (OSError, UnicodeDecodeError):
        return []
