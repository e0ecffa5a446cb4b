"""Looking at an owner's code within the process of a test: what torch takes to import, once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from accelbench.models.code_models import models
from accelbench.models.code_models.looking import look


def look_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no process to look at code."""

    def looked_at(word: Any, given: Mapping[str, Any], reference: str) -> dict[str, Any]:
        place = models._place(word)
        question = {**place, "attribute": word.attribute, "given": [*given], "reference": reference}
        return {**question, **look(question)}

    monkeypatch.setattr(models, "_looked_at", looked_at)
