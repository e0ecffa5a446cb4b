"""Functions compiled ahead of the first step, each part timed; and XLA's own profile of them.

|trace: Python to jaxpr|lower: jaxpr to StableHLO|compile: XLA|
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax

from accelbench.core.clock import Clock
from accelbench.core.errors import UnsupportedError
from accelbench.core.precision import MIN_REQUESTED_SHARE, long_name
from accelbench.core.profile import OperatorTime, Profile, build_profile
from accelbench.engines.jax.lowering import Lowered
from accelbench.engines.shared.communication import Span, exchange_columns, shared
from accelbench.engines.shared.local import own, walls
from accelbench.store.files import create_temporary_folder

NAME = "XLA's profiler"
_TRACE = "trace.json"
_DEVICE = "/device:"
_REMARK = (
    "Times of the operations that XLA compiled, mostly fusions of several of the model's; on a"
    " CPU several may run at the same time."
)


class Event(NamedTuple):
    """An operation that ran."""

    thread: str
    start: float
    duration: float
    operation: str
    on_device: bool
    ordinal: int = 0  # of the device, where there are several


def profile(
    step: Callable[[], Any], clock: Clock, steps: int, device: str, traces: Path | None
) -> Profile:
    """Run steps, each done when it returns, under XLA's profiler.

    What XLA compiled is what runs: an operation is a fusion of what the model calls apart. JAX
    itself reads the record; TensorFlow is not needed.
    """
    with recorded(step, clock, steps) as (events, times, folder):
        report = build_profile(NAME, spent(events, device), times, _REMARK)
        chrome = next(folder.rglob("*.trace.json.gz"), None)
        if traces is None or chrome is None:
            return report
        (traces / _TRACE).write_bytes(gzip.decompress(chrome.read_bytes()))
        return replace(report, trace=_TRACE)


def readable() -> bool:
    """Return whether JAX reads what the profiler writes."""
    return hasattr(jax.profiler, "ProfileData")


@contextmanager
def recorded(
    step: Callable[[], Any], clock: Clock, steps: int
) -> Iterator[tuple[list[Event], list[int], Path]]:
    """Yield the operations of so many steps, the time of each step, and the record's folder."""
    if not readable():
        raise UnsupportedError(
            "no_profiler",
            f"jax {jax.__version__} cannot read what XLA's profiler writes",
            "Install a newer one: pip install -U jax",
        )
    with create_temporary_folder() as folder:
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0  # every Python call would be noted, at its cost
        with jax.profiler.trace(str(folder), profiler_options=options):
            times = walls(clock, steps, step)
        [record] = folder.rglob("*.xplane.pb")
        events = list(events_of(jax.profiler.ProfileData.from_file(str(record))))
        yield events, times, folder


def events_of(data: Any) -> Iterator[Event]:
    """Yield every operation of a record: XLA marks its own by the statistic hlo_op."""
    for plane in data.planes:
        for line in plane.lines:
            for event in line.events:
                stats = dict(event.stats)
                operation = stats.get("hlo_op")
                if operation:
                    yield Event(
                        f"{plane.name} {line.name}",
                        event.start_ns,
                        event.duration_ns,
                        str(operation),
                        plane.name.startswith(_DEVICE),
                        _ordinal(plane.name, stats),
                    )


def _ordinal(plane: str, stats: Mapping[str, Any]) -> int:
    # Of a processor's parts XLA says which with each event; a card has a plane of its own.
    told = stats.get("device_ordinal")
    if told is not None:
        return int(told)
    number = plane.rpartition(":")[2].partition(" ")[0]
    return int(number) if number.isdecimal() else 0


def spent(events: list[Event], device: str) -> Iterator[OperatorTime]:
    """Yield the times of operations; of a loop, without its body on the same thread.

    If a device tells of its operations, what the host did to start them is left out.
    """
    operations = [event for event in events if event.on_device] or events
    times = own([(event.thread, event.start, event.duration) for event in operations])
    for event, ns in zip(operations, times, strict=True):
        yield OperatorTime(event.operation, kind(event.operation), ns, where=device)


