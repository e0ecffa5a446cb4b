"""Which fleet is meant: one that is named, or the one that was started or joined here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes
from accelbench.run.fleet import session

if TYPE_CHECKING:
    from accelbench.run.fleet.ray_cluster import RayCluster


@dataclass(frozen=True)
class FleetAddress:
    """Where a fleet's head is, and the file of its token."""

    address: str
    token_file: Path | None

    @classmethod
    def of(cls, address: str | None, token_file: Path | None) -> FleetAddress:
        """The one that is named, else the one that was started or joined here.

        Raises:
            UsageError: nothing is named, and none is here.
        """
        if address is not None:
            if address != "auto":
                session.parsed(address)
            return cls(address, token_file or _token_here(address))
        here = [node for node in session.started() if node.alive]
        if not here:
            raise UsageError(
                "No fleet was started on this machine.",
                "Start one with accelbench fleet start, or name one with --address HOST:PORT.",
            )
        return cls(here[0].address, token_file or Path(here[0].token_file))

    def connected(self) -> RayCluster:
        """Its nodes."""
        from accelbench.run.fleet.ray_cluster import RayCluster, connect

        if self.token_file is not None and not self.token_file.is_file():
            name = in_quotes(str(self.token_file))
            raise UsageError(f"There is no token file {name}.", "Name another one.")
        connect(self.address, self.token_file)
        return RayCluster()


def _token_here(address: str) -> Path | None:
    """The token of a fleet that was started or joined here."""
    here = [node for node in session.started() if node.address == address]
    return Path(here[0].token_file) if here else None
