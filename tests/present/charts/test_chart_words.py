"""Names and axes of charts: what a reader at half a page needs, and no more."""

from __future__ import annotations

import pytest
from made_up_charts import result

from accelbench.core.nouns import counted, figure
from accelbench.judge.points import FigureInterval, Point, points
from accelbench.present.charts import CHARTS
from accelbench.present.charts.axes import axis, decades, own_axes, shared
from accelbench.present.charts.chart import Subject, picture
from accelbench.present.charts.marks import record
from accelbench.present.charts.words import left_out, safe, short_device, told, unique


def point(machine: str = "lab", **more: object) -> Point:
    return Point([result(**more)], machine)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.1534, "0.153"),
        (1.0, "1.00"),
        (12.34, "12.3"),
        (999.6, "1,000"),
        (1240.0, "1,240"),
        (0.0, "0"),
        (3e-5, "0.0000300"),
        (2.5e8, "250,000,000"),
    ],
)
def test_a_figure_has_digits_and_no_exponent(value: float, said: str) -> None:
    assert figure(value) == said


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"),
        ("Samsung Galaxy S24", "Galaxy S24"),
        ("Intel(R) Core(TM) i7-1360P CPU @ 2.20GHz", "Core i7-1360P"),
        ("AMD EPYC", "EPYC"),
        ("Intel(R) Graphics", "Intel(R) Graphics"),
        ("13th Gen Intel® Core™ i7-13700K", "13th Gen Core i7-13700K"),
    ],
)
def test_a_device_s_short_name(name: str, short: str) -> None:
    assert short_device(name) == short


def test_cells_say_what_tells_them_apart_and_panels_what_they_share() -> None:
    found = told([point(), point(runtime="jax"), point(runtime="onnxruntime")])
    assert found.apart == ["pytorch", "jax", "onnxruntime"]
    assert found.together == "inference · cpu · fp32 · batch 1 · image 64"


def test_devices_of_one_platform_stand_for_it() -> None:
    cards = ("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 3090")
    several = [point(hardware="cuda", device_name=name) for name in cards]
    assert told(several).apart == ["RTX 4090", "RTX 3090"]
    assert told([*several, point()]).apart == ["cuda RTX 4090", "cuda RTX 3090", "cpu"]


def test_devices_that_are_alike_when_short_keep_their_names() -> None:
    several = [
        point(hardware="cuda", device_name=f"{maker} RTX 4090") for maker in ("NVIDIA", "AMD")
    ]
    assert told(several).apart == ["NVIDIA RTX 4090", "AMD RTX 4090"]


def test_a_platform_and_an_engine_of_one_name_are_said_once() -> None:
    found = told([point(), point(hardware="openvino", runtime="openvino")], always=("runtime",))
    assert found.apart == ["cpu · pytorch", "openvino"]


def test_a_measured_and_a_simulated_figure_of_one_question_are_told_apart() -> None:
    assert told([point(), point(provenance="simulated")]).apart == ["measured", "simulated"]


def test_a_name_says_of_which_kind_a_figure_is_where_a_picture_has_several() -> None:
    """A bar of two pixels looks the same, whatever fills it."""
    several = [
        point(),
        point(runtime="jax", provenance="simulated"),
        point(runtime="openvino", provenance="imported"),
    ]
    names = ["pytorch", "jax (simulated)", "openvino (imported)"]
    assert told(several).apart == names
    assert told(several[1:2], always=("runtime",), among=several).apart == names[1:2]
    assert told(several[1:2], always=("runtime",)).apart == ["jax"]


def test_each_name_says_what_people_ask_first_and_not_all_have_in_common() -> None:
    found = told([point(), point(runtime="jax", precision="bf16"), point(runtime="openvino")])
    assert found.apart == ["pytorch · fp32", "jax · bf16", "openvino · fp32"]
    assert found.together == "inference · cpu · batch 1 · image 64"


def test_a_panel_of_one_device_names_it_where_the_picture_has_others() -> None:
    card = point(hardware="cuda", device_name="NVIDIA GeForce RTX 4090")
    other = point(hardware="cuda", device_name="NVIDIA GeForce RTX 3090")
    assert "cuda" in told([card]).together
    assert "RTX 4090" in told([card], among=[card, other]).together


def test_of_long_names_that_begin_alike_what_differs_is_kept() -> None:
    long = "Microsoft Azure Standard D{}as v5 Virtual Machine Instance of 2024, Ubuntu"
    several = [point(hardware="cuda", device_name=long.format(n)) for n in (2, 64)]
    first, second = told(several, longest=36).apart
    assert first != second
    assert first.startswith("…")
    assert "D2as" in first
    assert "D64as" in second
    assert max(map(len, (first, second))) <= 36


def test_the_word_for_the_kind_is_never_cut() -> None:
    several = [point(runtime="r" * 90), point(runtime="s" * 90, provenance="simulated")]
    names = told(several, longest=36).apart
    assert names[1].endswith(" (simulated)")
    assert max(map(len, names)) <= 36


def test_names_that_nothing_tells_apart_are_numbered() -> None:
    assert unique(["a", "b", "a"]) == ["a", "b", "a (2)"]


def test_names_are_cut_in_their_middle_and_lose_what_does_harm() -> None:
    assert safe("x" * 300) == f"{'x' * 21}…{'x' * 20}"
    assert safe("a\x00b\u202ec\nd") == "a<U+0000>b<U+202E>c<U+000A>d"


