"""The services of `accelbench fleet`, and of `accelbench run --node-rank 1`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import IO, TYPE_CHECKING, Any

from accelbench.cli.services.run_request import AskedRun
from accelbench.cli.services.running import OutputPlaces, prepare
from accelbench.core.devices import cards
from accelbench.core.errors import EXIT_ENVIRONMENT, EXIT_OK, SurroundingsError, UsageError
from accelbench.core.formatting import format_value
from accelbench.core.run_options import RunSpec
from accelbench.exchange.result_file import to_row
from accelbench.fleet.fleet_nodes import FleetInventory, find_differences
from accelbench.fleet.fleet_record import find_unfinished
from accelbench.fleet.fleet_run import (
    FleetOptions,
    execute_on_cluster,
    plan_units,
    resume_on_cluster,
    wait_for_nodes,
)
from accelbench.fleet.session import FleetAddress
from accelbench.hardware.detect import stored_platforms
from accelbench.judge.process_spread import FEWEST_NODES, CaseSpread, Validation, validated
from accelbench.models.selection import choose
from accelbench.present.terminal.terminal import print_line
from accelbench.present.terminal.watch import FleetWatch, node_line
from accelbench.run.execute import fill
from accelbench.run.plan import expand
from accelbench.run.plan.request import Request

if TYPE_CHECKING:
    from accelbench.fleet.dispatch import DispatchRules
    from accelbench.run.conduct.lifecycle import PlannedRun, RunResult


def new_run(
    asked: AskedRun,
    where: FleetAddress,
    options: FleetOptions,
    places: OutputPlaces,
    stream: IO[str],
    quiet: bool,
) -> RunResult:
    """Plan for the nodes and run; the results are in the database when this returns."""
    watch = FleetWatch(stream, quiet)
    cluster = where.connect()

    def observe(spec: PlannedRun, inventory: FleetInventory, _: Mapping[str, Any]) -> FleetWatch:
        for note in spec.plan.notes:
            watch.note(note)
        for difference in find_differences(inventory.nodes):
            watch.note(f"nodes differ in {difference}")
        watch.begin(spec.settings.run_id, _results(spec, inventory, options), len(inventory.nodes))
        return watch

    planner = lambda *here: [prepare(asked, places, *here)]  # noqa: E731
    ((_, ended),) = execute_on_cluster(cluster, planner, places, observe, options, watch.note)
    return ended


def resume_run(
    fleet: str,
    where: FleetAddress,
    places: OutputPlaces,
    rules: DispatchRules,
    stream: IO[str],
    quiet: bool,
) -> RunResult:
    """Go on with a fleet's run that was cut off."""
    folder = places.journals()
    if fleet == "last":
        fleet = find_unfinished(folder) or ""
        if not fleet:
            raise UsageError(f"No fleet's run in {folder} was cut off.", "Start a new one.")
    watch = FleetWatch(stream, quiet)
    return resume_on_cluster(where.connect(), fleet, places, watch, rules, watch.begin)


def show_plan(
    asked: AskedRun,
    where: FleetAddress,
    options: FleetOptions,
    places: OutputPlaces,
    stream: IO[str],
    *,
    as_json: bool,
) -> None:
    """The nodes and the plan; nothing is measured."""
    notes: list[str] = []
    nodes = wait_for_nodes(where.connect(), notes.append)
    inventory = FleetInventory(nodes)
    spec = prepare(asked, places, inventory, expand.installed_runtimes())
    units = plan_units(nodes, spec.plan, spec.settings, spec.other, each=options.each)
    able = {unit.number: sum(n.offer.count_slots(unit.need) > 0 for n in nodes) for unit in units}
    if as_json:
        document = {
            "nodes": [node.name for node in nodes],
            "units": [
                {
                    "cases": [str(planned.case) for planned in unit.cases],
                    "hardware": str(unit.need),
                    "nodes": able[unit.number],
                }
                for unit in units
            ],
            "launches": spec.settings.launches,
            "notes": [*notes, *spec.plan.notes],
            "differences": [str(difference) for difference in find_differences(nodes)],
        }
        stream.write(json.dumps(document) + "\n")
        return
    for node in nodes:
        print_line(f"Node {node_line(node)}", stream)
    for text in (
        *notes,
        *spec.plan.notes,
        *(f"nodes differ in {d}" for d in find_differences(nodes)),
    ):
        print_line(f"Note: {text}", stream)
    for unit in units:
        for planned in unit.cases:
            why = unit.need.explain_shortage(able[unit.number])
            print_line(f"{unit.number + 1:4d}  {planned.case}{why and f': {why}'}", stream)
    cases = sum(len(unit.cases) for unit in units)
    print_line(f"{cases} cases in {len(units)} units, for {len(nodes)} nodes.", stream)


