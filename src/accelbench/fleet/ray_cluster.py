"""Ray as the cluster of a fleet: it places units, reserves nodes and devices, and reports ends."""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.core.errors import MissingExtraError, SurroundingsError
from accelbench.core.protocols import Device, Inventory
from accelbench.fleet import ray_worker
from accelbench.fleet.dispatch import SHARED_PLATFORMS, Need, find_rendezvous, set_rendezvous
from accelbench.fleet.fleet_nodes import (
    ClusterEvent,
    FleetNode,
    NodeJoined,
    NodeLost,
    Submission,
    UnitBegan,
    UnitEnded,
    UnitFailed,
    UnitHeard,
    format_node_name,
    node_from_json,
)

#: Resource of a node that `accelbench fleet` started. A node has one, and a measuring unit takes
#: it.
NODE = "accelbench_node"
#: Share of the resource for a unit that leaves the node's other devices to other units.
SHARE = 1 / 64


def platform_resource(hardware: str) -> str:
    """Return the name of a platform among Ray's resources."""
    return f"accelbench_{hardware}"


def build_resources(inventory: Inventory) -> dict[str, float]:
    """Return the resources of a node: itself, and its devices of each platform."""
    counts = {
        platform_resource(name): float(sum(isinstance(entry, Device) for entry in entries))
        for name, entries in inventory.items()
    }
    return {NODE: 1.0, **{name: count for name, count in counts.items() if count}}


def count_gpus(inventory: Mapping[str, Iterable[object]]) -> int:
    """Return the number of devices that Ray assigns singly."""
    found = (entry for name in SHARED_PLATFORMS for entry in inventory.get(name, ()))
    return sum(isinstance(entry, Device) for entry in found)


def is_loopback(host: str) -> bool:
    """Return whether an address only reaches this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def ray_address(address: str) -> str:
    """Return an address in the form that Ray needs."""
    # Ray replaces "localhost" and 127.0.0.1 by the address of a network interface, and its servers
    # then listen on every interface. It keeps other spellings of the loopback host.
    host, _, port = address.rpartition(":")
    return f"Localhost:{port}" if is_loopback(host) else address


def refuse_unreachable(address: str) -> None:
    """Raise SurroundingsError if nothing listens at an address: Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        raise SurroundingsError(
            f"No fleet answers at {address}: {error.strerror or error}.",
            "Check with accelbench fleet status on its head that it runs there, and that it was"
            " started with a --host that this machine reaches.",
        ) from error


_log = logging.getLogger(__name__)


class RayGroup:
    """Placement group of the nodes that make a step together; the first one measures.

    Ray reserves all bundles or none; `labels` select the nodes for each.
    """

    def __init__(
        self, bundles: Sequence[Mapping[str, float]], labels: Sequence[Mapping[str, str]]
    ) -> None:
        import ray
        from ray.util import placement_group

        self._ray = ray
        self._bundles = [dict(bundle) for bundle in bundles]
        self._group = placement_group(
            self._bundles,
            strategy="STRICT_SPREAD",
            bundle_label_selector=[dict(each) for each in labels] or None,
        )
        self.parts: list[Any] = []

    def begin(
        self, task: Mapping[str, Any], parts: Sequence[Mapping[str, Any]], tick: float
    ) -> Any:
        """Measure a unit on the first node while the others take part.

        Returns the messages of the first node.
        """
        remote = self._ray.remote
        place = (
            remote(max_retries=0)(_find_rendezvous).options(**self._bundle_options(0, {})).remote()
        )
        take_part = remote(max_retries=0)(_join_steps)
        self.parts = [
            take_part.options(**self._bundle_options(number, bundle)).remote(
                dict(part), tick, place
            )
            for number, (part, bundle) in enumerate(
                zip(parts, self._bundles[1:], strict=True), start=1
            )
        ]
        measure = remote(max_retries=0)(_measure_together)
        whole = self._bundle_options(0, self._bundles[0])
        return measure.options(num_returns="streaming", **whole).remote(dict(task), tick, place)

    def find_failure(self, ready: Sequence[Any]) -> Exception | None:
        for part in self.parts:
            if part in ready:
                try:
                    self._ray.get(part)
                except Exception as error:
                    return error
                return RuntimeError("a node no longer takes part")
        return None

    def end(self) -> None:
        from ray.util import remove_placement_group

        parts, self.parts = self.parts, []
        for part in parts:
            self._ignore_errors(lambda part=part: self._ray.cancel(part, force=True))
        self._ignore_errors(lambda: remove_placement_group(self._group))

    def _ignore_errors(self, do: Any) -> None:
        try:
            do()
        except Exception as error:  # its node is gone already
            _log.debug("ending a part", exc_info=error)

    def _bundle_options(self, number: int, bundle: Mapping[str, float]) -> dict[str, Any]:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        own = {name: value for name, value in bundle.items() if name != "CPU"}
        return {
            "num_cpus": bundle.get("CPU", 0),
            **({"resources": own} if own else {}),
            "scheduling_strategy": PlacementGroupSchedulingStrategy(
                self._group, placement_group_bundle_index=number
            ),
        }


