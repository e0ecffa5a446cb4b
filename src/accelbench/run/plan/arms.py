"""The arms of a run: what was asked, and beside it the same in what it is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from accelbench.core.case import Option
from accelbench.run.plan.against import Against
from accelbench.run.plan.request import Plan, Request
from accelbench.run.plan.run_settings import RunSettings


@dataclass(frozen=True)
class OtherArm:
    """The arm that a run is compared with, as it is planned."""

    against: Against
    plan: Plan
    settings: RunSettings


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
        settings = settings.with_job(threads=int(value))
    return replace(request, options=options), settings
