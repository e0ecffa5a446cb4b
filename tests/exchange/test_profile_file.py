"""Profile files: whole, named as the documents name files, described by a published schema."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from accelbench.exchange import profile_schema as profile_file
from accelbench.exchange.profile_schema import CASE_COLUMNS, format_schema, profile_schema

WHEN = datetime(2026, 3, 1, 12, 30, 5, tzinfo=UTC)
OPERATOR = {"kind": "MatMul", "calls": 2, "total_ms": 3.5, "share": 0.7, "where": "cpu:0"}


def profile(**more: Any) -> dict[str, Any]:
    return {
        **dict.fromkeys(CASE_COLUMNS), "model": "bert-tiny", "hardware": "cpu", "precision": "fp32",
        "why_not": None, "engine": "torch 2", "profiler": "torch.profiler", "steps": 5,
        "wall_ms": 5.0, "walls_ms": [4.0, 6.0], "explained": 0.7, "remark": "", "kinds": [OPERATOR],
        "operators": [{"name": "32x128", **OPERATOR}], **more,
    }  # fmt: skip


def test_a_file_is_named_as_the_documents_say_and_fits_its_schema(tmp_path):
    [path] = profile_file.write_profile(tmp_path / "profiles", profile(), None, WHEN)
    assert path.relative_to(tmp_path) == Path("profiles/bert-tiny_cpu_float32_20260301_123005.json")
    found = json.loads(path.read_text())
    jsonschema.Draft202012Validator.check_schema(profile_schema())
    jsonschema.validate(found, profile_schema(), jsonschema.Draft202012Validator)
    assert "profiler's cost" in found["about"]


def test_two_in_a_second_are_two_and_each_has_its_record_beside_it(tmp_path):
    record = tmp_path / "trace.json"
    for said in ("[1]", "[2]"):
        record.write_text(said)
        path, beside = profile_file.write_profile(tmp_path / "profiles", profile(), record, WHEN)
        assert beside == path.with_name(f"{path.stem}.trace.json")
        assert beside.read_text() == said
    assert len(list((tmp_path / "profiles").iterdir())) == 4


def test_the_published_schema_is_up_to_date():
    published = Path(__file__).parents[2] / "docs" / "profile-schema.json"
    assert published.read_text(encoding="utf-8") == format_schema(), (
        "python -m accelbench.exchange.profile_schema > docs/profile-schema.json"
    )


@pytest.mark.parametrize(
    "change", [{"steps": "five"}, {"operators": [OPERATOR]}, {"kinds": None}, {"more": 1}]
)
def test_the_schema_refuses_what_is_wrong(change, tmp_path):
    [path] = profile_file.write_profile(tmp_path, profile(**change), None, WHEN)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(path.read_text()), profile_schema())
