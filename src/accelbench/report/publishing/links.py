"""Where the links of a bundle's pages lead: to a file, to rows of the table, or nowhere. Pure.

What leads nowhere is not offered. A name that has no page of its own stays as text.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlencode, urlsplit

from accelbench.core.visible import visible
from accelbench.report.dashboard.asked import exactly_named
from accelbench.report.publishing.addresses import (
    TABLE,
    Address,
    address_of,
    asked_of_the_table,
    of_the_table,
    relative,
)

#: Files of a bundle that no page of the dashboard is.
OWN = "/table/"
RESULTS_FILE = "results.parquet"


class Unled(Enum):
    """What becomes of a link that leads nowhere."""

    TEXT = "its words stay"
    GONE = "its words go with it"


@dataclass(frozen=True)
class BundleLinks:
    """The links of one bundle.

    Attributes:
        pages: the addresses that have become files.
        devices: names of devices by which the table is filtered.
        platforms: the same of platforms.
    """

    pages: Collection[Address]
    devices: Collection[str]
    platforms: Collection[str]

    def led(self, origin: Address, link: str) -> str | Unled:
        """Where a link of a page leads.

        Args:
            origin: the page.
            link: as the dashboard has it.
        """
        address = address_of(link, origin)
        if address is None:
            return link
        here, fragment = origin.file, urlsplit(link).fragment
        if address.path.startswith(OWN) or address.path == f"/{RESULTS_FILE}":
            return relative(here, address.path[1:])
        if not of_the_table(address) and address in self.pages:
            return relative(here, address.file) + (f"#{fragment}" if fragment else "")
        asked = self._asked(address)
        if asked is not None:
            return relative(here, Address(TABLE).file) + asked
        if address.family in ("model", "device", "run", "cell") or _orders(address):
            return Unled.TEXT
        return Unled.GONE

    def _asked(self, address: Address) -> str | None:
        """What the table is asked for instead of a page; None where it cannot tell."""
        if of_the_table(address):
            return asked_of_the_table(address)
        name = visible(_name(address))  # as the table has it
        mode = [pair for pair in address.query if pair[0] == "mode"]
        if address.family == "cell" and name and not address.form:
            return f"?{urlencode([('key', name)])}"
        if address.family == "model" and name:
            return f"?{urlencode([('model', exactly_named(name)), *mode])}"
        if address.family == "device" and name in self.devices:
            return f"?{urlencode([('device', name)])}"
        if address.family == "device" and name in self.platforms:
            return f"?{urlencode([('hardware', name)])}"
        return None


def _name(address: Address) -> str:
    """What a page is of: the rest of its path, or its `name`."""
    named = [value for name, value in address.query if name == "name"]
    return named[0] if named else address.path.partition("/")[2].partition("/")[2]


def _orders(address: Address) -> bool:
    """Whether a link orders a table, from its heading."""
    return any(name == "sort" for name, _ in address.query)
