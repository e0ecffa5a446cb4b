"""The arms of a run: what was asked, and beside it the same in what it is held against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from accelbench.core.case import Option
from accelbench.run.conduct.launch_context import RunSettings
from accelbench.run.plan.against import Against, AgainstKind, interpreter_of
from accelbench.run.plan.request import Plan, Request
from accelbench.run.process.interpreter import Interpreter, introduced


@dataclass(frozen=True)
class OtherArm:
    """The arm that a run is held against, as it is planned."""

    against: Against
    plan: Plan
    settings: RunSettings


@dataclass(frozen=True)
class Arm:
    """The same with its interpreter there, which has introduced itself."""

    other: OtherArm
    interpreter: Interpreter | None  # None: ours
    environment: Mapping[str, Any] = field(default_factory=dict)

    def conditions(self, ours: Mapping[str, Any]) -> dict[str, Any]:
        """What an arm's results say beside the usual: its commit, where commits are compared."""
        if self.other.against.kind is not AgainstKind.COMMIT:
            return {}
        return {"commit": (ours.get("git") or {}).get("commit")}


def asked_otherwise(
    request: Request, settings: RunSettings, name: str, value: Option | Mapping[str, Option]
) -> tuple[Request, RunSettings]:
    """The request and the settings of an arm that differs in one setting.

    Args:
        request: of this arm.
        settings: of this arm.
        name: "threads", "compile", or a runtime's name.
        value: of that setting; of a runtime its options.
    """
    if isinstance(value, Mapping):
        before = request.runtime_options
        own = {**before, name: {**before.get(name, {}), **value}}
        return replace(request, runtime_options=own), settings
    options = {**request.options, name: value}
    if name == "compile" and not value:
        del options["compile"]
    if name == "threads":
        settings = replace(settings, threads=int(value))
    return replace(request, options=options), settings


@contextmanager
def opened(other: OtherArm | None, environment: Mapping[str, Any]) -> Iterator[Arm | None]:
    """Have the other arm's interpreter there while a run goes on; None where there is no arm.

    Raises:
        SurroundingsError: it cannot be started, or does not go with this program.
    """
    if other is None:
        yield None
        return
    with interpreter_of(other.against) as interpreter:
        if interpreter is None:
            yield Arm(other, None, environment)
        else:
            said = introduced(interpreter, other.against.name)
            yield Arm(other, interpreter, said["environment"])