def kind(operation: str) -> str:
    """Return an operation's name without its number: loop_add_fusion.12 is a loop_add_fusion."""
    stem, _, number = operation.rpartition(".")
    return stem if stem and number.isdecimal() else operation


# -- collectives of programs for several devices

#: XLA's names of the operations by which devices exchange something.
_KINDS = (
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute",
    "collective-broadcast",
)  # fmt: skip
#: Where one is called in XLA's text: those that run beside others have a start and an end.
_COLLECTIVES_CALLED = re.compile(rf" ({'|'.join(_KINDS)})(?:-start)?\(")


def collectives_of(text: str) -> dict[str, int]:
    """Count the collectives of each kind in a program's text."""
    return dict(sorted(Counter(_COLLECTIVES_CALLED.findall(text)).items()))


def exchanged(step: Callable[[], Any], clock: Clock, steps: int, devices: int) -> dict[str, Any]:
    """Return what collectives take of so many steps: columns, and "ranks" with each device's own.

    There are no columns if this JAX cannot read what XLA's profiler writes. A `step` waits for
    its end; `devices` share it.
    """
    if not readable():
        return {"ranks": []}
    with recorded(step, clock, steps) as (events, times, _):
        wall = sum(times) / steps / 1e6
        ranks = [of_device(events, number, steps, wall) for number in range(devices)]
    return exchange_columns(ranks)


def of_device(events: Iterable[Event], number: int, steps: int, wall: float) -> dict[str, Any]:
    """Return what a device's collectives come to in a step, in milliseconds."""
    share = shared(_spans(event for event in events if event.ordinal == number))
    return {"device": number, **share.of_step(steps, wall, 1e6)}


def _spans(events: Iterable[Event]) -> Iterator[Span]:
    threads: dict[str, int] = {}
    for event in events:
        thread = threads.setdefault(event.thread, len(threads))
        kind = "xla:" if is_collective(event.operation) else "hlo::"
        end = event.start + event.duration
        yield Span(f"{kind}{event.operation}", thread, event.start, end)


def is_collective(operation: str) -> bool:
    """Return whether an operation is a collective, by its name: "all-reduce.3"."""
    return operation.startswith(_KINDS)


# -- programs
#
# A back end without arithmetic in a type puts conversions around each product: the program takes
# and gives bf16, and multiplies in f32. So does XLA on CPUs, with all of them. What counts is
# therefore what the products themselves read, in XLA's own text of the program.

#: XLA's names of what models are measured in, as everybody else has them.
_NAMES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}

_DEFINED = re.compile(r"^\s*(?:ROOT )?%?([\w.\-]+) = \(?(\w+)\[")
_PRODUCT = re.compile(r" (dot|convolution|ragged-dot)\(([^)]*)\)")
_CALLED = re.compile(r' custom-call\(([^)]*)\).*custom_call_target="([^"]*)"')
_LIBRARY = re.compile(r"gemm|matmul|conv|dot|cudnn\$f", re.IGNORECASE)
_NAME = re.compile(r"%([\w.\-]+)")


def multiplied_in(text: str) -> dict[str, float]:
    """Return the share of a program's products by the type of what they read, such as "float32"."""
    types: dict[str, str] = {}
    counted: Counter[str] = Counter()
    for line in text.splitlines():
        defined = _DEFINED.match(line)
        if defined is None:
            continue
        operands = _operands(line)
        if operands is not None:
            counted[_widest(operands, types, defined[2])] += 1
        # After its operands are looked up: a name of another computation may be the same.
        types[defined[1]] = defined[2]
    total = counted.total()
    return {_NAMES.get(name, name): count / total for name, count in sorted(counted.items())}


def _operands(line: str) -> list[str] | None:
    product = _PRODUCT.search(line)
    if product is not None:
        return _NAME.findall(product[2])
    called = _CALLED.search(line)
    if called is not None and _LIBRARY.search(called[2]):
        return _NAME.findall(called[1])
    return None


