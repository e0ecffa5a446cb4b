"""The plan of a request on this machine, by the devices and runtimes that are here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from accelbench.core.plugins import (
    ENGINES,
    HARDWARE,
    PluginError,
    load,
    load_all,
    registered,
    warn_once,
)
from accelbench.core.protocols import Inventory, Runtime
from accelbench.engines.shared.names import known_runtimes, no_such_runtime
from accelbench.run.plan import estimates
from accelbench.run.plan.expand import expand_all
from accelbench.run.plan.request import Plan, Request, TellsFree


def installed_runtimes() -> dict[str, Runtime]:
    """Return every runtime that can be used and chosen, by name; warn of the others."""
    runtimes: dict[str, Runtime] = {}
    names = known_runtimes()
    for name, made in load_all(ENGINES):
        if isinstance(made, PluginError):
            warn_once(str(made), made)
        elif name in names:
            runtimes[name] = made
    return runtimes


def plan_for(request: Request, inventory: Inventory, runtimes: Mapping[str, Runtime]) -> Plan:
    """The plan of a request on this machine as it is now, or on those of a fleet."""
    return plan_of((request,), inventory, runtimes)


def plan_of(
    requests: Sequence[Request], inventory: Inventory, runtimes: Mapping[str, Runtime]
) -> Plan:
    """Return one plan for several requests, on this machine as it is now or on a fleet.

    Raises:
        PluginError: a runtime or platform that a request names cannot be used.
        UsageError: there is no such runtime.
    """
    for request in requests:
        for name in request.runtimes:
            if name not in runtimes:
                _load_named(ENGINES, name)
                raise no_such_runtime(name, sorted(runtimes))
        for platform in request.hardware:
            _load_named(HARDWARE, platform.partition(":")[0])
    free = inventory.free if isinstance(inventory, TellsFree) else estimates.free
    return expand_all(requests, inventory, runtimes, estimates.memory, free)


def _load_named(group: str, name: str) -> None:
    point = registered(group).get(name)
    if point is not None:
        load(point)
