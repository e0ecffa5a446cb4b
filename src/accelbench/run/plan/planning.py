"""The plan of a request on this machine, by the devices and runtimes that are here."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from accelbench.core.plugins import RUNTIMES, load_all
from accelbench.core.protocols import Inventory, Runtime
from accelbench.run.plan import estimates
from accelbench.run.plan.expand import expand_all
from accelbench.run.plan.request import Plan, Request, TellsFree
from accelbench.runtimes.shared.names import known_runtimes, no_such_runtime

_log = logging.getLogger(__name__)


def installed_runtimes() -> dict[str, Runtime]:
    """Every runtime that can be imported and chosen, by name."""
    runtimes: dict[str, Runtime] = {}
    names = known_runtimes()
    for name, made in load_all(RUNTIMES):
        if isinstance(made, Exception):
            _log.debug("runtime %s cannot be imported", name, exc_info=made)
        elif name in names:
            runtimes[name] = made
    return runtimes


def plan_for(request: Request, inventory: Inventory, runtimes: Mapping[str, Runtime]) -> Plan:
    """The plan of a request on this machine as it is now, or on those of a fleet."""
    return plan_of((request,), inventory, runtimes)


def plan_of(
    requests: Sequence[Request], inventory: Inventory, runtimes: Mapping[str, Runtime]
) -> Plan:
    """The one plan of several requests on this machine as it is now, or on those of a fleet."""
    wanted = (name for request in requests for name in request.runtimes)
    unknown = next((name for name in wanted if name not in runtimes), None)
    if unknown is not None:
        raise no_such_runtime(unknown, sorted(runtimes))
    free = inventory.free if isinstance(inventory, TellsFree) else estimates.free
    return expand_all(requests, inventory, runtimes, estimates.memory, free)