def _find_rendezvous() -> str:
    import ray

    return find_rendezvous(ray.util.get_node_ip_address())


def _measure_together(task: dict[str, Any], tick: float, place: str) -> Any:
    """Measure or take part at the rendezvous of the nodes, in a worker of Ray."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    yield from ray_worker.measure(set_rendezvous(task, place), node, tick)


def _join_steps(part: dict[str, Any], tick: float, place: str) -> None:
    for _ in _measure_together(part, tick, place):
        pass


#: Seconds between updates of the list of nodes.
_UPDATE_SECONDS = 2.0
#: Seconds between reports of a running unit.
TICK_SECONDS = 10.0
#: Time for a head to answer, which only takes the delay of the network.
_CONNECT_SECONDS = 10.0
#: Label with the id of a Ray node.
_NODE_LABEL = "ray.io/node-id"


def connect(address: str, token_file: Path | None) -> None:
    """Connect this process with the cluster at HOST:PORT, or with this node's cluster for "auto".

    Raises SurroundingsError if there is none, or if it refuses the token.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if token_file is not None:
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN_PATH"] = str(token_file)
        os.environ.pop("RAY_AUTH_TOKEN", None)
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("ray", "fleet", "A fleet") from error
    if ray.is_initialized():
        return
    if address != "auto":
        refuse_unreachable(address)
    _quieten()
    try:
        ray.init(
            address=ray_address(address), log_to_driver=False, logging_level=logging.ERROR,
            configure_logging=False,
        )  # fmt: skip
    except Exception as error:
        _log.debug("ray.init", exc_info=error)
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise SurroundingsError(
            f"Connecting to a fleet at {address} failed: {first}",
            "Check with accelbench fleet status on its head that it runs there, and name the file"
            " of its token with --token-file.",
        ) from error


def _quieten() -> None:
    """Send Ray's output about lost nodes to the log of --debug."""
    # The only use of Ray's private modules. Ray prints pages of its own state if a node is lost. No
    # setting ends that: `log_to_driver` is only for workers. The run itself reports lost nodes.
    from ray._private import worker

    worker.print_to_stdstream = lambda data, **_: _log.debug("ray: %s", data.get("lines"))


