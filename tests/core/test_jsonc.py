"""JSON with comments: the same values as plain JSON, and errors that name the right line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.core.jsonc import JsonError, Object, blank_comments, parse

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    # Strings that look like comments or hold quotes are what a stripper gets wrong.
    | st.text() | st.sampled_from(['// "', "/* */", '\\"//', "http://a/*b*/"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("//"), inner),
    max_leaves=20,
)  # fmt: skip


@given(VALUES, st.sampled_from([None, 1]))
def test_plain_json_means_what_it_means_elsewhere(value, indent):
    assert parse(json.dumps(value, indent=indent)) == value
    assert parse(json.dumps(value, ensure_ascii=False)) == value


@given(st.text(alphabet='{}[]",:/*\\ \n\xa0a1-.e\ufeff') | st.text())
def test_any_text_is_either_json_or_told_with_a_line(text):
    found = parsed(text)
    if isinstance(found, JsonError):
        assert 1 <= found.line <= text.count("\n") + 1
    else:
        assert found == json.loads(blank_comments(text))


def parsed(text):
    """The value, or the error: any other kind of error ends the test."""
    try:
        return parse(text)
    except JsonError as error:
        return error


def test_comments_and_lines():
    text = '{ // one\n "a": /* two\n lines */ 1, "b//": "/* no */" }\n// end'
    blanked = blank_comments(text)
    assert len(blanked) == len(text)
    assert [i for i, c in enumerate(blanked) if c == "\n"] == [
        i for i, c in enumerate(text) if c == "\n"
    ]
    assert parse(text) == {"a": 1, "b//": "/* no */"}
    assert blanked.index('"b//"') == text.index('"b//"')

    found = parse('// a\n{"a": {\n"b": 1,\n\n"c": [{"d": 2}]}}')
    assert isinstance(found, Object)
    assert (found.line, found.lines) == (2, {"a": 2})
    assert found["a"].lines == {"b": 3, "c": 5}
    assert found["a"]["c"][0].lines == {"d": 5}


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "empty"),
        ("\n // only this\n", 1, "empty"),
        ('{\n"a": 1\n"b": 2}', 3, "comma"),
        ('{\n"a": 1,\n}', 3, "key"),
        ('{"a": 1,\n"b" 2}', 2, "colon"),
        ('{\n"a": 1,\n"a": 2}', 3, "'a' is there twice"),
        ('{"a":\nnope}', 2, "expecting value"),
        ('{"a":\n\n"open}', 3, "nterminated string"),
        ("{\n'a': 1}", 2, "double quotes"),
        ("[1\n2]", 2, "comma"),
        ('{"a": 1}\n{"b": 2}', 2, "after the end"),
        ('{"a": 1', 1, "comma"),
        ('{"a": 1,\n/* open', 2, "does not end"),
        ('{"a":\nNaN}', 2, "NaN"),
        ("[" * 100_000, 1, "nested"),
    ],
)
def test_an_error_names_its_line(text, line, says):
    with pytest.raises(JsonError, match=says) as caught:
        parse(text)
    assert caught.value.line == line
