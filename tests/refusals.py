"""What a case is refused for: the code of its error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from accelbench.core.errors import CaseError


@contextmanager
def refusal(reason: str, is_refused: bool = True) -> Iterator[None]:
    """Expect an error of the case with this code, or none if nothing is to be refused."""
    if not is_refused:
        yield
        return
    with pytest.raises(CaseError) as caught:
        yield
    assert caught.value.reason == reason
