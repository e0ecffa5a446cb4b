"""Spread of probes between machines: what nodes of one kind compute, move and launch.

Of a node count the best matrix product and attention of each precision, the best bandwidth of
memory and of each cache, and the shortest launch: a limit of the device is what its best size
shows. Each is compared with its kind as the time that a step takes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from accelbench.core.calibration import DeviceCalibration, ProbeFigure, ProbeKind
from accelbench.fleet.node_probes import NodeProbes
from accelbench.judge.process_spread import CaseSpread, Validation

_BY_PRECISION = (ProbeKind.MATRIX, ProbeKind.ATTENTION)
#: What stands for all probes of a device that has none.
_ALL = "probes"


def probes_validated(probes: Iterable[NodeProbes], threshold: float) -> Validation:
    """Hold nodes of one kind against each other by their probes.

    Args:
        probes: of each platform of each node.
        threshold: how much slower than its kind a bad node is at least.
    """
    kinds: dict[tuple[str, str], list[NodeProbes]] = defaultdict(list)
    for each in probes:
        kinds[each.device.fingerprint, each.device.name].append(each)
    return Validation(
        tuple(
            spread
            for (_, device), nodes in sorted(kinds.items(), key=lambda entry: entry[0])
            for spread in _of_kind(device, nodes, threshold)
        )
    )


def _of_kind(device: str, nodes: list[NodeProbes], threshold: float) -> Iterator[CaseSpread]:
    figures = {
        each.node: dict(limits_of(each.calibration)) if each.calibration else {} for each in nodes
    }
    failed = {each.node: each.why for each in nodes if each.calibration is None}
    names = list(dict.fromkeys(name for found in figures.values() for name in found))
    hardware = nodes[0].device.hardware
    for name in names:
        own = {node: found[name] for node, found in sorted(figures.items()) if name in found}
        lacking = {
            node: "it was not timed there"
            for node, found in figures.items()
            if found and name not in found
        }
        is_launch = next(iter(own.values())).spec.kind is ProbeKind.LAUNCH
        yield CaseSpread(
            f"{name} on {hardware}",
            device,
            {node: step_ms(figure) for node, figure in own.items()},
            lacking | failed,
            threshold,
            {} if is_launch else {node: figure.value for node, figure in own.items()},
            "" if is_launch else next(iter(own.values())).spec.unit,
        )
    if not names:
        yield CaseSpread(f"{_ALL} on {hardware}", device, {}, failed, threshold)


def limits_of(calibration: DeviceCalibration) -> Iterator[tuple[str, ProbeFigure]]:
    """The figures that a device is compared with its kind by, with what they are called."""
    for kind in ProbeKind:
        if kind in _BY_PRECISION:
            for precision in calibration.precisions(kind):
                best = calibration.best(kind, precision)
                if best is not None:
                    yield f"{kind} {precision}", best
        elif kind is ProbeKind.CACHE:
            for figure in calibration.figures:
                if figure.spec.kind is kind:
                    yield figure.spec.name.removeprefix("probe/").replace("-", " "), figure
        elif (best := calibration.best(kind)) is not None:
            yield ("memory bandwidth" if kind is ProbeKind.MEMORY else "launch overhead"), best


def step_ms(figure: ProbeFigure) -> float:
    """What a step takes, in ms: of a rate, that of a million million operations or bytes."""
    if figure.spec.kind is ProbeKind.LAUNCH:
        return figure.value * 1e3
    return 1e15 / figure.value
