"""JSON documents of commands: indented, and of very many records one a line."""

import json

import pytest

from accelbench.present.terminal.terminal import json_text


def test_lines_of_a_document():
    content = {"a": [1, 2], "b": {"c": "d"}}
    assert json_text(content) == json.dumps(content, indent=2) + "\n"
    # A matrix of 85,000 predictions took 8 s longer where each field had a line of its own.
    records = [{"n": n, "text": "a\nb", "few": [n]} for n in range(1001)]
    content = {"first": {"x": [1]}, "records": records, "last": "z"}
    text = json_text(content)
    assert json.loads(text) == content
    assert list(json.loads(text)) == ["first", "records", "last"]
    assert '    {"n": 7, "text": "a\\nb", "few": [7]},\n' in text
    assert text.startswith('{\n  "first": {\n    "x": [\n      1\n    ]\n  },\n  "records": [\n')
    assert text.endswith('  ],\n  "last": "z"\n}\n')
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({"records": [float("nan")] * 1001})