def test_how_many_are_left_out() -> None:
    assert left_out(0, "cell") == left_out(-3, "cell") == []
    assert left_out(1, "cell") == ["1 more cell not drawn: accelbench report lists all."]
    assert left_out(2, "launch", "launches", "wait") == ["2 more launches not drawn: wait."]
    assert counted(1200, "cell") == "1,200 cells"


def test_far_figures_have_a_logarithmic_axis_that_says_so() -> None:
    far = axis("ms", [1.0, 500.0, None])
    assert far.log
    assert far.low < 1.0 < 500.0 < far.high
    assert far.of("value")["title"] == "ms (log)"
    assert far.of("value")["axis"]["values"] == [1.0, 10.0, 100.0]
    near = axis("ms", [8.0, 10.0])
    assert (near.log, near.low) == (False, 0.0)


@pytest.mark.parametrize(
    ("low", "high", "lines"),
    [
        (0.9, 60.0, [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]),
        (0.05, 2000.0, [0.1, 1.0, 10.0, 100.0, 1000.0]),
        (1e-4, 1e5, [1e-4, 1e-2, 1.0, 100.0, 1e4]),
        (6.0, 7.0, [6.0, 7.0]),
    ],
)
def test_where_a_logarithmic_axis_has_its_lines(
    low: float, high: float, lines: list[float]
) -> None:
    assert decades(low, high) == lines


def test_panels_share_their_axis_unless_they_are_too_far_apart() -> None:
    near = shared("ms", [[1.0, 2.0], [50.0]])
    assert near[0] == near[1]
    assert own_axes(near) == []
    far = shared("ms", [[1.0, 2.0], [5000.0]])
    assert far[0] != far[1]
    assert far[0].log is far[1].log is True
    assert own_axes(far) == ["Panels have axes of their own."]


def test_axes_of_nothing_and_of_one_figure_have_a_length() -> None:
    for values in ([], [None], [3.0], [0.0]):
        found = axis("ms", values)
        assert found.low < found.high
        assert axis("ms", values, log=True).low > 0


def test_a_long_name_is_cut_where_a_word_begins() -> None:
    long = "runtimes of some long submission with Snapdragon {} and what stands beside it at length"
    several = [point(hardware="cuda", device_name=long.format(n)) for n in ("8Gen2", "8Gen3")]
    for name in told(several, longest=40).apart:
        assert name.startswith(("…8Gen", "…Snapdragon 8Gen"))


def test_several_devices_are_said_even_where_the_batch_tells_cells_apart() -> None:
    card = {"hardware": "cuda", "device_name": "NVIDIA GeForce RTX 2080 Ti"}
    single, four = point(**card, world_size=1), point(**card, world_size=4, batch_size=4)
    assert told([single, four]).apart == ["batch 1", "4 devices · batch 4"]
    shared = "inference · cuda · 4 devices · pytorch · fp32 · batch 4 · image 64"
    assert told([four]).together == shared
    assert record(four, FigureInterval(1.0))["devices"] == 4
    assert "devices" not in record(single, FigureInterval(1.0))


def test_a_name_that_says_how_many_devices_it_is_of_says_it_once() -> None:
    several = [
        point(hardware="cuda", device_name=f"{n}x NVIDIA H200", world_size=n) for n in (8, 16)
    ]
    assert told(several).apart == ["8x H200", "16x H200"]
    # By its platform alone the name is not there, and a column may lack what the name says.
    eight = point(hardware="cuda", device_name="8x NVIDIA H200", world_size=1)
    assert "cuda · 8 devices" in told([eight]).together


def test_a_heading_names_the_device_where_the_subject_has_several() -> None:
    """It read “inference · qnn · fp16” of one phone of thirty."""
    phones = [point(hardware="qnn", device_name=f"Samsung Galaxy S{n}") for n in (23, 24, 25)]
    every = Subject(points=phones).devices
    assert told(phones[:1]).together.startswith("inference · qnn · ")
    assert told(phones[:1], devices=every).together.startswith("inference · Galaxy S23 · ")


def test_every_chart_of_one_device_of_several_names_it() -> None:
    card = {"hardware": "cuda", "device_name": "NVIDIA GeForce RTX 4090"}
    several = [
        *(
            result(**card, precision=name, batch_size=n)
            for name in ("fp32", "fp16")
            for n in (1, 4)
        ),
        result(hardware="cuda", device_name="NVIDIA GeForce RTX 3090", model="other"),
    ]
    subject = Subject(points=points(several, {}))
    for name in ("precision", "pareto", "latency-by-batch"):
        made = picture(CHARTS[name], subject)
        assert made is not None
        assert "RTX 4090" in str(made.spec), name


def test_a_name_with_no_room_keeps_the_device_before_its_software() -> None:
    """Two bars read “rocm 8x Instinct MI3…”, of an MI300X and of an MI325X."""
    cards = ("8x AMD Instinct MI300X 192GB HBM3", "8x AMD Instinct MI325X 256GB HBM3e")
    several = [
        point(
            hardware="rocm",
            device_name=card,
            conditions={"engine": f"vLLM 0.6.5.dev964, Pytorch 2.7.0a0 of 2025, ROCm 6.3.{n}"},
        )
        for n, card in enumerate(cards)
    ]
    names = told(several, longest=40).apart
    assert names == ["8x Instinct MI300X 192GB HBM3", "8x Instinct MI325X 256GB HBM3e"]
    # Where nothing else tells them apart, what ran is kept.
    alike = [point(conditions=one.row["conditions"]) for one in several]
    first, second = told(alike, longest=40).apart
    assert first != second
