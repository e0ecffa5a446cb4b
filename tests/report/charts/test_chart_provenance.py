"""Figures of another provenance are never taken for measured ones."""

from __future__ import annotations

from typing import Any

import pytest
from made_up_charts import result, results, subject_for, values

from accelbench.analysis.points import points
from accelbench.query.matrices import LocalPlatforms
from accelbench.report.chart_data import matrix_of
from accelbench.report.charts import CHARTS
from accelbench.report.charts.chart import Picture, Subject, picture
from accelbench.report.charts.pareto import front
from accelbench.report.charts.theme import PAPER

TIMES = [name for name in CHARTS if name != "compatibility"]
#: Each panel is of one platform, and in the made-up set nothing else ran where it was emulated,
#: nor do several processes share a step there. Collectives are no results at all.
OF_ONE_PLATFORM = (
    *("training-inference", "precision"),
    *("scaling", "communication", "ranks", "collectives"),
)
OF_ALL_KINDS = [
    *("hardware-latency", "hardware-throughput", "hardware-memory", "latency-by-batch"),
    *("throughput-by-batch", "memory-by-batch", "architecture", "pareto", "roofline"),
]


def drawn(name: str, given: Subject | None = None) -> Picture:
    found = picture(CHARTS[name], given or subject_for(name))
    assert found is not None
    return found


def marks(value: Any, kind: str) -> list[dict[str, Any]]:
    """Marks of a type, wherever they are."""
    if isinstance(value, list):
        return [found for one in value for found in marks(one, kind)]
    if not isinstance(value, dict):
        return []
    mark = value.get("mark")
    own = [value] if isinstance(mark, dict) and mark.get("type") == kind else []
    return own + [found for one in value.values() for found in marks(one, kind)]


@pytest.mark.parametrize("name", OF_ALL_KINDS)
def test_each_kind_is_painted_in_its_way(name: str) -> None:
    paints: dict[str, set[tuple[str, str]]] = {}
    for one in values(drawn(name).spec):
        if "paint" in one:
            paints.setdefault(one["kind"], set()).add((one["colour"], one["paint"]))
    expected = {"measured", "imported", "predicted", "simulated"}
    assert set(paints) == expected
    assert all(paint == colour for colour, paint in paints["measured"])
    assert all(paint == PAPER for _, paint in paints["imported"])
    assert all(paint == f"{colour}44" for colour, paint in paints["predicted"])
    assert all(paint == f"url(#hatch-{colour[1:]})" for colour, paint in paints["simulated"])


@pytest.mark.parametrize("name", OF_ALL_KINDS)
def test_the_subtitle_says_which_were_not_measured_here(name: str) -> None:
    said = " ".join(drawn(name).about)
    assert "imported: measured by others" in said
    assert "predicted: band" in said
    assert "simulated: hatched, not measured" in said


@pytest.mark.parametrize("name", [name for name in TIMES if name not in OF_ONE_PLATFORM])
def test_what_was_emulated_is_on_no_axis_of_times_and_that_is_said(name: str) -> None:
    found = drawn(name)
    assert not [one for one in found.records if one.get("hardware") == "webgpu"]
    assert any("emulated configuration" in one and "not drawn" in one for one in found.about)


@pytest.mark.parametrize("name", OF_ONE_PLATFORM)
def test_what_a_chart_would_not_have_drawn_anyway_is_not_said_to_be_left_out(name: str) -> None:
    assert "emulated" not in " ".join(drawn(name).about)


def test_memory_of_a_stand_in_is_not_left_out_because_of_its_times() -> None:
    for name in ("hardware-memory", "memory-by-batch"):
        (said,) = [one for one in drawn(name).about if "emulated" in one]
        assert "stand-in" in said
        assert "times" not in said


def test_what_was_emulated_alone_is_no_picture() -> None:
    rows = [result(hardware=name, emulated=True) for name in ("webgpu", "webnn")]
    alone = Subject(points(rows))
    assert not [name for name in TIMES if picture(CHARTS[name], alone)]


def test_the_matrix_says_emulated_where_it_rates_nothing() -> None:
    cells = [one for one in drawn("compatibility").records if one["hardware"] == "webgpu"]
    assert {one["rating"] for one in cells} == {"emulated"}


def test_a_prediction_has_a_band_and_a_measurement_a_line() -> None:
    bars = drawn("hardware-latency").spec
    widths = {one["mark"]["strokeWidth"] for one in marks(bars, "rule")}
    assert widths == {1.4, 9}
    (band, *_) = marks(drawn("latency-by-batch").spec, "area")
    assert "predicted" in band["transform"][0]["filter"]