class RayCluster:
    """Nodes of the Ray cluster that this process is connected with.

    Nodes that `accelbench fleet` started advertise their devices as resources. In other clusters
    every node counts, and a unit reserves all CPUs of one.
    """

    def __init__(self, tick: float = TICK_SECONDS) -> None:
        import ray

        self._ray = ray
        self._tick = tick
        self._names: dict[str, str] = {}
        self._resources: dict[str, Mapping[str, float]] = {}  # of present nodes
        self._nodes: dict[str, FleetNode] = {}
        self._asked: dict[Any, str] = {}  # pending descriptions of nodes
        self._running: dict[Any, tuple[int, int]] = {}  # generators of attempts
        self._where: dict[tuple[int, int], str] = {}
        self._together: dict[tuple[int, int], RayGroup] = {}  # attempts of several nodes
        self._updated_at = float("-inf")
        self._events: list[ClusterEvent] = []
        self._describe = ray.remote(num_cpus=0, max_retries=1)(ray_worker.describe)
        self._read_activity = ray.remote(num_cpus=0, max_retries=1)(ray_worker.read_activity)
        self._measure = ray.remote(max_retries=0)(_measure_here)
        self._update_nodes()

    def now(self) -> float:
        return time.monotonic()

    def is_settled(self) -> bool:
        return not self._asked

    @property
    def is_ours(self) -> bool:
        """Whether `accelbench fleet` started its nodes."""
        return any(NODE in resources for resources in self._resources.values())

    def submit(self, submission: Submission) -> None:
        of = submission.unit, submission.attempt
        if submission.need.nodes > 1:
            self._together[of] = group = RayGroup(*self._build_bundles(submission))
            generator = group.begin(submission.task, submission.parts, self._tick)
        else:
            options = self._build_options(submission)
            generator = self._measure.options(num_returns="streaming", **options).remote(
                dict(submission.task), self._tick
            )
        self._running[generator] = of

    def cancel(self, unit: int, attempt: int) -> None:
        for generator, of in list(self._running.items()):
            if of == (unit, attempt):
                self._forget_attempt(generator)
                try:
                    self._ray.cancel(generator, force=True)
                except Exception as error:  # its node is gone already
                    _log.debug("cancelling unit %s", unit, exc_info=error)

    def events(self, timeout: float) -> list[ClusterEvent]:
        self._update_nodes()
        parts = [part for group in self._together.values() for part in group.parts]
        waiting = [*self._asked, *self._running, *parts]
        if waiting and not self._events:
            ready, _ = self._ray.wait(waiting, num_returns=1, timeout=timeout)
        elif not self._events:
            time.sleep(timeout)
        if waiting:
            ready, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=0)
            for answer in ready:
                self._take_answer(answer)
            self._end_failed_groups(ready)
        events, self._events = self._events, []
        return events

    def list_nodes(self) -> list[FleetNode]:
        """Return every node after it has described itself, including nodes that cannot measure."""
        while not self.is_settled():
            self.events(1.0)
        return sorted(self._nodes.values(), key=lambda node: node.name)

    def read_activity(self, nodes: Sequence[FleetNode]) -> dict[str, str]:
        """Return the current unit of each node by its id, for the run of any process."""
        asked = {
            node.id: self._read_activity.options(scheduling_strategy=self._pin_to(node.id)).remote(
                node.name
            )
            for node in nodes
        }
        return {node: str(self._ray.get(answer)) for node, answer in asked.items()}

    # -- nodes

    def _update_nodes(self) -> None:
        if time.monotonic() - self._updated_at < _UPDATE_SECONDS:
            return
        self._updated_at = time.monotonic()
        present = {
            str(node["NodeID"]): (str(node["NodeManagerHostname"]), node["Resources"])
            for node in self._ray.nodes()
            if node["Alive"]
        }
        ours = any(NODE in resources for _, resources in present.values())
        usable = {
            node: about
            for node, about in present.items()
            if (about[1].get(NODE, 0) >= 1 if ours else about[1].get("CPU", 0) >= 1)
        }
        for node in [node for node in self._resources if node not in usable]:
            del self._resources[node]
            known = self._nodes.pop(node, None)
            self._events.append(NodeLost(node, f"{known.name if known else node} is gone"))
        for node, (machine, resources) in usable.items():
            if node not in self._resources:
                self._resources[node] = resources
                self._names[node] = format_node_name(node, machine)
                asked = self._describe.options(scheduling_strategy=self._pin_to(node)).remote()
                self._asked[asked] = node

    def _pin_to(self, node: str) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(node, soft=False)

    def _build_options(self, submission: Submission) -> dict[str, Any]:
        """Return Ray's options for a unit: its reservation, and the nodes that may run it."""
        need = submission.need
        if not self.is_ours:
            return self._reserve_cpus(need, submission.avoided)
        share, device = (1.0, 0.001) if need.whole_node else (SHARE, 1.0)
        options: dict[str, Any] = {
            "num_cpus": 0,
            "resources": {NODE: share, platform_resource(need.hardware): device},
        }
        if not need.whole_node:
            options["num_gpus"] = 1
        if need.node:
            return {**options, "scheduling_strategy": self._pin_to(need.node)}
        labels = []
        if need.device:
            able = [node.id for node in self._nodes.values() if node.offer.count_slots(need)]
            labels = [f"in({','.join(sorted(set(able) - submission.avoided))})"]
        elif submission.avoided:
            labels = [f"!in({','.join(sorted(submission.avoided))})"]
        return {**options, **({"label_selector": {_NODE_LABEL: labels[0]}} if labels else {})}

    def _able_nodes(self, need: Need, avoided: frozenset[str]) -> list[FleetNode]:
        """Return nodes that can measure a unit of a kind, those with the fewest units first."""
        able = [
            n for n in self._nodes.values() if n.offer.count_slots(need) and n.id not in avoided
        ]
        load = list(self._where.values())
        return sorted(able, key=lambda node: (load.count(node.id), node.id))

    def _reserve_cpus(self, need: Need, avoided: frozenset[str]) -> dict[str, Any]:
        """Return options that reserve all CPUs of a node, or a device's share of them.

        The node is the one with the fewest units.
        """
        node = (self._able_nodes(need, avoided) or self._able_nodes(need, frozenset()))[0]
        cpus = float(self._resources[node.id].get("CPU", 1))
        options: dict[str, Any] = {"scheduling_strategy": self._pin_to(node.id)}
        if need.whole_node:
            return {**options, "num_cpus": cpus}
        slots = node.offer.count_slots(need)
        return {**options, "num_cpus": max(1, int(cpus // slots)), "num_gpus": 1}

    def _build_bundles(
        self, submission: Submission
    ) -> tuple[list[dict[str, float]], list[dict[str, str]]]:
        """Return the reservation of each node that shares a step, and the allowed nodes."""
        need = submission.need
        able = self._able_nodes(need, submission.avoided)
        if self.is_ours:
            bundle = {NODE: 1.0, platform_resource(need.hardware): 0.001}
            among = ",".join(sorted(node.id for node in able))
            return [bundle] * need.nodes, [{_NODE_LABEL: f"in({among})"}] * need.nodes
        chosen = able[: need.nodes]
        return (
            [{"CPU": float(self._resources[node.id].get("CPU", 1))} for node in chosen],
            [{_NODE_LABEL: node.id} for node in chosen],
        )

    # -- answers of nodes

    def _take_answer(self, answer: Any) -> None:
        if answer in self._asked:
            self._add_node(answer)
        elif answer in self._running:
            self._read_message(answer)

    def _add_node(self, answer: Any) -> None:
        node = self._asked.pop(answer)
        if node not in self._resources:
            return
        try:
            body = self._ray.get(answer)
        except Exception as error:
            _log.debug("asking node %s", node, exc_info=error)
            body = {"broken": f"accelbench does not run there: {_explain_error(error)}"}
        self._nodes[node] = made = node_from_json(node, self._names[node], body)
        self._events.append(NodeJoined(made))

    def _read_message(self, generator: Any) -> None:
        unit, attempt = of = self._running[generator]
        try:
            message: dict[str, Any] = self._ray.get(next(generator))
        except StopIteration:
            self._forget_attempt(generator)
            self._events.append(UnitEnded(unit, attempt))
            return
        except Exception as error:
            self._handle_failure(generator, error)
            return
        if "began" in message:
            self._where[of] = str(message["began"])
            self._events.append(UnitBegan(unit, attempt, self._where[of]))
            return
        self._events.append(
            UnitHeard(
                *(unit, attempt, self._where.get(of, "")),
                tuple(message.get("lines", ())),
                str(message.get("at", "")),
                tuple(message.get("notes", ())),
            )
        )

    def _handle_failure(self, generator: Any, error: Exception) -> None:
        unit, attempt = self._running[generator]
        node = self._forget_attempt(generator)
        _log.debug("unit %s, attempt %s", unit, attempt, exc_info=error)
        self._updated_at = float("-inf")
        self._update_nodes()
        lost = isinstance(error, self._ray.exceptions.NodeDiedError) or (
            bool(node) and node not in self._resources
        )
        self._events.append(UnitFailed(unit, attempt, _explain_error(error), lost))

    def _end_failed_groups(self, ready: Sequence[Any]) -> None:
        """End units if one of their further nodes went away or stopped."""
        for of, group in list(self._together.items()):
            error = group.find_failure(ready)
            if error is not None:
                self.cancel(*of)
                lost = isinstance(error, self._ray.exceptions.NodeDiedError)
                self._events.append(
                    UnitFailed(*of, f"another node failed: {_explain_error(error)}", lost)
                )

    def _forget_attempt(self, generator: Any) -> str:
        """Forget an attempt; return its node if it had begun."""
        of = self._running.pop(generator)
        group = self._together.pop(of, None)
        if group is not None:
            group.end()
        return self._where.pop(of, "")


def _measure_here(task: dict[str, Any], tick: float) -> Any:
    import ray

    yield from ray_worker.measure(task, ray.get_runtime_context().get_node_id(), tick)


def _explain_error(error: Exception) -> str:
    """Return the message of an error without Ray's traceback."""
    cause = getattr(error, "cause", None)
    lines = [line.strip() for line in str(cause or error).strip().splitlines() if line.strip()]
    return (
        f"{type(error).__name__}: {lines[-1 if cause is None else 0]}"
        if lines
        else type(error).__name__
    )
