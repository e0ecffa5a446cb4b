"""The selection map: an answer for each family, size, batch and mode, nested as documented."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from accelbench.core.vocabulary import FAMILIES, Mode
from accelbench.select.answer.answers import Answer
from accelbench.select.query.config import SIZES

BATCHES = (1, 4, 16, 32, 64)
#: It is always to be had: the last of the fallbacks where it is no better.
LAST_RESORT = "cpu"

#: model family, model name, batch size, mode → an answer.
Select = Callable[[str, str, int, str], Answer]


def stand_in(family: str, size: str, categories: Mapping[str, float]) -> str:
    """The name of a model that nobody has: it says its size, and nothing is known of it."""
    millions = f"{categories[size] / 1e6:f}".rstrip("0").rstrip(".")
    return f"any-{family}-{millions}m"


def selection_map(
    select: Select, categories: Mapping[str, float], timestamp: str
) -> dict[str, object]:
    """The whole map; a size is at one item, a batch is of a model of medium size."""
    return {
        "timestamp": timestamp,
        "model_families": {
            family.value: _family(family.value, select, categories) for family in FAMILIES
        },
    }


def _family(family: str, select: Select, categories: Mapping[str, float]) -> dict[str, object]:
    modes = [mode.value for mode in Mode]
    sizes = {
        size: {
            mode: _kept(select(family, stand_in(family, size, categories), 1, mode))
            for mode in modes
        }
        for size in SIZES
    }
    usual = stand_in(family, "medium", categories)
    batches = {
        mode: {
            "batch_sizes": {
                str(batch): _kept(select(family, usual, batch, mode)) for batch in BATCHES
            }
        }
        for mode in modes
    }
    return {"model_sizes": sizes, **batches}


def _kept(answer: Answer) -> dict[str, object]:
    """The first, what comes next, and what is always there."""
    return {
        "primary": answer.get("primary_recommendation"),
        "fallbacks": shortened(answer.get("fallback_options") or ()),
    }


def shortened(fallbacks: Sequence[str]) -> list[str]:
    """The best alternative and the last resort."""
    kept = list(fallbacks[:1])
    return [*kept, LAST_RESORT] if LAST_RESORT in fallbacks[1:] else list(fallbacks[:2])
