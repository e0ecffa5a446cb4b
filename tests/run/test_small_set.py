"""One command runs the small set: every key model and architecture, inference and training."""

import pytest
from grids import Row, hold_nulls, said

from accelbench.core.vocabulary import ARCHITECTURES
from accelbench.models.find import find, members

#: The thirteen that the guides name; their small variants make the small set.
KEY_MODELS = (
    *("bert", "clap", "clip", "detr", "llama", "llava", "llava-next", "qwen2", "t5", "vit"),
    *("wav2vec2", "whisper", "xclip"),
)

#: `make test` asks of two, one of which generates, what `make test-full` asks of all.
FEW = ("vit-tiny", "whisper-mini")
SMALL = tuple(spec.id for spec in members("small"))

Rows = list[Row]


@pytest.fixture(
    scope="module",
    params=[pytest.param(FEW, id="few"), pytest.param(SMALL, id="all", marks=pytest.mark.full)],
)
def models(request):
    return request.param


@pytest.fixture(scope="module")
def rows(models, tmp_path_factory):
    """The results of the one command, with as few steps as will do."""
    which = "--set small" if models == SMALL else " ".join(models)
    words = f"run {which} --mode both --hardware cpu --batch-sizes 1 --threads 1"
    few = "--iterations 2 --warmup 1 --quiet"
    code, document = said(tmp_path_factory.mktemp("small"), f"{words} {few}", 280)
    assert code == 0, [row["message"] for row in document["results"] if row["status"] != "ok"]
    return list(document["results"])


def test_the_small_set_has_every_key_model_and_every_architecture():
    assert {find(name).small_variant for name in KEY_MODELS} <= set(SMALL)
    assert {find(name).architecture for name in SMALL} == set(ARCHITECTURES)


def test_every_case_is_ok_in_both_modes(models, rows):
    assert {(row["model"], row["mode"]) for row in rows if row["status"] == "ok"} == {
        (name, mode) for name in models for mode in ("inference", "training")
    }
    assert {(row["model"], row["architecture"]) for row in rows} == {
        (name, find(name).architecture) for name in models
    }


def test_every_case_is_whole(models, rows):
    generated = [row for row in rows if row["new_tokens"]]
    makers = {name for name in models if find(name).generation}
    assert makers
    assert {row["model"] for row in generated} == makers
    for row in generated:
        assert row["ttft_ms"] > 0, row["model"]
        assert row["tpot_ms"] > 0, row["model"]
        assert row["tokens_per_second"] > 0, row["model"]

    for row in rows:
        if row["mode"] == "training":
            parts = [row[f"{part}_ms"] for part in ("forward", "loss", "backward", "optimizer")]
            assert min(parts) > 0, row["model"]
            assert len(row["loss_per_step"]) >= 4, row["model"]

    for row in rows:
        assert row["self_check"] == "ok", row["model"]
        assert row["memory_estimate_mb"] > 0, row["model"]
        assert row["flops"] > 0, row["model"]
    hold_nulls(rows)
