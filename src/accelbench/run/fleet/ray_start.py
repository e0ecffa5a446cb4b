"""Run as a program: `ray start`, which may stay on the loopback address.

    python -m accelbench.run.fleet.ray_start loopback --head --port 6379 …
    python -m accelbench.run.fleet.ray_start network --address 10.0.0.1:6379 …

Ray puts the address of a network interface in place of 127.0.0.1, and its servers then listen on
every interface. Left as it is, they listen on the loopback address alone. Whether the head takes
this machine's token is asked before anything is started: Ray would only say so in a log.
"""

from __future__ import annotations

import socket
import sys

#: What is said on standard error where the head does not take the token.
REFUSED = "accelbench: the token was refused"
UNREACHABLE = "accelbench: nothing answers there"
_ASK_SECONDS = 20.0


def main(arguments: list[str]) -> None:
    """The program."""
    where, *own = arguments
    if where == "loopback":
        from ray._private import services

        services.resolve_ip_for_localhost = lambda host: host
    if "--address" in own:
        _ask_head(own[own.index("--address") + 1])
    from ray.scripts.scripts import main as ray

    sys.argv = ["ray", "start", *own]
    ray()


def _ask_head(address: str) -> None:
    """End with a word of why, where the head is not there or does not take the token."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ASK_SECONDS).close()
    except OSError as error:
        sys.exit(f"{UNREACHABLE}: {error}")
    from ray._raylet import GcsClient
    from ray.exceptions import AuthenticationError

    try:
        GcsClient(address=address).get_all_node_info(timeout=_ASK_SECONDS)
    except AuthenticationError as error:
        sys.exit(f"{REFUSED}: {_first(error)}")
    except Exception as error:
        word = REFUSED if "nauthenticated" in str(error) else UNREACHABLE
        sys.exit(f"{word}: {_first(error)}")


def _first(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


if __name__ == "__main__":
    main(sys.argv[1:])
