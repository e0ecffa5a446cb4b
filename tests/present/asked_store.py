"""What commands and pages show of a store."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dashboard_world import visitor
from typer.testing import CliRunner

from accelbench.cli.main import app
from accelbench.store.database import Database


def said(database: Database, *words: str, codes: Sequence[int] = (0,)) -> str:
    """What a command prints."""
    done = CliRunner().invoke(app, [*words, "--db", str(database.path)])
    assert done.exit_code in codes, (words, done.output, done.exception)
    return done.stdout


def keys_of(database: Database, address: str = "/results?sort=hardware") -> list[str]:
    """The keys of the cells that a page leads to, each once."""
    text = visitor(database).get(address).text
    return list(dict.fromkeys(re.findall(r'href="/cell/([0-9a-f]{16})"', text)))
