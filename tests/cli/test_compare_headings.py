"""Headings: of two different questions no two are the same."""

from __future__ import annotations

from typing import Any

import pytest

from accelbench.judge.questions import AXES
from accelbench.present.terminal.compare import headings
from asked_rows import row


def both(by: str, **changes: Any) -> list[str]:
    return headings([[row()], [row(**changes)]], AXES[by])


def test_what_a_heading_says():
    # The usual is said alone where it is enough.
    assert both("hardware", model="vit-tiny") == [
        "bert-tiny · fp32 · batch 1 · seq 128",
        "vit-tiny · fp32 · batch 1 · seq 128",
    ]
    # Engine and platform are said where all sides share them.
    assert headings([[row()]], AXES["batch"]) == ["bert-tiny · fp32 · seq 128 · pytorch/cpu"]
    assert headings([[row()]], AXES["runtime"]) == [
        "bert-tiny · fp32 · batch 1 · seq 128 · A processor"
    ]
    # What goes along an axis is not of the question.
    one, other = both("mode", sequence_length=64, options={"layout": "nhwc"})
    assert (one, other) == (
        "bert-tiny · fp32 · batch 1 · pytorch/cpu",
        "bert-tiny · fp32 · batch 1 · layout=nhwc · pytorch/cpu",
    )
    # Two tables that differ in their batch read as if they were of one device.
    one, other = both("precision", batch_size=8, device_name="B processor")
    assert one == "bert-tiny · fp32 · batch 1 · seq 128 · pytorch/cpu · A processor".replace(
        " · fp32", ""
    )
    assert other.endswith("batch 8 · seq 128 · pytorch/cpu · B processor")
    # An engines version is said where there are several.
    rows = [
        row(conditions={"packages": {"torch": version}}, batch_size=batch)
        for version, batch in (("2.4", 1), ("2.9", 8))
    ]
    one, other = headings([[one] for one in rows], AXES["precision"])
    assert one.endswith("pytorch/cpu · torch 2.4")
    assert other.endswith("pytorch/cpu · torch 2.9")
    # It read “torch 2.1.0” over a row of torch 2.4.0, and a card's name nowhere.
    card = {"hardware": "cuda", "device_name": "A card", "compiled": True}
    old, new = ({"conditions": {"torch": version}} for version in ("2.1.0", "2.4.0"))
    one, other = headings(
        [[row(**card, **old), row(**card, **new)], [row(model="vit-tiny", **card, **new)]],
        AXES["batch"],
    )
    assert one == "bert-tiny · fp32 · seq 128 · pytorch/cuda · A card · compiled"
    assert other.endswith("pytorch/cuda · A card · compiled")


@pytest.mark.parametrize(
    ("by", "changes", "first", "second"),
    [
        ("runtime", {"device_name": "A card"}, "A processor", "A card"),
        ("batch", {"threads": 8}, "2 threads", "8 threads"),
        ("batch", {"threads": None}, "2 threads", "threads: no data"),
        ("batch", {"compiled": True}, "not compiled", "compiled"),
        ("hardware", {"weights": "hub"}, "weights random", "weights hub"),
        ("hardware", {"image_size": 64}, "image_size: no data", "64px"),
    ],
)
def test_what_tells_two_questions_apart_is_said_of_both(by, changes, first, second):
    one, other = both(by, **changes)
    assert one.endswith(f" · {first}")
    assert other.endswith(f" · {second}")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scenario": "offline"}, "offline"),
        ({"world_size": 8}, "8 processes"),
        ({"options": {"layout": "nhwc"}}, "layout=nhwc"),
        ({"mode": "training"}, "training"),
    ],
)
def test_what_is_unusual_is_said_wherever_it_is(changes, said):
    (alone,) = headings([[row(**changes)]], AXES["hardware"])
    assert alone == f"bert-tiny · fp32 · batch 1 · seq 128 · {said}"
    assert both("hardware", **changes) == ["bert-tiny · fp32 · batch 1 · seq 128", alone]
