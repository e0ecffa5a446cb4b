"""The losses of a training case, and what they tell of its steps."""

import pytest

from accelbench.core.errors import CaseError
from accelbench.core.protocols import Block
from accelbench.core.vocabulary import Timing
from accelbench.measure.losses import LossLog


def logged(*blocks):
    """A log of blocks with these losses."""
    log = LossLog()
    for losses in blocks:
        log.record(Block(len(losses), Timing.EACH, {"step": [1] * len(losses)}, losses=losses))
    return log


def test_losses_are_kept_and_what_learns_nothing_is_told():
    assert logged([3.0], [2.0, 1.0]).columns() == {
        "loss_first": 3.0,
        "loss_last": 1.0,
        "loss_per_step": [3.0, 2.0, 1.0],
    }

    (warning,) = logged([7.0], [7.0, 7.0]).warnings()
    assert warning.startswith("The loss was the same in all 3 training steps")


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_ends_the_case_and_is_named(loss):
    with pytest.raises(CaseError, match="training step 3"):
        logged([3.0], [2.0, loss])


@pytest.mark.parametrize("losses", [[], [7.0, 7.0], [7.0, 7.0, 6.9], [0.0] * 10])
def test_otherwise_nothing_is_said(losses):
    assert logged(losses).warnings() == []


FALLING = [2.0 * 0.99**i for i in range(10)]


def test_steps_that_train_for_a_while_only_are_refused():
    with pytest.raises(CaseError, match="0 of the 40 after them: the others did not") as caught:
        logged(FALLING + [FALLING[-1]] * 40).refuse_constant()
    assert caught.value.reason == "wrong_steps"
    now_and_then = [1.7 - 0.01 * (i // 3) for i in range(60)]
    with pytest.raises(CaseError, match="the others did not train"):
        logged(FALLING + now_and_then).refuse_constant()


@pytest.mark.parametrize(
    "losses",
    [
        FALLING + [1.8] * 5,  # few
        [2.0] * 10 + [1.9] * 40,  # it had never moved with each step
        FALLING + [1.7 - 0.01 * (i - i // 6) for i in range(60)],  # a rounding, now and then
        FALLING + [1.7 - 1e-5 * min(i, 5000) for i in range(8000)],  # it has come to rest
        FALLING + [0.0] * 40,  # learned
        FALLING + [0.01] * 40,
        [],
    ],
)
def test_losses_of_honest_training_stand(losses):
    logged(losses).refuse_constant()
