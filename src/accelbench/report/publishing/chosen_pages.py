"""Which models, devices, configurations and runs have pages of their own in a bundle.

A page of a model has a dozen pictures and takes a second, so a store of thousands is not drawn
whole: what was measured here comes before what others measured, then what has most
configurations. All of it is in the table, which the browser filters and compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from accelbench.core.nouns import counted
from accelbench.report.dashboard.entities.lists import COUNTS, DEVICE
from accelbench.report.dashboard.entities.lists import address_of as entity_address
from accelbench.report.publishing.addresses import Address, address_of

if TYPE_CHECKING:
    from accelbench.report.dashboard.snapshots.snapshot import Snapshot

#: Kinds of pages that there are one of for each thing, and what each is called.
NOUNS = {"model": "model", "device": "device", "cell": "configuration", "run": "run"}
_MODELS = (
    "SELECT model AS name, count(*) OVER () AS every FROM cell GROUP BY 1"
    " ORDER BY bool_or(kind = 'measured') DESC, count(*) DESC, lower(model), model LIMIT ?"
)
_DEVICES = (
    f"SELECT {DEVICE} AS name, count(*) OVER () AS every FROM cell GROUP BY 1"  # noqa: S608
    " ORDER BY bool_or(kind = 'measured') DESC, count(*) DESC, lower(name), name LIMIT ?"
)
#: The best of each model before the second of any.
_CELLS = (
    "SELECT key AS name, every FROM (SELECT key, kind, model, count(*) OVER () AS every,"  # noqa: S608
    f" coalesce({COUNTS}, false) AS counts, row_number() OVER (PARTITION BY kind, model"
    f" ORDER BY coalesce({COUNTS}, false) DESC, coalesce(batch_size, 1000000000),"
    " latency NULLS LAST, key) AS nth FROM cell)"
    " ORDER BY kind <> 'measured', NOT counts, nth, lower(model), key LIMIT ?"
)
_RUNS = (
    "SELECT run_id AS name, count(*) OVER () AS every FROM run"
    " ORDER BY started_at DESC NULLS LAST, run_id DESC LIMIT ?"
)


@dataclass(frozen=True)
class ChosenPages:
    """What has a page of its own.

    Attributes:
        addresses: of each kind of NOUNS, in the order in which they are drawn.
        counts: how many things of each kind the store has.
    """

    addresses: Mapping[str, Sequence[Address]]
    counts: Mapping[str, int]

    @property
    def every(self) -> list[Address]:
        """All of them, kind by kind."""
        return [address for several in self.addresses.values() for address in several]

    def left_out(self, kind: str) -> int:
        """How many things of a kind are rows of the table alone."""
        return self.counts[kind] - len(self.addresses[kind])

    @property
    def sentence(self) -> str:
        """Which are left out, in words; "" where none is."""
        parts = [
            f"{len(self.addresses[kind]):,} of {counted(self.counts[kind], noun)}"
            for kind, noun in NOUNS.items()
            if self.left_out(kind)
        ]
        if not parts:
            return ""
        return (
            f"Pages of their own: {', '.join(parts)}; those measured here come first."
            " The table of results has every configuration."
        )


def chosen_pages(snapshot: Snapshot, most: int) -> ChosenPages:
    """What has a page of its own, of each kind so many at most."""
    addresses, counts = {}, {}
    for kind, sql in (("model", _MODELS), ("device", _DEVICES), ("cell", _CELLS), ("run", _RUNS)):
        rows = snapshot.ask(sql, [most])
        named = (_link(kind, str(row["name"])) for row in rows)
        addresses[kind] = [address for link in named if (address := address_of(link)) is not None]
        counts[kind] = int(str(rows[0]["every"])) if rows else 0
    return ChosenPages(addresses, counts)


def _link(kind: str, name: str) -> str:
    return entity_address(kind, name) if kind in ("model", "device") else f"/{kind}/{quote(name)}"
