"""`accelbench run --distributed`: measured and stored from end to end, or refused with a reason."""

import json

import pytest

from accelbench.cli.arguments import resolved_values
from accelbench.cli.arguments.resolved_values import request_of
from accelbench.cli.services.run_request import TRAINING_NOTE
from accelbench.core.errors import EXIT_ENVIRONMENT, EXIT_OK, EXIT_USAGE
from accelbench.core.run_options import RunSpec

TRAINED = ("bert-tiny", "--mode", "training", "--distributed")


@pytest.mark.timeout(600)
def test_two_processes_are_measured_beside_one(command):
    words = [*TRAINED, "--gpu-count", "2", "--hardware", "cpu", "--batch-sizes", "4"]
    words += ["--sequence-lengths", "16", "--iterations", "3", "--warmup", "1"]
    code, out, err = command("run")(*words, "--json", "--db", "store.duckdb")
    assert code == EXIT_OK, err[-3000:]
    alone, together = json.loads(out)["results"]
    assert [alone["world_size"], together["world_size"]] == [1, 2]
    assert alone["case_id"] != together["case_id"]
    assert together["options"] == {"strategy": "ddp"}
    assert alone["weights_digest"] == together["weights_digest"]
    assert together["verification"] == "ok"  # its losses are one process's
    expected = alone["latency_p50_ms"] / (2 * together["latency_p50_ms"])
    assert together["scaling_efficiency"] == pytest.approx(expected)
    assert 0 < together["exposed_communication_ms"] <= together["communication_ms"]
    ranks = together["evidence"]["details"]["distributed"]["ranks"]
    peaks = [rank["host_memory_peak_mb"] for rank in ranks]
    assert together["memory_peak_mb"] == pytest.approx(max(peaks))
    assert together["memory_estimate_mb"] is not None
    for row in (alone, together):
        empty = {name for name, value in row.items() if value is None and name != "nulls"}
        assert set(row["nulls"]) == empty


BRIEF = ("--iterations", "3", "--warmup", "1", "--no-baseline", "--json", "--db", "store.duckdb")


@pytest.mark.timeout(600)
def test_two_devices_of_jax_make_a_step(command):
    pytest.importorskip("jax")
    words = [*TRAINED, "--framework", "jax", "--processes", "2", "--hardware", "cpu"]
    words += ["--batch-sizes", "4", "--sequence-lengths", "16"]
    code, out, err = command("run")(*words, *BRIEF)
    assert code == EXIT_OK, err[-3000:]
    (row,) = json.loads(out)["results"]
    assert (row["runtime"], row["world_size"], row["status"]) == ("jax", 2, "ok")
    assert row["verification"] == "ok"  # against one process of PyTorch
    assert row["latency_p50_ms"] > 0
    assert 0 < row["exposed_communication_ms"] <= row["communication_ms"]
    together = row["evidence"]["details"]["distributed"]
    assert len(together["devices"]) == len(together["communication"]) == 2
    assert [device["rank"] for device in together["ranks"]] == [0, 1]
    assert together["collectives"]["all-reduce"] >= 1


@pytest.mark.timeout(600)
def test_two_processes_write_tokens_by_tensor_parallelism(command):
    words = ["llama-tiny", "--distributed", "--processes", "2", "--strategy", "tp"]
    words += ["--hardware", "cpu", "--batch-sizes", "1", "--new-tokens", "4"]
    words += ["--prompt-tokens", "8"]
    code, out, err = command("run")(*words, *BRIEF)
    assert code == EXIT_OK, err[-3000:]
    (row,) = json.loads(out)["results"]
    assert (row["mode"], row["world_size"], row["status"]) == ("inference", 2, "ok")
    assert row["options"] == {"strategy": "tp"}
    assert row["verification"] == "ok"  # its tokens are one process's
    assert row["ttft_ms"] > 0
    assert row["tpot_ms"] > 0
    ranks = row["evidence"]["details"]["distributed"]["ranks"]
    assert [rank["rank"] for rank in ranks] == [0, 1]
    assert len({rank["pid"] for rank in ranks}) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("bert-tiny", "--gpu-count", "2"), "--gpu-count requires --distributed"),
        ((*TRAINED, "--processes", "1"), "one was asked for"),
        ((*TRAINED, "--gpu-count", "2", "--processes", "3"), "contradict each other"),
        ((*TRAINED, "--strategy", "magic"), "There is no strategy 'magic'"),
        ((*TRAINED, "--max-memory-gb", "0"), "0 GiB of memory is impossible"),
        ((*TRAINED, "--node-rank", "1"), "require --nnodes. Add --nnodes"),
        ((*TRAINED, "--nnodes", "2"), "Give --rdzv-endpoint HOST:PORT"),
    ],
)
def test_words_that_make_no_sense_are_refused(words, said, command):
    code, _, err = command("run")(*words)
    assert code == EXIT_USAGE
    assert said in " ".join(err.split())


@pytest.mark.parametrize(
    ("words", "modes"),
    [
        ((), {"training"}),
        (("--mode", "inference"), {"inference"}),
        (("--mode", "both"), {"inference", "training"}),
    ],
)
def test_distributed_means_training_unless_a_mode_is_named(words, modes, command):
    # Document 003 writes: --model gpt2 --distributed --gpu-count 4 --max-memory-gb 16
    guide = ("--model", "gpt2", "--distributed", "--gpu-count", "4", "--max-memory-gb", "16")
    code, out, _ = command("run")(*guide, "--hardware", "cpu", *words, "--dry-run", "--json")
    assert code in (EXIT_OK, EXIT_ENVIRONMENT)  # as memory allows
    document = json.loads(out)
    assert {case["mode"] for case in document["cases"]} == modes
    assert (TRAINING_NOTE in document["notes"]) is not bool(words)


def test_whoever_counts_gpus_means_gpus(monkeypatch):
    monkeypatch.setattr(resolved_values, "platforms", tuple)
    spec = RunSpec(distributed=True, gpu_count=4)
    assert request_of(spec, ()).hardware == ("gpu",)
    assert request_of(spec.with_values(hardware=("cpu",)), ()).hardware == ("cpu",)
    assert request_of(spec.with_values(gpu_count=None, processes=4), ()).hardware == ()


def test_what_is_absent_is_refused_and_not_replaced(command):
    words = (*TRAINED, "--gpu-count", "4", "--hardware", "mps", "--dry-run")
    code, out, _ = command("run")(*words)
    assert code == EXIT_ENVIRONMENT
    assert "unsupported" in out


def test_the_plan_says_what_was_chosen(command):
    words = (*TRAINED, "--processes", "2", "--hardware", "cpu", "--batch-sizes", "8")
    code, out, _ = command("run")(*words, "--max-memory-gb", "0.11", "--dry-run")
    assert code == EXIT_OK
    said = " ".join(out.split())
    assert "2 processes: fsdp2, micro-batch 4, an estimated" in said
    assert "Too much for it: ddp, micro-batch 1 × 4" in said
    assert "1 bert-tiny" in said
    assert "shared by 2 · strategy=fsdp2" in said
