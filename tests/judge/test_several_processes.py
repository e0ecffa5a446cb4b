"""Results of several processes beside those of one: each says how many it is of."""

from __future__ import annotations

import io
from typing import Any

from matrix_rows import row as tried

from accelbench.judge.matrix import matrix
from accelbench.judge.pivot import pivots
from accelbench.judge.points import points
from accelbench.judge.run_noise import Histories
from accelbench.judge.summary import summary
from accelbench.present.charts import CHARTS
from accelbench.present.charts.chart import Roof, Subject, picture
from accelbench.present.terminal.documents import show
from accelbench.present.terminal.pivot import pivoted
from asked_rows import row

TRAINED = {"mode": "training", "batch_size": 16}
SHARED = {**TRAINED, "world_size": 2}


def printed(*rows: dict[str, Any]) -> str:
    stream = io.StringIO()
    about = {"machine": "here", "other_machines": (), "not_shown": ()}
    show(pivoted(pivots(rows, Histories()), about), stream)
    return stream.getvalue()


def test_a_pivot_has_a_table_for_each_number_and_its_heading_says_it():
    one = [row(**TRAINED), row(**TRAINED, runtime="jax", latency_p50_ms=9.0)]
    two = [row(**SHARED, options={"strategy": name}) for name in ("ddp", "fsdp2")]
    text = printed(*one, *two)
    headings = [line for line in text.splitlines() if line.startswith("bert-tiny")]
    assert len(headings) == 2
    assert ["2 processes" in heading for heading in headings] == [False, True]
    card = [row(**SHARED, hardware="cuda", device_name="A card", runtime=n) for n in ("a", "b")]
    assert "2 devices" in printed(*card)


def test_a_matrix_names_a_way_of_several_processes_and_holds_like_against_like():
    options = {"strategy": "ddp"}
    rows = [
        tried(throughput=100.0),
        tried(throughput=900.0, world_size=2, options=options),
        tried(throughput=150.0, hardware="cuda"),
    ]
    (line,) = matrix(rows).models
    assert line.cells["cpu"].runtimes == ("onnxruntime", "onnxruntime 2 processes strategy=ddp")
    assert line.cells["cuda"].speed == 1.5


def test_a_summary_says_processes_of_a_cpu_and_devices_of_gpus():
    def said(*rows: dict[str, Any]) -> str:
        told = [dict(entry, case_id=str(n), sample_count=30) for n, entry in enumerate(rows)]
        lines = summary(told, points(told), Histories())
        return next(line for line in lines if line.startswith("bert-tiny, training"))

    shared = [row(**SHARED, options={"strategy": name}) for name in ("ddp", "fsdp2")]
    assert "batch 16, 2 processes:" in said(row(**TRAINED), *shared)
    assert "batch 16, 1 process:" in said(row(**TRAINED), row(**TRAINED, threads=1), shared[0])
    cards = [{**entry, "hardware": "cuda", "device_name": "A card"} for entry in shared]
    assert "batch 16, 2 devices:" in said(*cards)


def test_a_roof_is_of_one_device():
    counted = {"flops": 8e9, "bytes_moved": 1e8, "latency_p50_ms": 8.0}

    roofs = [
        Roof(platform, device, "fp32", 1e12, 5e10, "documented")
        for platform, device in (("cpu", "AMD EPYC"), ("cuda", "A card"))
    ]

    def height(**more: Any) -> float:
        measured = points([row(**counted, **more)])
        made = picture(CHARTS["roofline"], Subject(measured, roofs=roofs))
        assert made is not None
        return float(made.records[0]["value"])

    one, card = height(**TRAINED), {"hardware": "cuda", "device_name": "A card"}
    assert height(**SHARED) == one  # processes share the processor, whole
    assert height(**SHARED, **card) == one / 2
