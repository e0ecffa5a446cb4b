"""Commands of a group by name: a slip is answered with the names like it."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from accelbench.core.errors import UsageError
from accelbench.core.near import meant
from accelbench.core.visible import in_quotes


class NamedCommands(TyperGroup):
    """Refuses a name that no command has as every other name is refused."""

    def find_group(self, word: str) -> str:
        """Return the group that has a command of this name; empty if none has."""
        return ""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word = str(args[0])
        if not word.startswith("-") and self.get_command(ctx, word) is None:
            names = self.list_commands(ctx)
            if group := self.find_group(word):
                raise UsageError(
                    f"There is no command {in_quotes(word)}.",
                    f"Did you mean {ctx.command_path} {group} {word}?",
                )
            raise UsageError(
                f"There is no command {in_quotes(word)}.",
                f"{meant(word, names, 'Commands', like=0.6)} {ctx.command_path} --help",
            )
        return super().resolve_command(ctx, args)
