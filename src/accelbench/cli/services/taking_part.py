"""`accelbench run --node-rank 1`: a machine that takes part in what machine 0 measures."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import IO, Any

from accelbench.cli.display.terminal import print_line
from accelbench.core.cards import cards
from accelbench.core.errors import EXIT_ENVIRONMENT, EXIT_OK, UsageError
from accelbench.hardware.machine import threads_of_each
from accelbench.run.plan.request import Request
from accelbench.run.plan.run_settings import RunSettings

#: Between two tries to meet a machine that is not there yet.
_PAUSE_SECONDS = 1.0


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
    from accelbench.runtimes.pytorch.distributed.group import ONE_RUN
    from accelbench.runtimes.pytorch.distributed.group import take_part as once
    from accelbench.runtimes.pytorch.distributed.launch import RankLaunch, backend_of

    how, platforms = request.distribution, request.hardware
    assert how is not None
    for name in request.runtimes:
        if name in cards() and not cards()[name].several_machines:
            raise UsageError(
                f"The {name} runtime shares a step among the devices of one machine.",
                "Leave out --nnodes and --node-rank, or use --framework pytorch.",
            )
    node, patience, threads = typed["node_rank"], settings.timeout, settings.job.threads
    place = settings.job.rendezvous or ""
    hardware = platforms[0].partition(":")[0] if platforms else "cpu"
    here = how.processes // how.nodes
    processes = "1 process" if here == 1 else f"{here} processes"
    groups, last = 0, time.monotonic()
    print_line(
        f"Machine {node} of {how.nodes} takes part at {place} with"
        f" {processes}, until nothing was asked for {patience:g} s.",
        stream,
    )
    while (left := patience - (time.monotonic() - last)) > 0:
        launch = RankLaunch(
            run_id=ONE_RUN,
            here=here,
            backend=backend_of(hardware),
            threads=threads_of_each(threads, here),
            seconds=left,
            collective_seconds=patience,
            nodes=how.nodes,
            node=node,
            rendezvous=place,
        )
        trouble = once(launch)
        if trouble is None:
            groups, last = groups + 1, time.monotonic()
        elif trouble.startswith("rank "):
            print_line(f"A group ended early: {trouble}", stream)
            last = time.monotonic()
        else:
            time.sleep(_PAUSE_SECONDS)
    print_line(f"Machine {node} took part in {groups} groups of processes.", stream)
    return EXIT_OK if groups else EXIT_ENVIRONMENT
