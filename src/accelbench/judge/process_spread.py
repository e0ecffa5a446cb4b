"""Ranks of a distributed step: what the evidence of a result has of each process. Pure.

Spread between machines: the same cases on nodes of one kind, and which node falls out of it.

A kind is a device's fingerprint. A node's time of a case is the median of its launches; of three
nodes or more, one falls out that is slower than the median of its kind by more than a threshold
and by more than three deviations, estimated from the median of absolute deviations, which one bad
node does not move. Of two nodes that differ, neither is known to be right. A node by whose launches
nothing may be judged (`RunMeasurement.is_usable`) is neither fine nor bad.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import TYPE_CHECKING

from accelbench.core.axes import AXES
from accelbench.core.calibration import DeviceCalibration, ProbeKind, ProbeResult
from accelbench.core.columns import step_ms
from accelbench.core.facts import PART_SEPARATOR
from accelbench.core.rows import Json, Row, number, record, text
from accelbench.core.unusable_reasons import why_unusable
from accelbench.core.vocabulary import MIB, Mode, Status
from accelbench.evidence.launches import launches_of
from accelbench.evidence.measurements import RunMeasurement, merge_groups

if TYPE_CHECKING:
    from accelbench.fleet.node_probes import NodeProbes


@dataclass(frozen=True)
class RankFigures:
    """What one rank took; None is what its result does not know.

    Of several devices of one process each is one: a device's steps are not timed by themselves, and
    of a processor its memory is not its own.

    Attributes:
        rank: its number.
        host: the machine that it ran on.
        device: the device as the engine names it.
        threads: of its own.
        step_ms: its median step, up to its own end: it has waited for the others' gradients.
        memory_mb: its peak: the device's where it has a device of its own, else the process's.
        communication_ms: of a profiled step, while a collective was under way.
        exposed_ms: of that time, while nothing was computed.
        profiled_ms: what the profiled step took.
    """

    rank: int
    host: str
    device: str
    threads: int | None
    step_ms: float | None
    memory_mb: float | None
    communication_ms: float | None
    exposed_ms: float | None
    profiled_ms: float | None

    @property
    def known(self) -> bool:
        """Whether it has any figure of its own."""
        times = (self.step_ms, self.communication_ms, self.profiled_ms)
        return any(figure is not None for figure in (*times, self.memory_mb))

    @property
    def work_ms(self) -> float | None:
        """The profiled step without exposed communication: what tells a slow rank.

        Steps of all ranks take as long as the slowest, which the others wait for.
        """
        if self.profiled_ms is None or self.exposed_ms is None:
            return None
        return self.profiled_ms - self.exposed_ms


def ranks_of(row: Row) -> list[RankFigures]:
    """The ranks of a result, by its evidence; none where it has none of them."""
    together = record(record(record(row, "evidence"), "details"), "distributed")
    exchanged = [*_objects(together, "communication")]
    ranks = []
    for place, facts in enumerate(_objects(together, "ranks")):
        profiled: Json = exchanged[place] if place < len(exchanged) else {}
        on_device = number(facts, "device_memory_peak_bytes")
        threads = number(facts, "threads")
        ranks.append(
            RankFigures(
                rank=int(number(facts, "rank") or place),
                host=text(facts, "host"),
                device=text(facts, "device"),
                threads=None if threads is None else int(threads),
                step_ms=number(facts, "step_ms"),
                memory_mb=(
                    number(facts, "host_memory_peak_mb") if on_device is None else on_device / MIB
                ),
                communication_ms=number(profiled, "communication_ms"),
                exposed_ms=number(profiled, "exposed_ms"),
                profiled_ms=number(profiled, "wall_ms"),
            )
        )
    return ranks


def _objects(whole: Json, name: str) -> Iterator[Json]:
    members = whole.get(name)
    for member in members if isinstance(members, Sequence) else ():
        if isinstance(member, Mapping):
            yield member


@dataclass(frozen=True)
class StepParts:
    """A profiled step in three parts that add up to it, the mean of the ranks, in milliseconds."""

    computation: float  # no collective under way
    overlapped: float  # a collective under way, and an operator computed
    exposed: float  # a collective under way, and nothing computed

    @property
    def step(self) -> float:
        """All of it."""
        return self.computation + self.overlapped + self.exposed


def step_parts(rows: Sequence[Row]) -> StepParts | None:
    """The parts of a step, the mean over launches; None where none was profiled."""
    parts = [known for row in rows if (known := _parts(row)) is not None]
    if not parts:
        return None
    return StepParts(
        fmean(part.computation for part in parts),
        fmean(part.overlapped for part in parts),
        fmean(part.exposed for part in parts),
    )


def _parts(row: Row) -> StepParts | None:
    communication, share = number(row, "communication_ms"), number(row, "communication_share")
    exposed = number(row, "exposed_communication_ms")
    if not communication or not share or exposed is None:
        return None
    return StepParts(communication / share - communication, communication - exposed, exposed)


#: Nodes of a kind below which none can be told to be the odd one.
FEWEST_NODES = 3
#: The median of absolute deviations of a normal distribution, times this, is its deviation.
_SCALE = 1.4826
_DEVIATIONS = 3.0
#: Columns that plans may differ in, beside sizes and options.
_COUNTS = {"threads": "threads", "world_size": "together"}


@dataclass(frozen=True)
class CaseSpread:
    """One case on the nodes of one kind.

    Attributes:
        case: as people read it.
        device: the kind's, as its detector names it.
        times: ms of a step by node; nodes where it failed have none.
        failed: nodes where it failed, with the reason.
        threshold: how much slower is too slow.
        rates: the same of a probe as people know it, by node: operations or bytes a second.
        unit: of the rates.
        unusable: ms by node where most launches are unusable: shown, and not judged.
        why_unusable: the reason by such a node, as the end of a sentence.
    """

    case: str
    device: str
    times: Mapping[str, float]
    failed: Mapping[str, str]
    threshold: float
    rates: Mapping[str, float] = field(default_factory=dict)
    unit: str = ""
    unusable: Mapping[str, float] = field(default_factory=dict)
    why_unusable: Mapping[str, str] = field(default_factory=dict)

    @property
    def middle(self) -> float | None:
        """The median over nodes."""
        return median(self.times.values()) if self.times else None

    @property
    def spread(self) -> float | None:
        """How far the slowest node is from the fastest, as a share of the median."""
        if len(self.times) < 2 or not self.middle:
            return None
        return (max(self.times.values()) - min(self.times.values())) / self.middle

    @property
    def slow(self) -> dict[str, float]:
        """Nodes that fall out, with how much slower than the median they are."""
        if len(self.times) < FEWEST_NODES:
            return {}
        return {node: over for node, over in self._over().items() if over > self._limit}

    @property
    def fast(self) -> dict[str, float]:
        """Nodes that are as far from the median on the other side: no fault, but not their kind."""
        if len(self.times) < FEWEST_NODES:
            return {}
        return {node: over for node, over in self._over().items() if over < -self._limit}

    @property
    def undecided(self) -> bool:
        """Whether nodes differ, or one is alone or unsteady, and nothing says which is right."""
        if self.unusable:
            return True
        if len(self.times) >= FEWEST_NODES:
            return False
        return len(self.times) < 2 or (self.spread or 0.0) > self.threshold

    def _over(self) -> dict[str, float]:
        middle = self.middle
        assert middle
        return {node: time / middle - 1.0 for node, time in self.times.items()}

    @property
    def _limit(self) -> float:
        deviation = _SCALE * median(abs(over) for over in self._over().values())
        return max(self.threshold, _DEVIATIONS * deviation)


@dataclass(frozen=True)
class Validation:
    """What nodes came to."""

    spreads: tuple[CaseSpread, ...]

    @property
    def bad(self) -> dict[str, list[str]]:
        """Nodes that fall out of their kind, with why."""
        found: dict[str, list[str]] = defaultdict(list)
        for spread in self.spreads:
            for node, over in spread.slow.items():
                found[node].append(f"{spread.case}: {over:.0%} slower than the median of its kind")
            if spread.times or spread.unusable:
                for node, reason in spread.failed.items():
                    found[node].append(f"{spread.case}: failed there alone: {reason}")
        return dict(sorted(found.items()))

    @property
    def open(self) -> list[CaseSpread]:
        """What could not be told."""
        return [spread for spread in self.spreads if spread.undecided]


def validated(rows: Iterable[Row], threshold: float) -> Validation:
    """Hold nodes of one kind against each other.

    Args:
        rows: results of a fleet's run in which every node measured every case.
        threshold: how much slower than its kind a bad node is at least.
    """
    launches: dict[tuple[str, str, str], dict[str, list[Row]]] = defaultdict(dict)
    failed: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for row in launches_of(rows):
        node = str(row["run_id"]).partition(PART_SEPARATOR)[2]
        if not node or row["status"] == Status.SKIPPED:
            continue  # what was not tried, as for want of budget, says nothing of its node
        key = (str(row["device_fingerprint"]), str(row["device_name"]), _case(row))
        if row["status"] == "ok" and step_ms(row) is not None:
            launches[key].setdefault(node, []).append(row)
        else:
            failed[key][node] = str(row.get("message") or row.get("reason"))
    places = [(key, node) for key, nodes in launches.items() for node in nodes]
    found = merge_groups([launches[key][node] for key, node in places])
    known: dict[tuple[str, str, str], dict[str, RunMeasurement]] = defaultdict(dict)
    for (key, node), measurement in zip(places, found, strict=True):
        known[key][node] = measurement
    return Validation(
        tuple(
            CaseSpread(
                case,
                device,
                _times(known[key], judged=True),
                failed[key],
                threshold,
                unusable=_times(known[key], judged=False),
                why_unusable={
                    node: why_unusable(one.launches)
                    for node, one in known[key].items()
                    if not one.is_usable
                },
            )
            for key in sorted({*launches, *failed})
            for _, device, case in (key,)
        )
    )


def _times(known: Mapping[str, RunMeasurement], *, judged: bool) -> dict[str, float]:
    """Of each node that may be judged by its launches, or may not: their median, in ms."""
    return {
        node: median(step_ms(row) or 0.0 for row in one.rows)
        for node, one in sorted(known.items())
        if one.is_usable is judged
    }


def _case(row: Row) -> str:
    """All that tells a case from the others of a plan."""
    words = [
        f"{row['model']} {row['runtime']}/{row['hardware']} {row['precision']}",
        "" if row.get("mode") in (None, Mode.INFERENCE) else str(row["mode"]),
        f"batch {row['batch_size']}",
        *(axis.label.format(row[axis.column]) for axis in AXES if row.get(axis.column) is not None),
        *(
            f"{row[name]} {noun}"
            for name, noun in _COUNTS.items()
            if row.get(name) not in (None, 1)
        ),
        *(f"{name}={value}" for name, value in sorted(record(row, "options").items())),
    ]
    return " ".join(word for word in words if word)


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
            {node: probe_ms(figure) for node, figure in own.items()},
            lacking | failed,
            threshold,
            {} if is_launch else {node: figure.value for node, figure in own.items()},
            "" if is_launch else next(iter(own.values())).spec.unit,
        )
    if not names:
        yield CaseSpread(f"{_ALL} on {hardware}", device, {}, failed, threshold)


def limits_of(calibration: DeviceCalibration) -> Iterator[tuple[str, ProbeResult]]:
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


def probe_ms(figure: ProbeResult) -> float:
    """What a step takes, in ms: of a rate, that of a million million operations or bytes."""
    if figure.spec.kind is ProbeKind.LAUNCH:
        return figure.value * 1e3
    return 1e15 / figure.value
