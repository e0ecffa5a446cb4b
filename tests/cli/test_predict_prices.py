"""Costs of predictions: each has the interval of its time."""

import pytest


def test_a_prediction_has_a_cost_with_an_interval(tmp_path, command):
    (tmp_path / "p.json").write_text('{"per_hour": {"h100": 3.6}}')
    words = ("bert-tiny", "--hardware", "h100", "a100", "--prices", "p.json")
    document = command("predict").json(*words)
    priced, bare = document["predictions"]
    assert document["currency"] == "USD"
    assert priced["cost_per_million"] == pytest.approx(1e3 / priced["throughput"])
    assert priced["cost_per_million_low"] < priced["cost_per_million"]
    assert priced["cost_per_million"] < priced["cost_per_million_high"]
    assert bare["cost_per_million"] is None
