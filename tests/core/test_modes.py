"""A mode is one word everywhere, and refused in one sentence everywhere."""

import pytest

from accelbench.cli.arguments.resolved_values import modes
from accelbench.cli.commands.predict import question_of
from accelbench.core.errors import UsageError
from accelbench.core.vocabulary import Mode, parse_mode
from accelbench.judge.filters import filters_of
from accelbench.recommend.query import mode_named


def test_case_and_space_do_not_matter():
    assert parse_mode(" Training ") is Mode.TRAINING
    assert filters_of(modes=["INFERENCE"]) == {"mode": ("inference",)}


@pytest.mark.parametrize(
    "ask",
    [
        lambda word: modes([word], training=False),
        lambda word: filters_of(modes=[word]),
        lambda word: mode_named(word),
        lambda word: question_of([], [1], {}, [], [], [], word),
    ],
)
def test_every_place_refuses_in_the_same_words(ask):
    with pytest.raises(UsageError, match="There is no mode 'sleeping'") as refused:
        ask("sleeping")
    assert refused.value.advice.startswith("Modes: inference, training")
