"""JAX on two devices of a CPU: what they compute together is what one device computes.

A process of its own serves all of these (`jax_devices.py`): XLA parts a processor as it starts.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from accelbench.judge.process_spread import ranks_of

pytest.importorskip("jax")

#: Of the largest gradient of the model: sums in another order.
BOUND = 1e-5
SHARED = ("ddp", "fsdp")
ALONE = "alone"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    file = tmp_path_factory.mktemp("devices") / "found.npz"
    script = Path(__file__).with_name("jax_devices.py")
    done = subprocess.run(
        [sys.executable, str(script), str(file)],
        capture_output=True, text=True, timeout=300, env={**os.environ, **ENVIRONMENT},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load(file) as arrays:
        return dict(arrays), json.loads(file.with_suffix(".json").read_text())


ENVIRONMENT = {"JAX_ENABLE_COMPILATION_CACHE": "false", "TF_CPP_MIN_LOG_LEVEL": "2"}


def of(arrays, beginning):
    """The arrays whose names begin so, by the rest."""
    return {
        name.removeprefix(beginning): a for name, a in arrays.items() if name.startswith(beginning)
    }


@pytest.mark.parametrize("way", SHARED)
def test_gradients_and_losses_are_those_of_one_device(way, found):
    """Of a model that normalises batches and drops by chance: a step is of the whole batch."""
    arrays, told = found
    assert told[way]["digest"] == told[ALONE]["digest"]
    right, gradients = of(arrays, f"{ALONE} "), of(arrays, f"{way} ")
    assert gradients.keys() == right.keys()
    largest = max(float(np.abs(g).max()) for g in right.values())
    assert largest > 0
    for name, gradient in right.items():
        assert np.abs(gradients[name] - gradient).max() <= BOUND * largest, name
    assert told[way]["losses"] == pytest.approx(told[ALONE]["losses"], rel=1e-5)
    assert len(set(told[ALONE]["losses"])) == 5


def test_the_evidence_tells_how_it_is_shared(found):
    told = found[1]
    assert told[ALONE]["details"] is told[ALONE]["exchanged"] is None
    for way in SHARED:
        assert told[way]["devices"] == ["cpu:0"]
        assert told[way]["threads"] == 2
        details = told[way]["details"]
        assert details["strategy"] == way
        assert len(details["devices"]) == 2
        assert details["of_each_device"] == 4
        assert details["collectives"]["all-reduce"] >= 1
        # Of each device there is what XLA's profiler says, and why there is no more.
        empty = ("step_ms", "threads", "host_memory_peak_mb", "device_memory_peak_bytes")
        assert [rank["rank"] for rank in details["ranks"]] == [0, 1]
        assert all(rank[name] is None for rank in details["ranks"] for name in empty)
        assert set(details["not_known"]) == set(empty)
    ddp, fsdp = (told[way]["details"] for way in SHARED)
    assert ddp["split_weights"] == 0
    # Of the table, both products and no vector each device has half, and the head's three rows go
    # by their sixteen columns.
    assert fsdp["split_weights"] == 3
    assert fsdp["collectives"]["all-gather"] >= 3
    whole = told[ALONE]["bytes_of_a_device"]
    assert told["ddp"]["bytes_of_a_device"] == whole
    split = 4 * (50 * 16 + 48 * 16 + 3 * 16)
    assert told["fsdp"]["bytes_of_a_device"] == whole - split // 2


def test_what_devices_spend_on_each_other_is_told(found):
    for way in SHARED:
        exchanged = found[1][way]["exchanged"]
        assert 0 < exchanged["exposed_communication_ms"] <= exchanged["communication_ms"]
        assert 0 < exchanged["communication_share"] <= 1
        assert exchanged["straggler_ratio"] >= 1
        assert [rank["collectives"] >= 1 for rank in exchanged["ranks"]] == [True, True]
        row = {"evidence": {"details": {"distributed": {
            **found[1][way]["details"], "communication": exchanged["ranks"],
        }}}}  # fmt: skip
        for rank in ranks_of(row):
            assert rank.work_ms is not None
            assert 0 < rank.work_ms < rank.profiled_ms
            assert rank.step_ms is rank.memory_mb is None
