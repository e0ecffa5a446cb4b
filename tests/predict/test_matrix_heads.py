"""Heads of the matrix of predictions: whole, in lines that their fields have room for."""

import pytest

from accelbench.present.charts.predicted import _wrapped

WAYS = ["pytorch · cuda · RTX 4090 · amp-bf16", "onnxruntime · cpu · fp32"]


@pytest.mark.parametrize("batches", [1, 2, 4, 12])
def test_no_head_is_cut_off(batches):
    room = max(int(batches * 40 / 6.4), 12)
    for way in WAYS:
        lines = _wrapped(way, room)
        assert " · ".join(lines) == way
        assert all(len(line) <= room or " · " not in line for line in lines)
