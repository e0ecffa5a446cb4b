"""Names and axes of charts: what a reader at half a page needs, and no more."""

from __future__ import annotations

import pytest
from made_up_charts import result

from accelbench.core.formatting import format_count, format_value
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
def test_a_figure_has_digits_and_no_exponent(value, said):
    assert format_value(value) == said


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
def test_a_device_s_short_name(name, short):
    assert short_device(name) == short


def test_names_of_cells_and_devices():
    # Cells say what tells them apart and panels what they share.
    found = told([point(), point(runtime="jax"), point(runtime="onnxruntime")])
    assert found.apart == ["pytorch", "jax", "onnxruntime"]
    assert found.together == "inference · cpu · fp32 · batch 1 · image 64"
    # Devices of one platform stand for it.
    cards = ("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 3090")
    several = [point(hardware="cuda", device_name=name) for name in cards]
    assert told(several).apart == ["RTX 4090", "RTX 3090"]
    assert told([*several, point()]).apart == ["cuda RTX 4090", "cuda RTX 3090", "cpu"]
    # Devices that are alike when short keep their names.
    several = [
        point(hardware="cuda", device_name=f"{maker} RTX 4090") for maker in ("NVIDIA", "AMD")
    ]
    assert told(several).apart == ["NVIDIA RTX 4090", "AMD RTX 4090"]
    found = told([point(), point(hardware="openvino", runtime="openvino")], always=("runtime",))
    assert found.apart == ["cpu · pytorch", "openvino"]
    assert told([point(), point(provenance="simulated")]).apart == ["measured", "simulated"]


def test_names_with_kinds_and_panels():
    # A bar of two pixels looks the same, whatever fills it.
    several = [
        point(),
        point(runtime="jax", provenance="simulated"),
        point(runtime="openvino", provenance="imported"),
    ]
    names = ["pytorch", "jax (simulated)", "openvino (imported)"]
    assert told(several).apart == names
    assert told(several[1:2], always=("runtime",), among=several).apart == names[1:2]
    assert told(several[1:2], always=("runtime",)).apart == ["jax"]
    # Each name says what people ask first and not all have in common.
    found = told([point(), point(runtime="jax", precision="bf16"), point(runtime="openvino")])
    assert found.apart == ["pytorch · fp32", "jax · bf16", "openvino · fp32"]
    assert found.together == "inference · cpu · batch 1 · image 64"
    # A panel of one device names it where the picture has others.
    card = point(hardware="cuda", device_name="NVIDIA GeForce RTX 4090")
    other = point(hardware="cuda", device_name="NVIDIA GeForce RTX 3090")
    assert "cuda" in told([card]).together
    assert "RTX 4090" in told([card], among=[card, other]).together
    # Of long names that begin alike what differs is kept.
    long = "Microsoft Azure Standard D{}as v5 Virtual Machine Instance of 2024, Ubuntu"
    several = [point(hardware="cuda", device_name=long.format(n)) for n in (2, 64)]
    first, second = told(several, longest=36).apart
    assert first != second
    assert first.startswith("…")
    assert "D2as" in first
    assert "D64as" in second
    assert max(map(len, (first, second))) <= 36


def test_names_that_are_cut():
    # The word for the kind is never cut.
    several = [point(runtime="r" * 90), point(runtime="s" * 90, provenance="simulated")]
    names = told(several, longest=36).apart
    assert names[1].endswith(" (simulated)")
    assert max(map(len, names)) <= 36
    assert unique(["a", "b", "a"]) == ["a", "b", "a (2)"]
    assert safe("x" * 300) == f"{'x' * 21}…{'x' * 20}"
    assert safe("a\x00b\u202ec\nd") == "a<U+0000>b<U+202E>c<U+000A>d"
    # How many are left out.
    assert left_out(0, "cell") == left_out(-3, "cell") == []
    assert left_out(1, "cell") == ["1 more cell not drawn: accelbench report lists all."]
    assert left_out(2, "launch", "launches", "wait") == ["2 more launches not drawn: wait."]
    assert format_count(1200, "cell") == "1,200 cells"


def test_axes():
    # Far figures have a logarithmic axis that says so.
    far = axis("ms", [1.0, 500.0, None])
    assert far.log
    assert far.low < 1.0 < 500.0 < far.high
    assert far.of("value")["title"] == "ms (log)"
    assert far.of("value")["axis"]["values"] == [1.0, 10.0, 100.0]
    near = axis("ms", [8.0, 10.0])
    assert (near.log, near.low) == (False, 0.0)
    # Panels share their axis unless they are too far apart.
    near = shared("ms", [[1.0, 2.0], [50.0]])
    assert near[0] == near[1]
    assert own_axes(near) == []
    far = shared("ms", [[1.0, 2.0], [5000.0]])
    assert far[0] != far[1]
    assert far[0].log is far[1].log is True
    assert own_axes(far) == ["Panels have axes of their own."]
    # Axes of nothing and of one figure have a length.
    for values in ([], [None], [3.0], [0.0]):
        found = axis("ms", values)
        assert found.low < found.high
        assert axis("ms", values, log=True).low > 0


@pytest.mark.parametrize(
    ("low", "high", "lines"),
    [
        (0.9, 60.0, [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]),
        (0.05, 2000.0, [0.1, 1.0, 10.0, 100.0, 1000.0]),
        (1e-4, 1e5, [1e-4, 1e-2, 1.0, 100.0, 1e4]),
        (6.0, 7.0, [6.0, 7.0]),
    ],
)
def test_where_a_logarithmic_axis_has_its_lines(low, high, lines):
    assert decades(low, high) == lines


def test_names_of_devices():
    # A long name is cut where a word begins.
    long = "runtimes of some long submission with Snapdragon {} and what stands beside it at length"
    several = [point(hardware="cuda", device_name=long.format(n)) for n in ("8Gen2", "8Gen3")]
    for name in told(several, longest=40).apart:
        assert name.startswith(("…8Gen", "…Snapdragon 8Gen"))
    # Several devices are said even where the batch tells cells apart.
    card = {"hardware": "cuda", "device_name": "NVIDIA GeForce RTX 2080 Ti"}
    single, four = point(**card, world_size=1), point(**card, world_size=4, batch_size=4)
    assert told([single, four]).apart == ["batch 1", "4 devices · batch 4"]
    shared = "inference · cuda · 4 devices · pytorch · fp32 · batch 4 · image 64"
    assert told([four]).together == shared
    assert record(four, FigureInterval(1.0))["devices"] == 4
    assert "devices" not in record(single, FigureInterval(1.0))
    # A name that says how many devices it is of says it once.
    several = [
        point(hardware="cuda", device_name=f"{n}x NVIDIA H200", world_size=n) for n in (8, 16)
    ]
    assert told(several).apart == ["8x H200", "16x H200"]
    # By its platform alone the name is not there, and a column may lack what the name says.
    eight = point(hardware="cuda", device_name="8x NVIDIA H200", world_size=1)
    assert "cuda · 8 devices" in told([eight]).together
    # It read “inference · qnn · fp16” of one phone of thirty.
    phones = [point(hardware="qnn", device_name=f"Samsung Galaxy S{n}") for n in (23, 24, 25)]
    every = Subject(points=phones).devices
    assert told(phones[:1]).together.startswith("inference · qnn · ")
    assert told(phones[:1], devices=every).together.startswith("inference · Galaxy S23 · ")
    # Every chart of one device of several names it.
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
    # Two bars read “rocm 8x Instinct MI3…”, of an MI300X and of an MI325X.
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
