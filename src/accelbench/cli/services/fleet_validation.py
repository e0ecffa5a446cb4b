"""What `accelbench fleet validate` does: a short plan on every node, held against its kind."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accelbench.analysis.node_spread import FEWEST_NODES, CaseSpread, Validation, validated
from accelbench.catalog.selection import choose
from accelbench.cli.display.terminal import print_line
from accelbench.cli.display.words import figure
from accelbench.cli.services.fleet_running import new_run
from accelbench.cli.services.running import OutputPlaces, RunOptions
from accelbench.core.errors import SurroundingsError
from accelbench.exchange.rows import row_of
from accelbench.hardware.names import platforms_named
from accelbench.run.fleet.fleet_address import FleetAddress
from accelbench.run.fleet.fleet_execute import FleetOptions
from accelbench.run.plan.request import Request
from accelbench.run.plan.run_settings import RunSettings

#: Products of matrices, and convolutions; one item, where starting operators counts, and many,
#: where arithmetic and memory do.
MODELS = ("bert-tiny", "resnet-tiny")
_BATCHES = (1, 32)
LABEL = "fleet validate"


def validate(
    where: FleetAddress,
    db: Path | None,
    models: Sequence[str],
    hardware: Sequence[str],
    runtimes: Sequence[str],
    launches: int,
    threshold: float,
    *,
    as_json: bool,
    quiet: bool,
) -> Validation:
    """Measure on every node, and print which fall out of their kind.

    Raises:
        SurroundingsError: nothing was measured, or it was interrupted.
    """
    request = Request(
        models=choose(models or MODELS),
        hardware=tuple(p for name in hardware for p in platforms_named(name)),
        runtimes=tuple(runtimes),
        batch_sizes=_BATCHES,
    )
    how = RunOptions(RunSettings(launches=launches, verify="off"), label=LABEL)
    places = OutputPlaces(database=db, command=("accelbench", "fleet", "run"))
    stream = sys.stderr if as_json else sys.stdout
    options = FleetOptions(each=True)
    ended = new_run((request,), how, where, options, places, stream, quiet)
    if ended.interrupted:
        raise KeyboardInterrupt
    verdict = validated([row_of(row) for row in ended.rows], threshold)
    if not any(spread.times for spread in verdict.spreads):
        raise SurroundingsError(
            "No node has measured anything.", "Each result above says why; accelbench doctor helps."
        )
    if as_json:
        sys.stdout.write(json.dumps(_document(ended.run_id, verdict)) + "\n")
    else:
        _print(verdict, quiet=quiet)
    return verdict


def _print(verdict: Validation, *, quiet: bool) -> None:
    if not quiet:
        print_line(stream=sys.stdout)
        for spread in verdict.spreads:
            print_line(_line(spread), sys.stdout)
    for node, reasons in verdict.bad.items():
        print_line(f"{node} falls out of its kind:", sys.stdout)
        for reason in reasons:
            print_line(f"  {reason}", sys.stdout)
    if verdict.open:
        few = "a node is alone of its kind, or two differ and either may be the odd one"
        text = f"Can't tell for {len(verdict.open)} of {len(verdict.spreads)}: {few}."
        print_line(f"{text} {FEWEST_NODES} nodes of a kind are the least.", sys.stdout)
    elif not verdict.bad:
        print_line("Every node measures as its kind does.", sys.stdout)


def _line(spread: CaseSpread) -> str:
    """A case, its median and the spread between machines."""
    times = ", ".join(f"{node} {figure(time)}" for node, time in spread.times.items())
    middle = "" if spread.middle is None else f"median {figure(spread.middle)} ms"
    apart = "" if spread.spread is None else f", spread between machines {spread.spread:.1%}"
    fast = "".join(f"; {node} is {-over:.0%} faster" for node, over in spread.fast.items())
    failed = "".join(f"; {node} failed" for node in spread.failed)
    return f"{spread.case} on {spread.device}: {middle}{apart} ({times}){fast}{failed}"


def _document(fleet: str, verdict: Validation) -> dict[str, Any]:
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
                "slower": spread.slow,
                "faster": spread.fast,
                "failed": dict(spread.failed),
            }
            for spread in verdict.spreads
        ],
    }
