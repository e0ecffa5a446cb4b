"""A fleet that is named wrongly: what people are told, before anything of Ray is begun."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelbench.core.errors import UsageError
from accelbench.run.fleet import session
from accelbench.run.fleet.fleet_address import FleetAddress

ABSENT = Path("no\x1b[31mwhere")


def test_an_absent_token_file_is_quoted_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_refuse_without_ray", lambda: None)
    messages = []
    for ask in (
        FleetAddress("127.0.0.1:6379", ABSENT).connected,
        lambda: session.join("127.0.0.1:6379", ABSENT, None, {}),
    ):
        with pytest.raises(UsageError) as caught:
            ask()
        messages.append(caught.value.message)
    assert messages == ["There is no token file 'no<U+001B>[31mwhere'."] * 2
