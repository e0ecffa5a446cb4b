"""One command runs the small set: every key model and architecture, inference and training."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from accelbench.catalog.find import find, members
from accelbench.core.words import Architecture
from accelbench.run.nulls import unexplained

#: The thirteen that the guides name; their small variants make the small set.
KEY_MODELS = (
    *("bert", "clap", "clip", "detr", "llama", "llava", "llava-next", "qwen2", "t5", "vit"),
    *("wav2vec2", "whisper", "xclip"),
)

Rows = list[Mapping[str, Any]]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The results of the one command, with as few steps as will do."""
    folder = tmp_path_factory.mktemp("small")
    words = "run --set small --mode both --hardware cpu --batch-sizes 1 --threads 1"
    few = "--iterations 2 --warmup 1 --json --quiet --db small.duckdb"
    done = subprocess.run(
        [sys.executable, "-m", "accelbench", *words.split(), *few.split()],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if not k.startswith("ACCELBENCH_")},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found: Rows = json.loads(done.stdout)["results"]
    return found


def test_the_small_set_has_every_key_model_and_every_architecture(rows: Rows) -> None:
    small = {spec.id for spec in members("small")}
    assert {find(name).small_variant for name in KEY_MODELS} <= small
    assert {row["model"] for row in rows} == small
    assert {row["architecture"] for row in rows} == set(Architecture)


def test_every_case_is_ok_in_both_modes(rows: Rows) -> None:
    assert {(row["model"], row["mode"]) for row in rows if row["status"] == "ok"} == {
        (spec.id, mode) for spec in members("small") for mode in ("inference", "training")
    }


def test_what_generates_has_its_token_times(rows: Rows) -> None:
    generated = [row for row in rows if row["new_tokens"]]
    makers = {spec.id for spec in members("small") if spec.generation}
    assert {row["model"] for row in generated} == makers
    for row in generated:
        assert row["ttft_ms"] > 0, row["model"]
        assert row["tpot_ms"] > 0, row["model"]
        assert row["tokens_per_second"] > 0, row["model"]


def test_what_is_trained_has_its_parts_and_its_losses(rows: Rows) -> None:
    for row in rows:
        if row["mode"] == "training":
            parts = [row[f"{part}_ms"] for part in ("forward", "loss", "backward", "optimizer")]
            assert min(parts) > 0, row["model"]
            assert len(row["loss_per_step"]) >= 4, row["model"]


def test_every_model_is_real_and_says_how_much_memory_was_expected(rows: Rows) -> None:
    for row in rows:
        assert row["self_check"] == "ok", row["model"]
        assert row["memory_estimate_mb"] > 0, row["model"]
        assert row["flops"] > 0, row["model"]


def test_every_null_has_its_reason(rows: Rows) -> None:
    for row in rows:
        empty = {name for name, value in row.items() if value is None and name != "nulls"}
        assert set(row["nulls"]) == empty, row["model"]
        assert not unexplained(row["nulls"]), row["model"]
