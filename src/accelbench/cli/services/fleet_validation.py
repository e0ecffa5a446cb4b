"""What `accelbench fleet validate` does: the same work on every node, compared with its kind."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import IO, Any

from accelbench.analysis.node_spread import FEWEST_NODES, CaseSpread, Validation, validated
from accelbench.catalog.selection import choose
from accelbench.cli.display.fleet import FleetWatch
from accelbench.cli.display.terminal import print_line
from accelbench.cli.display.words import figure
from accelbench.cli.services.fleet_running import new_run
from accelbench.cli.services.running import OutputPlaces, RunOptions
from accelbench.core.errors import SurroundingsError
from accelbench.exchange.rows import row_of
from accelbench.hardware.names import platforms_named
from accelbench.run.execute import fill
from accelbench.run.fleet.fleet_address import FleetAddress
from accelbench.run.fleet.fleet_execute import FleetOptions
from accelbench.run.plan.request import Request
from accelbench.run.plan.run_settings import RunSettings

#: Products of matrices, and convolutions; one item, where starting operators counts, and many,
#: where arithmetic and memory do.
MODELS = ("bert-tiny", "resnet-tiny")
_BATCHES = (1, 32)
LABEL = "fleet validate"


@dataclass(frozen=True)
class ValidationWork:
    """What nodes are compared with each other by.

    Attributes:
        requests: models that every node measures; none: no model.
        how: how the run of them goes about it.
        probes: platforms that every node is calibrated on, all that it has where it is empty;
            None: no probe.
    """

    requests: tuple[Request, ...]
    how: RunOptions
    probes: tuple[str, ...] | None = None


def usual_work(
    models: Sequence[str], hardware: Sequence[str], runtimes: Sequence[str], launches: int
) -> tuple[tuple[Request, ...], RunOptions]:
    """Two small models, or those that are named, with one item and with many."""
    request = Request(
        models=choose(models or MODELS),
        hardware=tuple(p for name in hardware for p in platforms_named(name)),
        runtimes=tuple(runtimes),
        batch_sizes=_BATCHES,
    )
    return (request,), RunOptions(RunSettings(launches=launches, verify="off"), label=LABEL)


def validate(
    where: FleetAddress,
    db: Path | None,
    work: ValidationWork,
    threshold: float,
    *,
    as_json: bool,
    quiet: bool,
) -> Validation:
    """Measure on every node, and print which fall out of their kind.

    Raises:
        SurroundingsError: nothing was measured, or it was interrupted.
    """
    places = OutputPlaces(database=db, command=("accelbench", "fleet", "run"))
    stream = sys.stderr if as_json else sys.stdout
    spreads: list[CaseSpread] = []
    run_id = None
    if work.probes is not None:
        spreads += _probed(where, work.probes, places, threshold, stream, quiet).spreads
    if work.requests:
        options = FleetOptions(each=True)
        ended = new_run(work.requests, work.how, where, options, places, stream, quiet)
        if ended.interrupted:
            raise KeyboardInterrupt
        run_id = ended.run_id
        spreads += validated([row_of(row) for row in ended.rows], threshold).spreads
    verdict = Validation(tuple(spreads))
    if not any(spread.times or spread.unusable for spread in verdict.spreads):
        why = {reason for spread in spreads for reason in spread.failed.values()}
        raise SurroundingsError(
            "No node has measured anything.",
            "; ".join(sorted(why)) or "Each result above says why; accelbench doctor helps.",
        )
    if as_json:
        sys.stdout.write(json.dumps(_document(run_id, verdict)) + "\n")
    else:
        _print(verdict, quiet=quiet)
    return verdict


def _probed(
    where: FleetAddress,
    hardware: Sequence[str],
    places: OutputPlaces,
    threshold: float,
    stream: IO[str],
    quiet: bool,
) -> Validation:
    """Calibrate every node; the calibrations are stored."""
    from accelbench.analysis.probe_spread import probes_validated
    from accelbench.run.fleet.node_probes import probe_nodes

    places.check()
    watch = FleetWatch(stream, quiet)
    probes = probe_nodes(where.connected(), hardware, places.journals(), watch)
    fill(places, watch.note)
    return probes_validated(probes, threshold)


def _print(verdict: Validation, *, quiet: bool) -> None:
    if not quiet:
        print_line(stream=sys.stdout)
        for spread in verdict.spreads:
            print_line(_line(spread), sys.stdout)
    for node, reasons in verdict.bad.items():
        print_line(f"{node} falls out of its kind:", sys.stdout)
        for reason in reasons:
            print_line(f"  {reason}", sys.stdout)
    total = len(verdict.spreads)
    noisy = [spread for spread in verdict.open if spread.unusable]
    if noisy:
        nodes = ", ".join(sorted({node for spread in noisy for node in spread.unusable}))
        why = ", or ".join(sorted({w for spread in noisy for w in spread.why_unusable.values()}))
        print_line(
            f"Can't tell for {len(noisy)} of {total}: times of {nodes} are unusable: {why}."
            " Measure while nothing else runs there, or with more --launches.",
            sys.stdout,
        )
    if few := len(verdict.open) - len(noisy):
        print_line(
            f"Can't tell for {few} of {total}: a node is alone of its kind, or two differ and"
            f" either may be the odd one. {FEWEST_NODES} nodes of a kind are the least.",
            sys.stdout,
        )
    if not verdict.open and not verdict.bad:
        print_line("Every node measures as its kind does.", sys.stdout)


def _line(spread: CaseSpread) -> str:
    """A case or a probe, its median and the spread between machines."""
    own, unit = spread.times, "ms"
    if spread.rates:
        own, unit = {n: rate / 1e9 for n, rate in spread.rates.items()}, f"G{spread.unit}"
    times = ", ".join(f"{node} {figure(value)}" for node, value in own.items())
    nowhere = "nothing to judge by" if spread.unusable else "measured nowhere"
    middle = f"median {figure(median(own.values()))} {unit}" if own else nowhere
    apart = "" if spread.spread is None else f", spread between machines {spread.spread:.1%}"
    fast = "".join(f"; {node} is {-over:.0%} faster" for node, over in spread.fast.items())
    failed = "".join(f"; {node} failed" for node in spread.failed)
    rough = "".join(f"; {node} {figure(ms)} unusable" for node, ms in spread.unusable.items())
    of_each = f" ({times})" if times else ""
    return f"{spread.case} on {spread.device}: {middle}{apart}{of_each}{rough}{fast}{failed}"


def _document(fleet: str | None, verdict: Validation) -> dict[str, Any]:
    return {
        "run_id": fleet,
        "bad": verdict.bad,
        "cannot_tell": [spread.case for spread in verdict.open],
        "cases": [
            {
                "case": spread.case,
                "device": spread.device,
                "median_ms": spread.middle,
                "spread": spread.spread,
                "nodes_ms": dict(spread.times),
                **({"unit": spread.unit, "nodes": dict(spread.rates)} if spread.rates else {}),
                "slower": spread.slow,
                "faster": spread.fast,
                "failed": dict(spread.failed),
                "unusable_ms": dict(spread.unusable),
            }
            for spread in verdict.spreads
        ],
    }
