"""Trial: sixty cases on three nodes of a Ray cluster on this machine, of which one is killed, one
freezes for a while and one is cut off from the network.

The nodes are started by `accelbench fleet`; the third is in a network namespace of its own, whose
link goes down (without the right to make one, its processes are stopped instead). Cases are of
the scripted runtime, whose steps sleep, so that three nodes do not share out two CPUs. First all
goes well: kept is what the fleet takes beside the cases, as a share of the sum of their times.
Then the nodes are struck, and every case has to end once, none lost, none doubled.

    python benchmarks/fleet_trial.py  [--models 20] [--iterations 600]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

from accelbench.models.find import every_model
from keeping import keep, verdict

OVERHEAD = 0.05
_NAMESPACE = "accelbench-trial"
_LINK, _PEER = "abtrial0", "abtrial1"
_HERE, _THERE = "10.199.77.1", "10.199.77.2"
_BATCHES = "1,2,3"
_FROZEN_SECONDS = 25.0
_CUT_SECONDS = 90.0
_SILENCE = "15s"


@dataclass
class Trial:
    """A fleet with its state in a folder, and its nodes by number."""

    folder: Path
    host: str
    port: int
    nodes: list[list[psutil.Process]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        return kept | {
            "XDG_STATE_HOME": str(self.folder / "state"),
            "ACCELBENCH_SCRIPT": str(self.folder / "script.json"),
        }

    def fleet(self, *words: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        command = [*before, sys.executable, "-m", "accelbench", "fleet", *words]
        ended = subprocess.run(
            command, env=self.environment, cwd=self.folder, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if ended.returncode:
            raise SystemExit(f"{' '.join(command)}\n{ended.stderr}")
        return ended

    def join(self, host: str, before: tuple[str, ...] = ()) -> None:
        """Let a node join; its processes are those that were not written down before."""
        self.fleet("join", f"{self.host}:{self.port}", "--host", host, before=before)
        path = self.folder / "state" / "accelbench" / "fleet" / "started.json"
        entry = json.loads(path.read_text())[-1]
        self.nodes.append([psutil.Process(number) for number, _ in entry["processes"]])

    def family(self, number: int) -> list[psutil.Process]:
        """The processes of a node, and all that these have started."""
        found: dict[int, psutil.Process] = {}
        for process in self.nodes[number]:
            with suppress(psutil.Error):
                for each in (process, *process.children(recursive=True)):
                    found[each.pid] = each
        return list(found.values())

    def send(self, number: int, what: signal.Signals) -> None:
        for process in self.family(number):
            with suppress(psutil.Error):
                process.send_signal(what)


@contextmanager
def network() -> Iterator[bool]:
    """A network namespace with a link to this one; False where there may be none."""
    made = [
        f"ip netns add {_NAMESPACE}",
        f"ip link add {_LINK} type veth peer name {_PEER} netns {_NAMESPACE}",
        f"ip addr add {_HERE}/24 dev {_LINK}",
        f"ip link set {_LINK} up",
        f"ip -n {_NAMESPACE} addr add {_THERE}/24 dev {_PEER}",
        f"ip -n {_NAMESPACE} link set {_PEER} up",
        f"ip -n {_NAMESPACE} link set lo up",
    ]
    try:
        try:
            for command in made:
                subprocess.run(command.split(), check=True, capture_output=True)
            apart = True
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"no network namespace: {error}", flush=True)
            apart = False
        yield apart
    finally:
        with suppress(OSError):
            subprocess.run(["ip", "netns", "del", _NAMESPACE], capture_output=True, check=False)


@contextmanager
def trial(apart: bool, step_ns: int) -> Iterator[Trial]:
    """A head that measures nothing, and three nodes."""
    host = _HERE if apart else "127.0.0.1"
    with tempfile.TemporaryDirectory(prefix="accelbench-trial-") as name:
        with socket.create_server((host, 0)) as probe:
            port = probe.getsockname()[1]
        made = Trial(Path(name), host, port)
        (made.folder / "script.json").write_text(json.dumps({"step_ns": step_ns, "real": True}))
        try:
            made.fleet("start", "--host", host, "--port", str(port), "--coordinator")
            made.join(host)
            made.join(host)
            inside = ("ip", "netns", "exec", _NAMESPACE) if apart else ()
            made.join(_THERE if apart else host, before=inside)
            yield made
        finally:
            for number in range(len(made.nodes)):
                made.send(number, signal.SIGCONT)
            made.fleet("stop")


def run(
    there: Trial, models: list[str], iterations: int, name: str, heard: Callable[[int], None]
) -> dict[str, Any]:
    """Run it; what became of every case, and how long all took."""
    words = [
        *("run", *models, "--hardware", "cpu", "--framework", "scripted", "--benchmark-only"),
        *("--batch-sizes", _BATCHES, "--iterations", str(iterations), "--warmup", "5"),
        *("--silence", _SILENCE, "--db", str(there.folder / name), "--label", name),
    ]
    lines = []
    begun = 0.0
    with subprocess.Popen(
        [sys.executable, "-m", "accelbench", "fleet", *words],
        env=there.environment, cwd=there.folder, text=True, stdout=subprocess.PIPE,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        for line in running.stdout:
            lines.append(line)
            if line.startswith("Run ") and not begun:
                begun = time.monotonic()
            if line.startswith("["):
                heard(int(line[1:].partition("/")[0]))
            elif line.startswith(("Note", "Run")):
                print("  " + line.rstrip(), flush=True)
    took = time.monotonic() - begun
    return {"seconds": took, "exit_code": running.returncode, **came_to(there.folder / name)}


def came_to(path: Path) -> dict[str, Any]:
    """Of a database: how often each case ended, on which nodes, and how long cases took."""
    import duckdb

    with duckdb.connect(str(path), read_only=True) as con:
        rows = con.execute(
            "SELECT case_id, status, run_id, started_at, finished_at FROM benchmark_results"
        ).fetchall()
        runs = con.execute("SELECT run_id, status FROM benchmark_runs").fetchall()
    ended = Counter(case for case, *_ in rows)
    return {
        "cases": len(ended),
        "ended_once": sum(count == 1 for count in ended.values()),
        "statuses": dict(Counter(status for _, status, *_ in rows)),
        "by_node": dict(Counter(run_id.partition(".")[2] for _, _, run_id, *_ in rows)),
        "runs": dict(Counter(status for _, status in runs)),
        "case_seconds": sum(_seconds(row[3], row[4]) for row in rows),
    }


def _seconds(began: datetime, ended: datetime) -> float:
    return (ended - began).total_seconds()


def strikes(there: Trial, apart: bool, cases: int) -> Callable[[int], None]:
    """After a fifth, two fifths and three fifths of the results one more node is struck."""
    pending = {
        cases // 5: lambda: _kill(there),
        2 * cases // 5: lambda: _freeze(there),
        3 * cases // 5: lambda: _cut(there, apart),
    }

    def heard(number: int) -> None:
        for after in [at for at in pending if number >= at]:
            pending.pop(after)()

    return heard


def _kill(there: Trial) -> None:
    print("  the first node is killed", flush=True)
    there.send(0, signal.SIGKILL)


def _freeze(there: Trial) -> None:
    print(f"  the second node freezes for {_FROZEN_SECONDS:.0f} s", flush=True)
    there.send(1, signal.SIGSTOP)
    threading.Timer(_FROZEN_SECONDS, there.send, (1, signal.SIGCONT)).start()


def _cut(there: Trial, apart: bool) -> None:
    print(f"  the third node is cut off for {_CUT_SECONDS:.0f} s", flush=True)
    if not apart:
        there.send(2, signal.SIGSTOP)
        threading.Timer(_CUT_SECONDS, there.send, (2, signal.SIGCONT)).start()
        return
    subprocess.run(["ip", "link", "set", _LINK, "down"], check=True)
    up = ["ip", "link", "set", _LINK, "up"]
    threading.Timer(_CUT_SECONDS, subprocess.run, (up,)).start()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=600)
    parser.add_argument("--step-ms", type=float, default=5.0)
    asked = parser.parse_args()
    small = sorted(every_model(), key=lambda spec: spec.parameters)  # memory is estimated anyway
    models = [spec.id for spec in small[: asked.models]]
    cases = len(models) * len(_BATCHES.split(","))
    figures: dict[str, Any] = {"nodes": 3, "cases": cases}
    with network() as apart, trial(apart, int(asked.step_ms * 1e6)) as there:
        figures["network_namespace"] = apart
        print("all goes well", flush=True)
        calm = run(there, models, asked.iterations, "calm.duckdb", lambda _: None)
        print(calm, flush=True)
        print("one node after the other is struck", flush=True)
        struck = run(there, models, asked.iterations, "struck.duckdb", strikes(there, apart, cases))
        print(struck, flush=True)
    figures |= {"calm": calm, "struck": struck}
    overhead = (3 * calm["seconds"] - calm["case_seconds"]) / calm["case_seconds"]
    figures["overhead_with_idle_nodes_at_the_end"] = overhead
    reached = {"once": verdict("cases that did not end once", _not_once(calm, struck, cases), 0.0)}
    reached["overhead"] = verdict("beside the sum of case times", overhead, OVERHEAD)
    keep("fleet_trial", {**figures, "reached": reached})


def _not_once(calm: Mapping[str, Any], struck: Mapping[str, Any], cases: int) -> float:
    return float(sum(cases - each["ended_once"] for each in (calm, struck)))


if __name__ == "__main__":
    main()