def _widest(operands: list[str], types: Mapping[str, str], result: str) -> str:
    known = [types[name] for name in operands[:2] if name in types]
    return max(known or [result], key=lambda name: int(re.sub(r"\D", "", name)[:2] or 0))


@dataclass(frozen=True)
class Program:
    """A function compiled for the shapes, and on the device, of its arguments."""

    run: Callable[..., Any]
    parts: dict[str, int]  # nanoseconds of trace, lower, compile; of export, where torch's was
    flops: float | None
    multiplied_in: dict[str, float]
    collectives: dict[str, int]  # by kind; of several devices

    @property
    def compile_ns(self) -> int:
        """Return what JAX itself took: exporting is torch's, and the price of coming from there."""
        return sum(ns for part, ns in self.parts.items() if part != "export")


@dataclass
class Programs:
    """The programs of a session, each kind of step once for the same shapes."""

    clock: Clock
    precision: str
    count: int = 0
    total_ns: int = 0  # with what torch took to export
    _made: dict[Hashable, tuple[Program, Lowered]] = field(default_factory=dict)

    def known(self, key: Hashable) -> tuple[Program, Lowered] | None:
        return self._made.get(key)

    def get(
        self,
        key: Hashable,
        lowered: Callable[[], Lowered],
        function: Callable[[Lowered], Callable[..., Any]],
        arguments: Callable[[Lowered], tuple[Any, ...]],
        donated: tuple[int, ...] = (),
        left: Callable[[tuple[Any, ...]], Any] = lambda _: None,
    ) -> tuple[Program, Lowered]:
        """Return the program of a key and what its graph was lowered to; make it if it is missing.

        The program may write its results over the arguments `donated`; `left` returns where results
        have to lie, None leaves that to XLA. Raises UnsupportedError if there is no graph, or the
        program multiplies mostly in another type.
        """
        entry = self._made.get(key)
        if entry is None:
            start = self.clock.now_ns()
            low = lowered()
            exported = self.clock.now_ns()
            given = arguments(low)
            jitted = _jitted(function(low), donated, left(given))
            program = self._compiled(jitted, given, exported - start)
            del given
            self.count += 1
            self.total_ns += self.clock.now_ns() - start
            entry = self._made[key] = (program, low.compiled())
        return entry

    def _compiled(self, jitted: Any, arguments: tuple[Any, ...], export_ns: int) -> Program:
        now = self.clock.now_ns
        start = now()
        traced = jitted.trace(*arguments)
        was_traced = now()
        lowered = traced.lower()
        was_lowered = now()
        run = lowered.compile()
        done = now()
        text = run.as_text() or ""
        shares = multiplied_in(text)
        self._refuse(shares)
        return Program(
            run=run,
            parts={
                "export": export_ns,
                "trace": was_traced - start,
                "lower": was_lowered - was_traced,
                "compile": done - was_lowered,
            },
            flops=_flops(run),
            multiplied_in=shares,
            collectives=collectives_of(text),
        )

    def _refuse(self, shares: dict[str, float]) -> None:
        share = shares.get(long_name(self.precision), 0.0)
        if shares and share < MIN_REQUESTED_SHARE:
            most = max(shares, key=lambda name: shares[name])
            raise UnsupportedError(
                "precision_upcast",
                f"of this model's products XLA compiled {share:.0%} in {self.precision} and"
                f" {shares[most]:.0%} in {most}, with conversions around them",
                "Use --precision fp32, or --framework pytorch.",
            )

    def forget(self) -> None:
        self._made.clear()


def _jitted(function: Callable[..., Any], donated: tuple[int, ...], left: Any) -> Any:
    if left is None:
        return jax.jit(function, donate_argnums=donated)
    return jax.jit(function, donate_argnums=donated, out_shardings=left)


def _flops(run: Any) -> float | None:
    # Not every back end counts what it compiled.
    try:
        cost = run.cost_analysis()
    except Exception:
        return None
    cost = cost[0] if isinstance(cost, list) and cost else cost
    flops = cost.get("flops") if isinstance(cost, dict) else None
    return float(flops) if flops is not None and flops > 0 else None
