"""Figures of another provenance are never taken for measured ones."""

import pytest
from made_up_charts import drawn, result, results, values

from accelbench.judge.machine_matrix import LocalPlatforms
from accelbench.judge.points import points
from accelbench.present.chart_data import matrix_of
from accelbench.present.charts import CHARTS
from accelbench.present.charts.chart import Subject, picture
from accelbench.present.charts.pareto import front

TIMES = [name for name in CHARTS if name != "compatibility"]


def test_what_is_drawn_of_each_kind():
    # What was emulated alone is no picture.
    rows = [result(hardware=name, emulated=True) for name in ("webgpu", "webnn")]
    alone = Subject(points(rows))
    assert not [name for name in TIMES if picture(CHARTS[name], alone)]
    # Measured alone needs no legend of kinds.
    rows = [row for row in results() if row["provenance"] == "measured"]
    found = drawn("latency-by-batch", Subject(points(rows)))
    assert "imported" not in " ".join(found.about)
    assert "hatch" not in str(found.spec)
    # What is unusable is on no front and the subtitle says it.
    rows = [result(ms=10.0, batch_size=n) for n in (2, 4)]
    rows.insert(0, result(ms=10.0, batch_size=1, runtime="openvino"))
    rows.append(result(ms=1.0, batch_size=8, quality="unusable"))
    found = drawn("pareto", Subject(points(rows)))
    assert [one["batch"] for one in found.records if one["front"]] == [4]
    assert "1 figure unusable (dashed outline): interval wider than ±25 %" in " ".join(found.about)
    assert "unusable" not in " ".join(drawn("pareto", Subject(points(rows[:3]))).about)


@pytest.mark.parametrize(
    ("name", "many"),
    [
        *(("hardware-latency", 1), ("latency-by-batch", 2), ("cold-warm", 2)),
        *(("hardware-memory", 0), ("memory-by-batch", 0)),  # no times
    ],
)
def test_what_is_unusable_is_marked_where_it_is_drawn(name, many):
    rows = [
        result(hardware=h, batch_size=n, memory_peak_mb=100.0, load_ms=9.0, quality=quality)
        for h, quality in (("cpu", "unusable"), ("cuda", "converged"))
        for n in (1, 2)
    ]
    found = drawn(name, Subject(points(rows)))
    marked = [one for one in found.records if one.get("quality") == "unusable"]
    assert [one["hardware"] for one in marked] == ["cpu"] * many
    assert ("unusable (dashed outline)" in " ".join(found.about)) is bool(many)
    if name == "hardware-latency":  # a bar may be too short for its outline to be seen
        assert "(unusable)" in str(found.spec)


def test_what_does_not_count():
    # What is compatible and not rated is not called unavailable.
    rows = [result(quality="unusable"), result(hardware="cuda", quality="unusable")]
    subject = Subject(points(rows), matrix=matrix_of(rows, None, LocalPlatforms()))
    ratings = {one["hardware"]: one["rating"] for one in drawn("compatibility", subject).records}
    assert (ratings["cpu"], ratings["rocm"]) == ("not rated", "–")
    # An unusable figure stands for no model that has a better.
    rows = [
        result(model=model, architecture=model, batch_size=batch, quality=quality, ms=1.0)
        for model in ("a", "b")
        for batch, quality in ((1, "converged"), (64, "unusable"))
    ]
    assert {one["batch"] for one in drawn("architecture", Subject(points(rows))).records} == {1}
    # resnet50 stood at 0.445 ms of an unverified w8a8, which `recommend` does not choose.
    rows = [
        result(model=model, architecture=model, ms=ms, precision=precision)
        for model, precision, ms in (("a", "int8", 1.0), ("a", "fp16", 2.0), ("b", "fp32", 3.0))
    ]
    picture = drawn("architecture", Subject(points(rows)))
    assert {one["precision"] for one in picture.records} == {"fp16", "fp32"}
    assert "Marks are of several precisions: fp16 1, fp32 1." in " ".join(picture.about)


def test_fronts_and_versions():
    # A larger image is other work: it never beats a smaller one, nor is beaten by it.
    each = [{"batch_size": n, "runtime": r} for n in (1, 2) for r in ("pytorch", "openvino")]
    rows = [result(ms=10.0, **one) for one in each]
    rows += [result(ms=40.0, image_size=224, **one) for one in each]
    found = drawn("pareto", Subject(points(rows)))
    titles = [one["title"]["subtitle"][0] for one in found.spec["concat"]]
    assert len(titles) == 2
    assert {title.rpartition(" ")[2] for title in titles} == {"64", "224"}
    places = [(1.0, 100.0), (2.0, 90.0), (2.0, 150.0), (2.0, 150.0), (0.5, 10.0), (9.0, 150.0)]
    assert front(places) == [True, False, True, True, True, False]
    # An import brings many versions at once: beside each other they would be stacked.
    theirs = {"provenance": "imported", "run_id": "import-1"}
    rows = [
        result(hardware=name, ms=ms, **theirs, conditions={"engine": version})
        for name in ("cpu", "cuda")
        for version, ms in (("torch 1.13", 9.0), ("torch 2.4", 7.0))
    ]
    found = drawn("hardware-latency", Subject(points(rows)))
    bars = [(one["bar"], one["value"]) for one in values(found.spec) if "bar" in one]
    assert bars == [("cpu", 7.0), ("cuda", 7.0)]
