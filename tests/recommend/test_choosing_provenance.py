"""Who measured what an answer rests on. Never is a figure of others called measured here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from choosing_world import result, selector

from accelbench.recommend.evidence.cells import of_others

#: As an import leaves it: others have measured it.
TIMM = {"provenance": "imported", "conditions": {"source": {"name": "timm"}}}
CARD = {"hardware": "cuda", "latency_p50_ms": 2.0}
MORE = {"batch_size": 8, "latency_p50_ms": 12.0}


def asked(folder: Path, *rows: dict[str, Any], **more: Any) -> Any:
    among = {"available_hardware": ["cpu", "cuda"]}
    return selector(folder, *rows).select_hardware(model_name="bert-tiny", **{**among, **more})


def whose(entry: Any) -> tuple[Any, ...]:
    return entry["provenance"], entry["rests_on"], entry["sources"]


def test_a_figure_says_who_measured_it(tmp_path):
    answer = asked(tmp_path, result(), result(**CARD, **TIMM))
    assert whose(answer["all_scores"]["cuda"]) == ("imported", ["imported"], ["timm"])
    assert whose(answer["all_scores"]["cpu"]) == ("measured", ["measured"], [])
    assert "; measured by others (timm) in 1 launch." in answer["explanation"]


def test_what_only_a_rule_speaks_for_rests_on_nobodys_measurement(tmp_path):
    answer = asked(tmp_path, result())
    assert whose(answer["all_scores"]["cuda"]) == (None, [], [])


def test_options_under_limits_say_who_measured_them(tmp_path):
    rows = (result(**TIMM), result(**MORE, **TIMM))
    found = selector(tmp_path, *rows).best_under(
        {"max_latency_ms": 9.0},
        model_name="bert-tiny",
        available_hardware=["cpu"],
        batch_sizes=[1, 4],
    )
    assert whose(found["best"]) == ("imported", ["imported"], ["timm"])
    assert "measured by others (timm), 125 " in found["explanation"]
    assert "100 MB (measured by others)" in found["explanation"]


def test_a_ranking_says_who_measured_its_figures(tmp_path):
    chosen = selector(tmp_path, result(**TIMM))
    (entry,) = chosen.rank_models("embedding")
    assert whose(entry) == ("imported", ["imported"], ["timm"])


def test_what_does_not_answer_says_who_measured_it(tmp_path):
    rate = result(**CARD, **TIMM, scenario="offline", throughput=900.0)
    answer = asked(tmp_path, result(), {**rate, "latency_p50_ms": None})
    (other,) = answer["measured_otherwise"]
    assert (other["provenance"], other["source"]) == ("imported", "timm")
    assert "Measured by others (timm), though not as asked: cuda" in answer["explanation"]
    narrow = result(**CARD, **TIMM, precision="int8")
    (out,) = asked(tmp_path, result(), narrow)["left_out"]
    assert (out["provenance"], out["source"]) == ("imported", "timm")


def test_the_sentence_names_the_sources_and_is_there_for_others_alone():
    own = {"provenance": "measured", "rests_on": ["measured"], "sources": []}
    others = {"provenance": "imported", "rests_on": ["imported"], "sources": ["timm"]}
    estimate = {**others, "provenance": None}
    assert of_others([own]) == ""
    assert of_others([own, others]) == "imported: measured by others (timm), not here."
    assert of_others([estimate]) == "Estimated from what was measured by others (timm), not here."
