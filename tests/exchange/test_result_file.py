from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from bodies import NASTY, body
from power import every_cut

from accelbench.core.errors import StoreError, UsageError
from accelbench.exchange import result_file
from accelbench.exchange.result_schema import format_schema, result_schema

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RUN = {"run_id": "r", "started_at": "2026-01-02T03:04:05.000000Z", "command": "accelbench run"}


def check(document: Any) -> None:
    schema = result_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema, jsonschema.Draft202012Validator)


def test_the_published_schema_is_up_to_date():
    published = Path(__file__).parents[2] / "docs" / "result-schema.json"
    assert published.read_text(encoding="utf-8") == format_schema(), (
        "python -m accelbench.exchange.result_schema > docs/result-schema.json"
    )


def test_a_file_a_model_hardware_and_precision(tmp_path):
    bodies = [body(0), body(1), body(2, hardware="cuda"), body(3, precision="bf16")]
    files = result_file.write_results(tmp_path / "out", RUN, bodies, WHEN)
    assert [path.name for path in files] == [
        "bert-tiny_cpu_float32_20260102_030405.json",
        "bert-tiny_cuda_float32_20260102_030405.json",
        "bert-tiny_cpu_bfloat16_20260102_030405.json",
    ]
    assert sorted((tmp_path / "out").iterdir()) == sorted(files)  # and nothing temporary
    document = json.loads(files[0].read_text(encoding="utf-8"))
    check(document)
    assert document["run"] == RUN
    assert [one["batch_size"] for one in document["results"]] == [1, 2]
    assert document["results"][0]["samples"] == {"step": [1000, 2000, 3000], "forward": [7]}


def test_nasty_words_are_written_and_read_back(tmp_path):
    bodies = [body(i, message=word, model="half \ud800 pair") for i, word in enumerate(NASTY)]
    (path,) = result_file.write_results(tmp_path, {**RUN, "label": NASTY[0]}, bodies, WHEN)
    document = json.loads(path.read_text(encoding="utf-8"))
    check(document)
    assert [one["message"] for one in document["results"]] == list(NASTY)
    assert document["run"]["label"] == NASTY[0]


def test_a_result_that_is_not_ok_is_valid_too(tmp_path):
    failed = {"model": "m", "hardware": "cuda", "precision": "fp32", "status": "unsupported"}
    (path,) = result_file.write_results(tmp_path, RUN, [{**failed, "reason": "absent"}], WHEN)
    check(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry.update(status="wonderful"),
        lambda entry: entry.update(batch_size="8"),
        lambda entry: entry.update(unheard_of=1),
        lambda entry: entry.pop("latency_mean_ms"),
        lambda entry: entry.update(samples={"step": [1.5]}),
    ],
)
def test_the_schema_refuses_what_is_wrong(change):
    document = result_file.build_document(RUN, [body(0)])
    check(document)
    change(document["results"][0])
    with pytest.raises(jsonschema.ValidationError):
        check(document)


def test_a_file_is_never_overwritten(tmp_path):
    names = [result_file.write_results(tmp_path, RUN, [body(i)], WHEN)[0].name for i in range(3)]
    stem = "bert-tiny_cpu_float32_20260102_030405"
    assert names == [f"{stem}.json", f"{stem}-2.json", f"{stem}-3.json"]
    sizes = [json.loads((tmp_path / n).read_text())["results"][0]["batch_size"] for n in names]
    assert sizes == [1, 2, 3]


def test_a_named_file_must_be_free(tmp_path):
    path = tmp_path / "ci.json"
    result_file.write_result_file(path, RUN, [body(0), body(1, model="other")])
    document = json.loads(path.read_text(encoding="utf-8"))
    check(document)
    assert [one["model"] for one in document["results"]] == ["bert-tiny", "other"]
    before = path.read_bytes()
    with pytest.raises(UsageError, match="already exists"):
        result_file.write_result_file(path, RUN, [])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="something else exists"):
        result_file.write_results(tmp_path / "file", RUN, [body(0)], WHEN)


def test_power_cuts_leave_a_whole_file_or_none(tmp_path):
    numbers = iter(range(10**6))
    whole = json.dumps(result_file.build_document(RUN, [body(0)]), sort_keys=True)

    def make() -> Path:
        root = tmp_path / str(next(numbers))
        root.mkdir()
        return root

    def act(root: Path, files: Any) -> None:
        result_file.write_results(root / "out", RUN, [body(0)], WHEN, files)

    found = set()
    for root, where in every_cut(make, act):
        files = sorted(root.glob("out/*.json"))
        found.add(len(files))
        for path in files:
            document = json.loads(path.read_text(encoding="utf-8"))
            assert json.dumps(document, sort_keys=True) == whole, where
    assert found == {0, 1}
