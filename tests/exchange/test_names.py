from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.exchange.result_file import result_file_name, safe_name

WHEN = datetime(2025, 4, 10, 12, 0, 0, tzinfo=UTC)


def test_names_of_files():
    # The documents spelling.
    assert (
        result_file_name("gpt2", "cuda", "fp16", WHEN) == "gpt2_cuda_float16_20250410_120000.json"
    )
    assert result_file_name("b", "cpu", "amp-bf16", WHEN).startswith("b_cpu_amp_bfloat16_")
    elsewhere = datetime(2025, 4, 10, 2, 0, 0, tzinfo=timezone(timedelta(hours=-10)))
    assert "_20250410_120000." in result_file_name("m", "cpu", "fp32", elsewhere)
    assert safe_name("😀") != safe_name("😁")
    assert safe_name("a" * 300) != safe_name("a" * 301)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("bert-base-uncased", "bert-base-uncased"),
        ("BAAI/bge-small", "BAAI-bge-small"),
        ("../../etc/passwd", "etc-passwd"),
        ("..\\..\\win", "win"),
        ("a\0b\nc", "a-b-c"),
        ("modèle", "modele"),
        ("a 😀 b", "a-b"),
        ("..hidden", "hidden"),
        ("v1.5_x", "v1.5_x"),
    ],
)
def test_names_are_one_plain_part(text, name):
    assert safe_name(text) == name


@given(st.text(st.characters(codec=None)))
def test_every_name_is_safe(text):
    name = safe_name(text)
    assert name
    assert len(name) <= 100
    assert Path(name).name == name
    assert name.isascii()
    assert name[0] not in ".-"
    assert set(name).isdisjoint('/\\:*?"<>|\0 ')
