"""The exit code of a run if several apply."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from accelbench.cli.services.running import _exit_code


@pytest.mark.parametrize(
    ("started", "fine", "unmeasured", "judged", "code"),
    [
        (True, True, False, None, 0),
        (True, False, False, None, 1),
        (True, False, True, None, 1),  # a case failed, and another was not measured
        (True, True, True, None, 3),
        (False, False, True, None, 3),
        (True, False, False, 4, 4),
        (True, True, False, 1, 1),
        (True, True, True, 1, 3),
    ],
)
def test_the_first_code_that_applies_counts(started, fine, unmeasured, judged, code):
    ended: Any = SimpleNamespace(
        nothing_could_start=not started, tally=SimpleNamespace(all_fine=fine)
    )
    assert _exit_code(ended, unmeasured, judged) == code
