"""Lists and durations as people type them."""

import pytest

from accelbench.cli.arguments.shared_options import joined
from accelbench.core.errors import UsageError
from accelbench.core.formatting import LARGEST, parse_duration, parse_integers, split_words
from accelbench.core.precision import PRECISIONS
from accelbench.core.vocabulary import Mode
from accelbench.engines.shared.names import known_runtimes
from accelbench.hardware.detect import list_platforms
from accelbench.judge.baselines import ALLOWED
from accelbench.models.selection import is_model_word

LISTS = {"--batch-sizes", "--hardware"}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("m --batch-sizes 1 4 8", "m --batch-sizes 1,4,8"),
        ("m --batch-sizes 1,4 8 --json", "m --batch-sizes 1,4,8 --json"),
        ("m --batch-sizes 1 --batch-sizes 4 8", "m --batch-sizes 1 --batch-sizes 4,8"),
        ("m n --seed 3 --hardware cpu cuda:1", "m n --seed 3 --hardware cpu,cuda:1"),
        ("--batch-sizes=1,4 m", "--batch-sizes=1,4 m"),
        ("--batch-sizes 1 -- m", "--batch-sizes 1 -- m"),
        ("m --batch-sizes --json", "m --batch-sizes --json"),
        ("--batch-sizes 1 -q", "--batch-sizes 1 -q"),
        ("m -", "m -"),
        ("", ""),
    ],
)
def test_values_after_a_list_option_are_its_list(typed, meant):
    assert joined(typed.split(), LISTS) == meant.split()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--hardware a,b m.py:f --json", "--hardware a,b m.py:f --json"),
        ("--hardware a b m.onnx bert-tiny", "--hardware a,b m.onnx bert-tiny"),
        ("--hardware bert-tiny", "--hardware bert-tiny"),  # nothing else is its list
        ("--models bert-tiny gpt2", "--models bert-tiny,gpt2"),
        ("--run bert-tiny gpt2", "--run bert-tiny,gpt2"),  # labels may be called so
    ],
)
def test_a_model_ends_the_list_before_it(typed, meant):
    lists = {*LISTS, "--models", "--run"}
    assert joined(typed.split(), lists, is_model_word) == meant.split()


def test_values_of_lists():
    values = {
        *list_platforms(),
        *known_runtimes(),
        *PRECISIONS,
        *Mode,
        *ALLOWED,
        "gpu",
        "all",
        "both",
    }
    assert [value for value in sorted(values) if is_model_word(value)] == []
    assert split_words(["b, a", "a,,c", " "]) == ("b", "a", "c")
    assert split_words(None) == ()
    # Numbers are whole and within bounds.
    assert parse_integers(["1,8", "32"], "--x") == (1, 8, 32)
    assert parse_integers([str(LARGEST)], "--x") == (LARGEST,)
    for wrong in ("0", "-1", str(LARGEST + 1), "1.5", "one", "1e3", "0x10"):
        with pytest.raises(UsageError, match="--x takes"):
            parse_integers([wrong], "--x")


@pytest.mark.parametrize(
    ("text", "value"),
    [("90", 90.0), ("90s", 90.0), ("10m", 600.0), ("1.5h", 5400.0), ("2M", 120.0), (None, None)],
)
def test_durations(text, value):
    assert parse_duration(text, "--x") == value


@pytest.mark.parametrize("text", ["", "s", "0", "-1", "10ms", "nan", "inf", "1e999", "ten"])
def test_durations_that_are_none_are_refused(text):
    with pytest.raises(UsageError, match="--x takes a duration"):
        parse_duration(text, "--x")
