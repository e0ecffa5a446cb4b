"""Nodes of a Ray cluster that make steps together: reserved at once, and ended with their unit."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from accelbench.run.fleet import ray_worker
from accelbench.run.fleet.part_in_steps import meeting_at, meeting_place

_log = logging.getLogger(__name__)


class RayGroup:
    """A placement group of as many nodes as make a step together: the first measures.

    Ray reserves all of them or none. Where they meet, the first of them says once it is known.

    Args:
        bundles: what is reserved of each node, as Ray has resources.
        labels: of nodes that may be taken, for each bundle; none where any may.
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
        """Measure a unit on the first node while the others take part; what the first says."""
        remote = self._ray.remote
        place = remote(max_retries=0)(_meeting_place).options(**self._in(0, {})).remote()
        take_part = remote(max_retries=0)(_take_part_here)
        self.parts = [
            take_part.options(**self._in(number, bundle)).remote(dict(part), tick, place)
            for number, (part, bundle) in enumerate(
                zip(parts, self._bundles[1:], strict=True), start=1
            )
        ]
        measure = remote(max_retries=0)(_measure_together)
        whole = self._in(0, self._bundles[0])
        return measure.options(num_returns="streaming", **whole).remote(dict(task), tick, place)

    def failed(self, ready: Sequence[Any]) -> Exception | None:
        """Why a part came to its end before the unit did; None where none of these did."""
        for part in self.parts:
            if part in ready:
                try:
                    self._ray.get(part)
                except Exception as error:
                    return error
                return RuntimeError("a node takes part no longer")
        return None

    def end(self) -> None:
        """End the parts of all nodes, and let them go."""
        from ray.util import remove_placement_group

        parts, self.parts = self.parts, []
        for part in parts:
            self._quietly(lambda part=part: self._ray.cancel(part, force=True))
        self._quietly(lambda: remove_placement_group(self._group))

    def _quietly(self, do: Any) -> None:
        try:
            do()
        except Exception as error:  # its node is gone already
            _log.debug("ending a part", exc_info=error)

    def _in(self, number: int, bundle: Mapping[str, float]) -> dict[str, Any]:
        """Options of a task in one of the bundles."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        own = {name: value for name, value in bundle.items() if name != "CPU"}
        return {
            "num_cpus": bundle.get("CPU", 0),
            **({"resources": own} if own else {}),
            "scheduling_strategy": PlacementGroupSchedulingStrategy(
                self._group, placement_group_bundle_index=number
            ),
        }


def _meeting_place() -> str:
    """In a worker of the node that measures."""
    import ray

    return meeting_place(ray.util.get_node_ip_address())


def _measure_together(task: dict[str, Any], tick: float, place: str) -> Any:
    """In a worker of any of the nodes: its task, told where they meet."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    yield from ray_worker.measure(meeting_at(task, place), node, tick)


def _take_part_here(part: dict[str, Any], tick: float, place: str) -> None:
    """In a worker of each further node, which has nothing to say."""
    for _ in _measure_together(part, tick, place):
        pass
