"""What `accelbench fleet start`, `join`, `stop` and `status` do."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import IO, Any

from accelbench.cli.display.fleet import print_nodes
from accelbench.cli.display.terminal import print_line
from accelbench.core.protocols import Device
from accelbench.hardware.detect import Detected
from accelbench.run.fleet import session, session_end
from accelbench.run.fleet.fleet_address import FleetAddress
from accelbench.run.fleet.fleet_nodes import FleetNode, differences, shared_machines
from accelbench.run.fleet.ray_resources import is_loopback


def start(host: str, port: int, *, measures: bool) -> None:
    """Start the head of a fleet, and say how others join."""
    node = session.start(host, port, Detected(), measures=measures)
    print_line(f"A fleet is at {node.address}. Its token is in {node.token_file}.", sys.stdout)
    words = ["accelbench", "fleet", "join", node.address, "--token-file"]
    if is_loopback(host):
        where = "Another node of this machine"
        words.append(node.token_file)
    else:
        where = "Another machine, with a copy of that file,"
        words.append(Path(node.token_file).name)
    print_line(f"{where} joins with: {shlex.join(words)}", sys.stdout)
    print_line("Measure with: accelbench fleet run MODEL …", sys.stdout)


def join(address: str, token_file: Path | None, host: str | None) -> None:
    """Have this machine measure for a fleet."""
    node = session.join(address, token_file, host, Detected())
    print_line(f"This machine measures for the fleet at {node.address}.", sys.stdout)
    print_line("It leaves with: accelbench fleet stop", sys.stdout)


def stop(*, keep_logs: bool) -> None:
    """End what was started here, and say where Ray's logs are, if they still are."""
    stopped = session_end.stop(keep_logs=keep_logs)
    ended, noun = stopped.processes, "process" if stopped.processes == 1 else "processes"
    text = f"Ended {ended} {noun}." if ended else "No fleet was started on this machine."
    print_line(text, sys.stdout)
    for folder in stopped.logs:
        why = "A process of Ray had ended before: its" if stopped.failed else "Ray's"
        print_line(f"{why} logs are in {folder}.", sys.stdout)


def show_status(where: FleetAddress, stream: IO[str], *, as_json: bool) -> None:
    """What the nodes are, what differs among them, and what they are at."""
    cluster = where.connected()
    nodes = cluster.all_nodes()
    at = cluster.busy(nodes)
    if as_json:
        document = {
            "address": where.address,
            "nodes": [_entry(node, at.get(node.id, "")) for node in nodes],
            "differences": [
                {"what": each.what, "values": {v: list(n) for v, n in each.values.items()}}
                for each in differences(nodes)
            ],
            "notes": shared_machines(nodes),
        }
        stream.write(json.dumps(document) + "\n")
        return
    print_line(f"Fleet at {where.address}", stream)
    print_nodes(nodes, at, stream)


def _entry(node: FleetNode, at: str) -> dict[str, Any]:
    return {
        "name": node.name,
        "id": node.id,
        "broken": node.broken or None,
        "accelbench": node.version,
        "python": node.environment.get("python"),
        "devices": [_device(d) for found in node.devices.values() for d in found],
        "packages": node.environment.get("packages") or {},
        "measures": at or None,
    }


def _device(device: Device) -> dict[str, Any]:
    return {"device": str(device), "name": device.name, "driver": device.driver or None}
