"""The API on a fleet: what it measures there, returns and leaves, and the snippet of the page."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_api import Machine

from accelbench import EnhancedHardwareBenchmarkRunner
from accelbench.core.errors import UsageError
from accelbench.engines.scripted import ScriptedRuntime
from accelbench.fleet.fleet_nodes import format_node_name
from accelbench.fleet.session import FleetAddress
from accelbench.run.plan import expand
from accelbench.store.database import Database
from here_cluster import NODE, HereCluster, here_cluster

NODE_NAME = format_node_name(NODE, socket.gethostname())
PAGE = Path(__file__).parents[2] / "docs" / "fleet.md"
FEW: dict[str, Any] = {"framework": "scripted", "iterations": 5, "warmup": 1, "hardware": "cpu"}


@pytest.fixture
def asked(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FleetAddress]]:
    """The addresses that were connected with; there is this machine's fleet at each."""
    addresses: list[FleetAddress] = []

    def connected(address: FleetAddress) -> HereCluster:
        addresses.append(address)
        return cluster()

    with here_cluster(machine.folder / "state", monkeypatch) as cluster:
        monkeypatch.setattr(FleetAddress, "connect", connected)
        monkeypatch.setattr(expand, "installed_runtimes", lambda: {"scripted": ScriptedRuntime()})
        yield addresses


def test_results_are_those_of_nodes_and_are_returned_and_stored(asked, tmp_path):
    runner = EnhancedHardwareBenchmarkRunner(
        "store.duckdb", output_dir=tmp_path / "out", verbose=False,
        fleet="10.0.0.1:6379", fleet_token_file="token",
    )  # fmt: skip
    result = runner.run_multiple(["bert-tiny", "vit-tiny"], batch_sizes=[1, 2], **FEW)
    assert asked == [FleetAddress("10.0.0.1:6379", Path("token"))]
    fleet = result["run_id"]
    for model in result["models"].values():
        assert (model["status"], model["batch_sizes"]) == ("ok", [1, 2])
        assert {row["run_id"] for row in model["results"]} == {f"{fleet}.{NODE_NAME}"}
        assert [row["latency_p50_ms"] for row in model["results"]] == [1.0, 2.0]
    _, rows = Database(Path("store.duckdb")).query(
        "SELECT run_id, count(*) FROM benchmark_results GROUP BY run_id"
    )
    assert rows == [(f"{fleet}.{NODE_NAME}", 4)]
    assert len(list((tmp_path / "out").glob("raw_results/*.json"))) >= 1
    assert all(Path(path).is_file() for path in result["files"])
    assert Path(result["journal"]).is_file()


def test_one_model_is_measured_on_a_fleet(asked):
    runner = EnhancedHardwareBenchmarkRunner(
        no_database=True, verbose=False, fleet="localhost:6379", fleet_token_file="token"
    )
    result = runner.run_benchmark("bert-tiny", batch_sizes=[1], **FEW)
    assert (result["status"], result["runtime"], len(result["results"])) == ("ok", "scripted", 1)
    absent = runner.run_benchmark("bert-tiny", batch_sizes=[1], **{**FEW, "hardware": "cuda"})
    assert absent["status"] == "unsupported"


def test_the_page_s_snippet_works(asked, capsys):
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    made: dict[str, Any] = {}
    few = 'framework="scripted", iterations=5, warmup=1, hardware="cpu"'
    assert snippet.count('hardware="cpu"') == 1
    exec(snippet.replace('hardware="cpu"', few), made)
    assert asked[0].address == "10.0.0.1:6379"
    printed = capsys.readouterr().out
    for line in ("bert-tiny 1 ok 1.0", "bert-tiny 8 ok 8.0", "resnet-tiny 1 ok 1.0"):
        assert line in printed


def test_a_fleet_that_is_none_is_refused_before_anything_is_measured(machine):
    with pytest.raises(UsageError, match="is not an address"):
        EnhancedHardwareBenchmarkRunner(fleet="nowhere")