def _results(spec: PlannedRun, inventory: FleetInventory, options: FleetOptions) -> int:
    if not options.each:
        return sum(plan.results(how.launches) for _, plan, how in spec.arms)
    pinned = plan_units(inventory.nodes, spec.plan, spec.settings, spec.other, each=True)
    return sum((len(unit.cases) + len(unit.others)) * unit.launches for unit in pinned)


#: Products of matrices, and convolutions; one item, where starting operators counts, and many,
#: where arithmetic and memory do.
MODELS = ("bert-tiny", "resnet-tiny")
_BATCHES = (1, 32)
LABEL = "fleet validate"


def usual_work(
    models: Sequence[str], hardware: Sequence[str], runtimes: Sequence[str], launches: int
) -> AskedRun:
    """Return a request for two small models, or for named ones, with one item and with many."""
    request = Request(
        models=choose(models or MODELS),
        hardware=tuple(p for name in hardware for p in stored_platforms(name)),
        runtimes=tuple(runtimes),
        batch_sizes=_BATCHES,
    )
    return AskedRun(RunSpec(launches=launches, verify="off", label=LABEL), (request,))


def validate(
    where: FleetAddress,
    db: Path | None,
    asked: AskedRun | None,
    probes: Sequence[str] | None,
    threshold: float,
    *,
    as_json: bool,
    quiet: bool,
) -> Validation:
    """Measure on every node, and print which fall out of their kind.

    Every node measures `asked`, if any, and is probed on the platforms of `probes`, on all if that
    is empty, and not at all if it is None.
    """
    places = OutputPlaces(database=db, command=("accelbench", "fleet", "run"))
    stream = sys.stderr if as_json else sys.stdout
    spreads: list[CaseSpread] = []
    run_id = None
    if probes is not None:
        spreads += _probed(where, probes, places, threshold, stream, quiet).spreads
    if asked is not None:
        options = FleetOptions(each=True)
        ended = new_run(asked, where, options, places, stream, quiet)
        if ended.interrupted:
            raise KeyboardInterrupt
        run_id = ended.run_id
        spreads += validated([to_row(row) for row in ended.rows], threshold).spreads
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
    from accelbench.fleet.node_probes import probe_nodes
    from accelbench.judge.process_spread import probes_validated

    places.check()
    watch = FleetWatch(stream, quiet)
    probes = probe_nodes(where.connect(), hardware, places.journals(), watch)
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
    own, unit = spread.times, "ms"
    if spread.rates:
        own, unit = {n: rate / 1e9 for n, rate in spread.rates.items()}, f"G{spread.unit}"
    times = ", ".join(f"{node} {format_value(value)}" for node, value in own.items())
    nowhere = "nothing to judge by" if spread.unusable else "measured nowhere"
    middle = f"median {format_value(median(own.values()))} {unit}" if own else nowhere
    apart = "" if spread.spread is None else f", spread between machines {spread.spread:.1%}"
    fast = "".join(f"; {node} is {-over:.0%} faster" for node, over in spread.fast.items())
    failed = "".join(f"; {node} failed" for node in spread.failed)
    rough = "".join(f"; {node} {format_value(ms)} unusable" for node, ms in spread.unusable.items())
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


def take_part(asked: AskedRun, stream: IO[str]) -> int:
    """Take part in each group that machine 0 starts; return the exit code after the last one."""
    from accelbench.engines.pytorch.distributed.group import MachinePart, groups_taken_part_in

    request, spec = asked.requests[0], asked.spec
    how, platforms = request.distribution, request.hardware
    assert how is not None
    for name in request.runtimes:
        if name in cards() and not cards()[name].several_machines:
            raise UsageError(
                f"The {name} runtime shares a step among the devices of one machine.",
                "Leave out --nnodes and --node-rank, or use --framework pytorch.",
            )
    part = MachinePart(
        hardware=platforms[0].partition(":")[0] if platforms else "cpu",
        processes=how.processes // how.nodes,
        nodes=how.nodes,
        node=spec.node_rank or 0,
        rendezvous=spec.rendezvous or "",
        threads=spec.threads,
    )
    processes = "1 process" if part.processes == 1 else f"{part.processes} processes"
    print_line(
        f"Machine {part.node} of {part.nodes} takes part at {part.rendezvous} with"
        f" {processes}, until nothing was asked for {spec.timeout:g} s.",
        stream,
    )
    groups = 0
    for trouble in groups_taken_part_in(part, spec.timeout, spec.timeout):
        if trouble:
            print_line(f"A group ended early: {trouble}", stream)
        else:
            groups += 1
    print_line(f"Machine {part.node} took part in {groups} groups of processes.", stream)
    return EXIT_OK if groups else EXIT_ENVIRONMENT
