"""The plan of a request on this machine, by the devices and runtimes that are here."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from accelbench.core.plugins import RUNTIMES, load_all
from accelbench.core.protocols import Inventory, Runtime
from accelbench.run.plan import estimates
from accelbench.run.plan.expand import expand
from accelbench.run.plan.request import Plan, Request
from accelbench.runtimes.shared.names import known_runtimes, no_such_runtime

_log = logging.getLogger(__name__)

#: Devices by platform, or why there are none.


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
    """The plan of a request on this machine as it is now."""
    unknown = [name for name in request.runtimes if name not in runtimes]
    if unknown:
        raise no_such_runtime(unknown[0], sorted(runtimes))
    return expand(request, inventory, runtimes, estimates.memory, estimates.free)
