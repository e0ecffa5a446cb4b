"""What is predicted beside a recommendation, apart from what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from accelbench.cli.display.columns import table
from accelbench.cli.display.recommend_cells import rate_head
from accelbench.cli.display.words import figure
from accelbench.core.spreads import interval_text
from accelbench.core.vocabulary import Provenance
from accelbench.predict.learned_words import poor_notes

Answer = Mapping[str, Any]

#: Stands before each figure that is predicted.
MARK = "~"
#: The basis of a candidate that is ranked by a prediction.
_RANKED = "predicted"
#: Bases in a word or two, as columns have room for.
_SHORT = {
    "the model here, at other sizes": "the model",
    "the model in another configuration": "the model elsewhere",
    "other models in this configuration": "other models",
    "other configurations": "other engines",
    "vendor peaks alone": "peaks",
    "measured peaks alone": "peaks",
    "peaks of a typical device": "typical peaks",
}


def predicted_table(scores: Mapping[str, Answer]) -> Table | None:
    """The predictions of candidates, a row each; None where there are none."""
    predicted = {
        name: score["predictions"]
        for name, score in scores.items()
        if score.get("predictions", {}).get("provenance") == Provenance.PREDICTED
    }
    if not predicted:
        return None
    units = {str(entry["throughput_unit"]) for entry in predicted.values()}
    several = len(units) > 1
    rows = [
        (
            _where(name, entry),
            f"{entry['runtime']} {entry['precision']}",
            f"{MARK}{figure(entry['latency'])}",
            interval_text(entry["latency_low"], entry["latency"], entry["latency_high"], figure),
            f"{MARK}{figure(entry['throughput'])}",
            str(entry["throughput_unit"]) if several else "",
            f"{MARK}{figure(entry['memory_mb'])}",
            _SHORT.get(entry["basis"], entry["basis"]),
        )
        for name, entry in predicted.items()
    ]
    heads = ("predicted on", "engine", "p50 ms", "90 % band", rate_head(units), "counts", "MB",
             "from")  # fmt: skip
    return table(heads, rows, right=(2, 3, 4, 6), below={3: 2})


def predicted_words(scores: Mapping[str, Answer]) -> Iterator[str]:
    """What the figures of that table are, and whether anything is ranked by them."""
    predicted = [
        score
        for score in scores.values()
        if score.get("predictions", {}).get("provenance") == Provenance.PREDICTED
    ]
    bases = [score["basis"] for score in predicted]
    if not bases:
        return
    ranked = bases.count(_RANKED)
    by_them = (
        "all of these are ranked by it"
        if ranked == len(bases)
        else "nothing is ranked by it"
        if not ranked
        else "ranked by it is what is predicted from results there"
    )
    yield (
        f"{MARK} predicted, not measured: nine in ten such figures lie in the band, and {by_them}."
    )
    told = (score["predictions"] for score in predicted)
    for note in poor_notes(
        (one["basis"], one["held_out_error"], one["held_out_of"]) for one in told
    ):
        yield f"note: {note}"


def _where(name: str, entry: Answer) -> str:
    device = entry["device"]
    return name if device in name else f"{name} ({device})"
