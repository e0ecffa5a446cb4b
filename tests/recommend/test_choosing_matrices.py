"""Which source of compatibility is believed, and how a page's tables are read."""

from __future__ import annotations

from typing import Any

import pytest
from choosing_world import result, selector

from accelbench.core.errors import UsageError
from accelbench.core.vocabulary import FAMILIES
from accelbench.judge.matrix import matrix
from accelbench.present.markdown import as_markdown
from accelbench.present.matrix import MatrixHeader, presented
from accelbench.recommend.matrices import FORWARD_ONLY, of_markdown

PAGE = """
# Compatibility

| Model Family | CPU | CUDA | ROCm (AMD) | MPS (Apple) | OpenVINO | Qualcomm | WebNN | WebGPU |
|--------------|-----|------|------------|-------------|----------|----------|-------|--------|
| Embedding | ✅ High | ✅ High | ✅ Medium | ⚠️ Low | ❌ N/A | ✅ Medium | ✅ High | N/A |
| Text Generation | ⚠️ Low | ✅ High | ✅ | ⚠️ | ❌ | ❌ N/A | ❌ N/A | ⚠️ Low |

| something | else |
|---|---|
| vision | of no platform |
"""


def levels(chosen: Any, family: str = "embedding") -> dict[str, tuple[bool, str, str]]:
    entries = chosen.compatibility_matrix["model_families"][family]["hardware_compatibility"]
    return {
        name: (one["compatible"], one["performance_rating"], one["source"])
        for name, one in entries.items()
    }


def test_a_page_is_read():
    # A page is read with the documents marks.
    found = of_markdown(PAGE, "page").entries
    embedding = {key[1]: (e.compatible, e.rating) for key, e in found.items() if "emb" in key[0]}
    assert embedding == {
        "cpu": (True, "high"),
        "cuda": (True, "high"),
        "rocm": (True, "medium"),
        "mps": (True, "low"),
        "openvino": (False, None),
        "qnn": (True, "medium"),
        "webnn": (True, "high"),
    }  # N/A alone: nobody tried
    assert found[("text_generation", "rocm", "")].rating is None
    assert found[("text_generation", "mps", "")].rating == "low"
    # Our own page is read as well.
    rows = [
        {**result(), "result_id": "a", "run_id": "r", "arm": "", "device": "cpu:0"},
        {**result(hardware="cuda", latency_p50_ms=1.0), "result_id": "b", "run_id": "r",
         "arm": "", "device": "cuda:0"},
    ]  # fmt: skip
    made = matrix(rows)
    from accelbench.judge.machines import Machine

    about = MatrixHeader("2026-01-01T00:00:00Z", Machine("lab"), "fp32", "inference", ())
    page = as_markdown(presented(made, about, explain=True))
    found = of_markdown(page, "ours").entries
    assert found[("embedding", "cuda", "")].rating == "high"
    assert found[("embedding", "cpu", "")].compatible
    assert ("embedding", "rocm", "") not in found


def test_a_file_that_is_named_comes_before_the_database_and_gaps_fall_to_the_next(tmp_path):
    (tmp_path / "page.md").write_text(PAGE, encoding="utf-8")
    both = (result(), result(hardware="cuda", latency_p50_ms=1.0), result(hardware="webgpu"))
    chosen = selector(tmp_path, *both, matrix_file=tmp_path / "page.md")
    found = levels(chosen)
    page = str(tmp_path / "page.md")
    assert found["rocm"] == (True, "medium", page)
    assert found["openvino"] == (False, "n/a", page)
    assert found["webgpu"][2] == "the database"
    assert chosen.compatibility_matrix["source"] == page
    answer = chosen.select_hardware("embedding", "bert-tiny", 1)
    assert answer["matrix_source"] == page
    assert f"Compatibility by {page}" in answer["explanation"]
    assert not answer["all_scores"]["openvino"]["compatible"]


def test_the_database_rates_by_the_matrixs_own_rule(tmp_path):
    chosen = selector(
        tmp_path,
        result(latency_p50_ms=10.0),
        result(hardware="cuda", latency_p50_ms=4.0),
        result(hardware="openvino", latency_p50_ms=10.5),
        result(hardware="webnn", latency_p50_ms=50.0),
    )
    found = levels(chosen)
    assert [found[name][1] for name in ("cuda", "cpu", "openvino", "webnn")] == [
        *("high", "medium", "medium", "low")
    ]
    assert {found[name][2] for name in ("cuda", "cpu", "openvino", "webnn")} == {"the database"}
    assert found["rocm"] == (True, "medium", "the default")


@pytest.mark.parametrize(("samples", "rated"), [(3, False), (30, True), (None, True)])
def test_a_few_samples_rate_no_platform(tmp_path, samples, rated):
    few = {"sample_count": samples}
    both = selector(tmp_path, result(**few), result(hardware="rocm", latency_p50_ms=1.0, **few))
    families = both.compatibility_matrix["model_families"]
    entry = families["embedding"]["hardware_compatibility"]["rocm"]
    # Ten times the CPU is high; by the rules alone rocm is medium.
    assert (entry["compatible"], entry["performance_rating"]) == (
        True,
        "high" if rated else "medium",
    )


def test_a_claude_file_is_looked_for_after_the_database(tmp_path):
    (tmp_path / "CLAUDE.md").write_text(PAGE, encoding="utf-8")
    assert levels(selector(tmp_path))["mps"] == (True, "low", "./CLAUDE.md")
    assert selector(tmp_path).compatibility_matrix["source"] == "./CLAUDE.md"
    with_data = selector(tmp_path, result(), result(hardware="mps", latency_p50_ms=1.0))
    assert levels(with_data)["mps"] == (True, "high", "the database")
    assert levels(with_data)["rocm"] == (True, "medium", "./CLAUDE.md")


def test_what_is_measured_runs_whatever_a_page_says(tmp_path):
    (tmp_path / "page.md").write_text(PAGE, encoding="utf-8")
    chosen = selector(
        tmp_path, result(hardware="openvino", latency_p50_ms=1.0), matrix_file=tmp_path / "page.md"
    )
    answer = chosen.select_hardware("embedding", "bert-tiny", 1)
    assert answer["primary_recommendation"] == "openvino"


def test_a_file_without_a_matrix_is_refused(tmp_path):
    (tmp_path / "page.md").write_text("# Nothing\n", encoding="utf-8")
    with pytest.raises(UsageError, match="no compatibility matrix"):
        selector(tmp_path, matrix_file=tmp_path / "page.md")
    with pytest.raises(UsageError, match="cannot be read"):
        selector(tmp_path, matrix_file=tmp_path / "none.md")


def test_the_default_has_every_family_and_platform(tmp_path):
    shown = selector(tmp_path).compatibility_matrix
    assert set(shown["model_families"]) == set(FAMILIES)
    assert shown["source"] == "the default"


def test_a_platform_without_generating_engine_is_compatible_by_forward_passes_only(tmp_path):
    families: Any = selector(tmp_path).compatibility_matrix["model_families"]
    text = families["text_generation"]["hardware_compatibility"]
    assert text["openvino"]["compatible"] is True
    assert text["openvino"]["reason"] == FORWARD_ONLY
    assert "reason" not in text["cpu"]
    assert "reason" not in families["vision"]["hardware_compatibility"]["openvino"]
