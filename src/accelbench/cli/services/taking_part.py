"""`accelbench run --node-rank 1`: a machine that takes part in what machine 0 measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from accelbench.cli.display.terminal import print_line
from accelbench.core.cards import cards
from accelbench.core.errors import EXIT_ENVIRONMENT, EXIT_OK, UsageError
from accelbench.run.plan.request import Request
from accelbench.run.plan.run_settings import RunSettings


def take_part(
    request: Request,
    settings: RunSettings,
    typed: Mapping[str, Any],
    stream: IO[str],
) -> int:
    """This machine's processes of each group that machine 0 starts, until it starts none any more.

    Args:
        request: what is asked of all machines; a CPU is meant where no platform is named.
        settings: with how long it waits for a group before it ends, and where they meet.
        typed: which machine this is.
        stream: where it is told.

    Returns:
        The exit code: 0 where it has taken part in any group.

    Raises:
        UsageError: the runtime that was named has no processes on several machines.
    """
    from accelbench.runtimes.pytorch.distributed.taking_part import (
        MachinePart,
        groups_taken_part_in,
    )

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
        node=typed["node_rank"],
        rendezvous=settings.job.rendezvous or "",
        threads=settings.job.threads,
    )
    processes = "1 process" if part.processes == 1 else f"{part.processes} processes"
    print_line(
        f"Machine {part.node} of {part.nodes} takes part at {part.rendezvous} with"
        f" {processes}, until nothing was asked for {settings.timeout:g} s.",
        stream,
    )
    groups = 0
    for trouble in groups_taken_part_in(part, settings.timeout, settings.timeout):
        if trouble:
            print_line(f"A group ended early: {trouble}", stream)
        else:
            groups += 1
    print_line(f"Machine {part.node} took part in {groups} groups of processes.", stream)
    return EXIT_OK if groups else EXIT_ENVIRONMENT
