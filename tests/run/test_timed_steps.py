"""What timed steps leave, compared with outputs."""

import numpy as np
import pytest

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError
from accelbench.engines.shared.sketches import MOST_VALUES, places, sketch
from accelbench.models.find import find
from accelbench.run.verify.timed_steps import refuse_other, tells

ANSWERED = Case(
    find("gpt2-tiny"), Target("pytorch", "cpu"), "fp32", Shapes(2, prompt_tokens=8, new_tokens=4)
)


def answered(seed):
    draw = np.random.default_rng(seed)
    return sketch({"tokens": draw.integers(0, 99, (2, 4)), "logits": draw.standard_normal((2, 64))})


def test_steps_leave_their_logits():
    right, other = answered(1), answered(2)
    refuse_other(ANSWERED, right, right, other)
    for left in (sketch({"more": np.ones(3)}), {"tokens": right["tokens"]}):
        with pytest.raises(CaseError, match="they left no logits"):
            refuse_other(ANSWERED, left, right, other)

    right, other = answered(1), answered(2)
    more = sketch({"passages": np.arange(3)})
    refuse_other(ANSWERED, right, {**right, **more}, {**other, **more})

    nothing = np.full((2, 3), np.nan, np.float32)
    assert not tells(sketch({"scores": nothing}))
    assert not tells(sketch({"scores": nothing, "ids": np.arange(3)}))
    assert tells(sketch({"ids": np.arange(3)}))
    assert tells(sketch({"scores": np.where(np.eye(2, 3) > 0, 1.0, nothing)}))


@pytest.mark.parametrize("width", [768, 30522, 1000])
def test_every_column_of_large_outputs_is_looked_at(width):
    seen = places(8 * 512 * width, MOST_VALUES)
    assert len(set((seen % width).tolist())) >= min(width, MOST_VALUES) // 2
    assert (np.diff(seen) > 0).all()
    assert seen[-1] < 8 * 512 * width
