"""What a selector is made of besides its store: a configuration, and pages with a matrix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from accelbench.analysis.run_noise import Histories
from accelbench.core.errors import UsageError
from accelbench.hardware.detect import known
from accelbench.select.rank.matrices import MatrixLayer
from accelbench.select.rank.matrix_pages import of_markdown
from accelbench.select.estimate.ceilings import Rates
from accelbench.select.evidence.cells import EvidenceCell, EvidencePlace, ModelKnowledge, Tried
from accelbench.select.evidence.failures import Failure
from accelbench.select.query import validation
from accelbench.select.query.config import defaults, over_defaults, read

CLAUDE_FILE = "CLAUDE.md"
StrPath = str | PathLike[str]


class EmptyStore:
    """What is known where nothing was measured."""

    @contextmanager
    def answering(self) -> Iterator[None]:
        yield

    def expect_many(self) -> None:
        """Nothing is read."""

    def cells(self, models: Sequence[str]) -> list[EvidenceCell]:
        return []

    def unusable(self, models: Sequence[str]) -> list[EvidenceCell]:
        return []

    def failures(self, models: Sequence[str]) -> list[Failure]:
        return []

    def peers(self, place: EvidencePlace, known: ModelKnowledge) -> list[EvidenceCell]:
        return []

    def rates(self) -> Rates:
        return {}

    def histories(self, cells: Sequence[EvidenceCell]) -> Histories:
        return Histories()

    def tried(self) -> list[Tried]:
        return []

    def models(self) -> dict[str, dict[str, Any]]:
        return {}

    def named(self) -> dict[str, str]:
        return {}

    def precisions(self) -> frozenset[str]:
        return frozenset()

    def devices(self) -> dict[str, list[str]]:
        return {}


def configured(given: StrPath | Mapping[str, Any] | None) -> dict[str, Any]:
    """A configuration over the defaults: of a file, or as it is.

    Raises:
        UsageError: it is none.
    """
    if isinstance(given, Mapping):
        return over_defaults(dict(given))
    named = validation.path("config_path", given)
    return defaults() if named is None else read(named)


def pages(
    named: StrPath | None, own: Iterable[str] = ()
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
