"""What a selector is made of besides its store: a configuration, and pages with a matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike

from accelbench.analysis.run_noise import Histories
from accelbench.select.evidence.cells import EvidenceCell, EvidencePlace, ModelKnowledge, Tried
from accelbench.select.evidence.device_rates import Rates
from accelbench.select.evidence.failures import Failure
from accelbench.select.query import validation
from accelbench.select.query.config import Config, defaults, over_defaults, read
from accelbench.select.query.query import StoredModel

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

    def models(self) -> dict[str, StoredModel]:
        return {}

    def named(self) -> dict[str, str]:
        return {}

    def precisions(self) -> frozenset[str]:
        return frozenset()

    def devices(self) -> dict[str, list[str]]:
        return {}

    def machine_devices(self) -> None:
        """Nothing was measured, by any machine."""


def configured(given: StrPath | Mapping[str, object] | None) -> Config:
    """A configuration over the defaults: of a file, or as it is.

    Raises:
        UsageError: it is none.
    """
    if isinstance(given, Mapping):
        return over_defaults(dict(given))
    named = validation.path("config_path", given)
    return defaults() if named is None else read(named)
