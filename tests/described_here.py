"""Models of one's own described within the process of a test: transformers is imported once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from accelbench.core.serial import model_from_json
from accelbench.models import own


@contextmanager
def described_here(*modules: str) -> Iterator[None]:
    """Start no process for descriptions that these modules ask for."""

    def describe(models: Sequence[Any]) -> list[Any]:
        answers = [own._answer(own.to_plain(one)) for one in models]
        return [one if isinstance(one, str) else model_from_json(one) for one in answers]

    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            patch.setattr(f"accelbench.models.{module}.describe", describe)
        yield
