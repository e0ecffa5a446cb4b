"""The best answers of many models at a place, each looked for once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from choosing_world import result, selector

from accelbench.core.figures import Statistic
from accelbench.select import selector as choosing
from accelbench.select.evidence.cells import EvidenceCell, EvidencePlace
from accelbench.select.evidence.reader import PeerAnswers, nearest_names

CPU = EvidencePlace("embedding", "inference", "cpu")
PLACES = (
    CPU,
    EvidencePlace("embedding", "inference", "cpu", device="Another"),
    EvidencePlace("embedding", "inference", "cpu", precisions=("bf16",)),
    EvidencePlace("embedding", "training", "cpu"),
    EvidencePlace("embedding", "inference", "cuda"),
)


def cell(number: int, latency: float, **more: Any) -> EvidenceCell:
    row = result(latency_p50_ms=latency, **more)
    return EvidenceCell(row, (latency,), (), order=number, statistic=Statistic.MEAN)


CELLS = [
    cell(number, 1.0 + (7 * number) % 11, model=model, hardware=hardware, batch_size=batch,
         precision=precision, device_name=device, mode=mode)
    for number, (model, hardware, batch, precision, device, mode) in enumerate(
        (model, hardware, batch, precision, device, mode)
        for model in ("a", "b", "c") for hardware in ("cpu", "cuda") for batch in (4, 1)
        for precision in ("fp32", "bf16") for device in ("A processor", "Another")
        for mode in ("inference", "training")
    )
]  # fmt: skip


def test_they_are_those_of_all_cells_of_the_models_looked_through_at_once() -> None:
    peers = PeerAnswers(lambda model: [one for one in CELLS if one.model == model])
    for place in PLACES:
        for models in (["a", "c"], ["c", "b", "a"], []):
            asked = [one for one in CELLS if one.model in models]
            found = peers.of(models, place)
            assert [one.order for one in found] == [one.order for one in place.best_of_each(asked)]
            assert bool(found) == bool(models)


def test_each_model_is_read_and_looked_through_once() -> None:
    read: Counter[str] = Counter()

    def cells_of(model: str) -> list[EvidenceCell]:
        read[model] += 1
        return [one for one in CELLS if one.model == model]

    peers = PeerAnswers(cells_of)
    for models in (["a", "b"], ["b", "c"], ["a", "b", "c"]):
        peers.of(models, CPU)
        peers.of(models, EvidencePlace("another family", "inference", "cuda"))
    assert read == {"a": 1, "b": 1, "c": 1}


def test_a_ranking_of_many_models_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "_MANY", 2)
    names = ("bert-tiny", "bert-base", "distilbert-tiny")
    heard: list[str] = []
    selector(tmp_path, *(result(model=name) for name in names), hear=heard.append).rank_models(
        "embedding"
    )
    assert [words for words in heard if words.startswith("Choosing")] == [
        "Choosing for 3 models: 0 done …",
        "Choosing for 3 models: 2 done …",
    ]


def test_the_nearest_are_those_of_all_looked_through_however_many_are_alike() -> None:
    ordered = sorted((float(n * n % 7), f"{n % 5}-{n}") for n in range(60))
    for size in (-1.0, 0.0, 1.9, 2.0, 3.0, 4.0, 9.0):
        for most in (1, 3, 10, 100):
            wanted = sorted((abs(one - size), name) for one, name in ordered)[:most]
            assert nearest_names(ordered, size, most) == [name for _, name in wanted]
