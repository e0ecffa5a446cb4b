"""Which columns of a Markdown page are hardware, and which words in its cells are levels."""

from __future__ import annotations

import pytest
from choosing_world import selector

from accelbench.recommend.matrices import of_markdown


def said(page: str, *known: str, named: bool = True) -> dict[tuple[str, str], str | None]:
    """Family and platform with the level, or "no"."""
    entries = of_markdown(page, "page", known, named=named).entries
    return {
        (family, hardware): entry.rating if entry.compatible else "no"
        for (family, hardware, _), entry in entries.items()
    }


def column(heading: str, *cells: str, **more: bool) -> dict[str, str | None]:
    """What a page with a CPU and this column says of the column's hardware, for vision."""
    rows = zip(("Vision", "Audio"), cells or ("High", "Low"), strict=False)
    table = [f"| Family | CPU | {heading} |", "|---|---|---|"]
    table += [f"| {family} | ✅ High | {cell} |" for family, cell in rows]
    found = said("\n".join(table), **more)
    assert found["vision", "cpu"] == "high"
    return {name: level for (family, name), level in found.items() if family == "vision"} | {
        "cpu": None
    }


def hardware(heading: str, *cells: str, **more: bool) -> set[str]:
    return set(column(heading, *cells, **more)) - {"cpu"}


@pytest.mark.parametrize(
    ("heading", "cells"),
    [
        ("Notes", ("High memory use", "Low latency")),
        ("Comments", ("medium effort", "")),
        ("Best for", ("high throughput", "low power")),
        ("Notes", ("", "")),
        ("Priority", ("High", "soon")),
    ],
)
def test_a_column_that_is_no_hardware_is_none(heading, cells):
    assert hardware(heading, *cells) == set()


def test_hardware_of_ones_own_is_a_column_of_levels_alone():
    assert hardware("NPU 9 (beta)", "✅ High", "N/A") == {"npu 9"}
    # A page that nobody has named for its matrix may well have other tables of levels.
    assert hardware("Priority", "High", "Low", named=False) == set()
    page = "| Family | My-NPU |\n|---|---|\n| Vision | High, with care |\n"
    assert said(page, "My-NPU") == {("vision", "My-NPU"): "high"}
    assert said(page) == {}


@pytest.mark.parametrize(
    ("heading", "platforms"),
    [
        ("Intel OpenVINO", {"openvino"}),
        ("Qualcomm QNN", {"qnn"}),
        ("NVIDIA CUDA", {"cuda"}),
        ("Apple (MPS)", {"mps"}),
        ("Apple Silicon", {"mps"}),
        ("AMD", {"rocm"}),
        ("ROCm (AMD)", {"rocm"}),
        ("WebNN / WebGPU", {"webnn", "webgpu"}),
        ("**CUDA**", {"cuda"}),
        ("[WebNN](https://webnn.dev/cuda)", {"webnn"}),
        ("Intel GPU", {"openvino"}),
        ("AMD CPU", set()),  # the CPU's column, which stands there already
    ],
)
def test_a_heading_of_several_words_names_its_platform(heading, platforms):
    assert hardware(heading) == platforms


@pytest.mark.parametrize(
    ("cell", "level"),
    [
        ("✅ High", "high"),
        ("⚠️ Medium (fp16)", "medium"),
        ("❌ Low", "no"),
        ("✗", "no"),
        ("not supported", "no"),
        ("yes", None),
        ("⚠️", "low"),
    ],
)
def test_levels_and_marks(cell, level):
    assert column("CUDA", cell)["cuda"] == level


@pytest.mark.parametrize("cell", ["highly experimental", "slow", "n/a", "below par", "high-end"])
def test_a_part_of_a_word_is_no_level(cell):
    assert "cuda" not in column("CUDA", cell)


def test_odd_pages_are_read_as_they_are_meant():
    bare = "Family | CPU | CUDA\n--- | --- | ---\nVision | Low | High\n\nthat is a | b\n"
    assert said(bare) == {("vision", "cpu"): "low", ("vision", "cuda"): "high"}
    fenced = "```\n| Family | CPU |\n|---|---|\n| Vision | Low |\n```\n"
    assert said(fenced) == {}
    rows = (
        "| Family | CPU | CUDA |",
        "|---|---|",
        "| Vision | High |",
        "| Audio / Speech | Low | a \\| b |",
    )
    short = "\n".join(rows)
    assert said(short) == {("vision", "cpu"): "high", ("audio", "cpu"): "low"}


def test_a_claude_file_about_something_else_brings_no_hardware(tmp_path):
    (tmp_path / "CLAUDE.md").write_text(
        "# Rules\n\n| Audio | Priority | Owner |\n|---|---|---|\n| vision | High | low |\n"
    )
    answer = selector(tmp_path).select_hardware("vision", "of-ours-50m")
    assert not {"priority", "owner"} & set(answer["all_scores"])
    assert answer["matrix_source"] == "the default"


def test_a_page_may_rate_what_only_the_configuration_knows(tmp_path):
    (tmp_path / "m.md").write_text("| Family | NPU9 |\n|---|---|\n| Vision | ✅ High, fast |\n")
    config = {"hardware_preferences": {"npu9": {"cost_factor": 1.0}}}
    chosen = selector(tmp_path, config_path=config, matrix_file=tmp_path / "m.md")
    scores = chosen.select_hardware("vision", "of-ours-50m")["all_scores"]
    assert scores["npu9"]["performance_rating"] == "high"