def test_measured_alone_needs_no_legend_of_kinds() -> None:
    rows = [row for row in results() if row["provenance"] == "measured"]
    found = drawn("latency-by-batch", Subject(points(rows)))
    assert "imported" not in " ".join(found.about)
    assert "hatch" not in str(found.spec)


def test_what_nobody_measured_is_on_no_front() -> None:
    on_it = {one["kind"] for one in drawn("pareto").records if one["front"]}
    assert on_it == {"imported"}


def test_what_is_unusable_is_on_no_front_and_the_subtitle_says_it() -> None:
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
def test_what_is_unusable_is_marked_where_it_is_drawn(name: str, many: int) -> None:
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


def test_what_is_compatible_and_not_rated_is_not_called_unavailable() -> None:
    rows = [result(quality="unusable"), result(hardware="cuda", quality="unusable")]
    subject = Subject(points(rows), matrix=matrix_of(rows, None, LocalPlatforms()))
    ratings = {one["hardware"]: one["rating"] for one in drawn("compatibility", subject).records}
    assert (ratings["cpu"], ratings["rocm"]) == ("not rated", "–")


def test_an_unusable_figure_stands_for_no_model_that_has_a_better() -> None:
    rows = [
        result(model=model, architecture=model, batch_size=batch, quality=quality, ms=1.0)
        for model in ("a", "b")
        for batch, quality in ((1, "converged"), (64, "unusable"))
    ]
    assert {one["batch"] for one in drawn("architecture", Subject(points(rows))).records} == {1}


def test_a_front_is_of_one_work() -> None:
    """A larger image is other work: it never beats a smaller one, nor is beaten by it."""
    each = [{"batch_size": n, "runtime": r} for n in (1, 2) for r in ("pytorch", "openvino")]
    rows = [result(ms=10.0, **one) for one in each]
    rows += [result(ms=40.0, image_size=224, **one) for one in each]
    found = drawn("pareto", Subject(points(rows)))
    titles = [one["title"]["subtitle"][0] for one in found.spec["concat"]]
    assert len(titles) == 2
    assert {title.rpartition(" ")[2] for title in titles} == {"64", "224"}


def test_a_front_has_what_no_other_beats_in_both() -> None:
    places = [(1.0, 100.0), (2.0, 90.0), (2.0, 150.0), (2.0, 150.0), (0.5, 10.0), (9.0, 150.0)]
    assert front(places) == [True, False, True, True, True, False]


def test_several_versions_of_an_import_are_one_bar_each() -> None:
    """An import brings many versions at once: beside each other they would be stacked."""
    theirs = {"provenance": "imported", "run_id": "import-1"}
    rows = [
        result(hardware=name, ms=ms, **theirs, conditions={"engine": version})
        for name in ("cpu", "cuda")
        for version, ms in (("torch 1.13", 9.0), ("torch 2.4", 7.0))
    ]
    found = drawn("hardware-latency", Subject(points(rows)))
    bars = [(one["bar"], one["value"]) for one in values(found.spec) if "bar" in one]
    assert bars == [("cpu", 7.0), ("cuda", 7.0)]


@pytest.mark.parametrize("name", ["hardware-latency", "precision", "latency-by-batch", "pareto"])
def test_no_two_marks_of_one_panel_have_one_place_and_name(name: str) -> None:
    view = drawn(name).spec
    for panel in view.get("concat", [view]):
        places = [
            (one.get("bar") or one.get("line") or one.get("number"), one["batch"], one["kind"])
            for one in panel["data"]["values"]
            if one.get("front", True)
        ]
        assert len(set(places)) == len(places)


def test_an_architecture_is_not_told_by_an_unverified_quantised_figure() -> None:
    """resnet50 stood at 0.445 ms of an unverified w8a8, which `recommend` does not choose."""
    rows = [
        result(model=model, architecture=model, ms=ms, precision=precision)
        for model, precision, ms in (("a", "int8", 1.0), ("a", "fp16", 2.0), ("b", "fp32", 3.0))
    ]
    picture = drawn("architecture", Subject(points(rows)))
    assert {one["precision"] for one in picture.records} == {"fp16", "fp32"}
    assert "Marks are of several precisions: fp16 1, fp32 1." in " ".join(picture.about)
