"""A file of prices: what it may say, and one sentence for everything that it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelbench.core.errors import UsageError
from accelbench.exchange.prices import find_similar, load_prices, read_prices


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "prices.json"


def refusal(file: Path, text: str) -> str:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_prices(file)
    return str(caught.value).replace(str(file), "FILE")


def test_prices_with_comments(file):
    file.write_text(
        '{ // ours\n"currency": "eur", "per_hour": {"cuda": 1.20, /* old */ "lab-7": 3}}',
        encoding="utf-8",
    )
    found = read_prices(file)
    assert found.per_hour == {"cuda": 1.2, "lab-7": 3.0}
    assert (found.currency, found.sign, found.source) == ("EUR", "€", "prices.json")


def test_a_currency_is_dollars_where_nothing_is_said(file):
    file.write_text('{"per_hour": {"cpu": 0.1}}', encoding="utf-8")
    assert (read_prices(file).currency, read_prices(file).sign) == ("USD", "$")
    file.write_text('{"currency": "CHF", "per_hour": {"cpu": 0.1}}', encoding="utf-8")
    assert read_prices(file).sign == "CHF "


@pytest.mark.parametrize("price", ["0", "-0.5", "1e300"])
def test_an_impossible_price_is_refused_with_its_line(file, price):
    said = refusal(file, f'{{"per_hour": {{\n"cuda": 1,\n"cpu": {price}}}}}')
    assert said.startswith("FILE, line 3, 'cpu': ")
    assert (
        "is not a valid price. A price per hour is above 0. Leave out names without a price."
        in said
    )


@pytest.mark.parametrize("price", ['"0.69"', "true", "null", "[1]", '{"usd": 1}'])
def test_a_price_is_a_number(file, price):
    assert "'cpu': a price is a number." in refusal(file, f'{{"per_hour": {{"cpu": {price}}}}}')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"per_hours": {"cpu": 1}}', "'per_hours': it is not a known key. Did you mean per_hour?"),
        ('{"currncy": "USD", "per_hour": {}}', "Did you mean currency?"),
        ('{"cuda": 1.2}', 'Prices belong in per_hour: {"per_hour": {"cuda": 1.2}}.'),
        ('{"machines": {}}', "Keys: currency, per_hour."),
        ("{}", "FILE: it has no prices under 'per_hour'."),
        ('{"per_hour": {}}', "FILE: it has no prices under 'per_hour'."),
        ('{"per_hour": [1]}', "FILE: it has no prices under 'per_hour'."),
        ('{"per_hour": {" ": 1}}', "a price needs a name."),
        ('{"per_hour": {"cpu": 1, "CPU ": 2}}', "it occurs twice. Remove one of them."),
        ('{"per_hour": {"cpu": 1, "cpu": 2}}', "'cpu' is there twice"),
        ('{"currency": "dollars", "per_hour": {"cpu": 1}}', "'dollars' is not a currency."),
        ('{"currency": 7, "per_hour": {"cpu": 1}}', "7 is not a currency."),
        ("[1]", "FILE: prices are a JSON object."),
        ('{"per_hour": {"cpu": NaN}}', "FILE, line 1: NaN is not valid JSON."),
        ('{"per_hour": ', "FILE, line 1:"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(file, text, expected):
    assert expected in refusal(file, text)


def test_a_file_that_cannot_be_read(file):
    with pytest.raises(UsageError, match="cannot be read"):
        read_prices(file)
    file.write_bytes(b'{"per_hour": {"\xff": 1}}')
    with pytest.raises(UsageError, match="not text in UTF-8"):
        read_prices(file)


def test_the_option_counts_before_the_variable(file, tmp_path, monkeypatch):
    assert load_prices(None) is None
    file.write_text('{"per_hour": {"cpu": 1}}', encoding="utf-8")
    other = tmp_path / "other.json"
    other.write_text('{"per_hour": {"cpu": 2}}', encoding="utf-8")
    monkeypatch.setenv("ACCELBENCH_PRICES", str(other))
    by_variable, by_option = load_prices(None), load_prices(file)
    assert by_variable is not None
    assert by_option is not None
    assert (by_variable.per_hour["cpu"], by_option.per_hour["cpu"]) == (2.0, 1.0)
    monkeypatch.setenv("ACCELBENCH_PRICES", "")
    assert load_prices(None) is None


def test_names_that_are_meant_are_like_it_or_have_it_in_them():
    there = ["NVIDIA GeForce RTX 4090", "AMD EPYC 9355"]
    assert find_similar("rtx 4090", there) == ["NVIDIA GeForce RTX 4090"]
    assert find_similar("AMD EPIC 9355", there) == ["AMD EPYC 9355"]
    assert find_similar("tpu", there) == []
