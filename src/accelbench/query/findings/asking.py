"""The command that measures some configurations, by the words of `query.suggestions`. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from accelbench.core.rows import Row
from accelbench.query.filters import Value
from accelbench.query.suggested_commands import command_for

#: What a command says of what it measures.
_SAID = ("model", "hardware", "runtime", "precision", "batch_size", "mode")
#: Models that a command names; more belong into a plan file.
MOST_MODELS = 6


def command_of(rows: Iterable[Row], more: str = "") -> str:
    """The command that measures these again, and what lies between them.

    Args:
        rows: of the configurations, one each is enough.
        more: options behind what is measured.
    """
    columns: dict[str, dict[Value, None]] = {name: {} for name in _SAID}
    for row in rows:
        for name, known in columns.items():
            value = row.get(name)
            usual = name == "mode" and value == "inference"
            room = name != "model" or len(known) < MOST_MODELS
            if isinstance(value, (str, int)) and room and not usual:
                known[value] = None
    command = command_for({name: list(known) for name, known in columns.items() if known})
    return f"{command} {more}".rstrip() if command else ""
