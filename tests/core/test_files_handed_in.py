"""Every file of JSON or YAML that a user hands in: nothing in one ends in a traceback."""

import json
import re
from pathlib import Path

import pytest

from accelbench.core.errors import AccelbenchError
from accelbench.core.jsonc import DEEPEST, JsonError, is_too_deep, loads, parse
from accelbench.exchange.aggregate import _read_file as aggregated
from accelbench.exchange.baselines import read_baseline
from accelbench.exchange.imports.reading import read_import
from accelbench.exchange.plan_document import read_plan
from accelbench.exchange.prices import read_prices
from accelbench.models import weights
from accelbench.models.data import folder
from accelbench.models.selection import models_in
from accelbench.recommend.config import over_defaults
from accelbench.recommend.config import read as read_config

SOURCES = Path(__file__).parents[2] / "src" / "accelbench"
DEEP = 200_000
DOCUMENTS = {
    "NaN": "NaN",
    "a NaN within": '{"per_hour": {"cpu": NaN}}',
    "too large for a number": '{"per_hour": {"cpu": 1e999}}',
    "a number of 5,000 digits": f'{{"per_hour": {{"cpu": {"9" * 5000}}}}}',
    "deep lists": "[" * DEEP,
    "deep lists that end": "[" * DEEP + "]" * DEEP,
    "deep objects": '{"a":' * DEEP,
    "deep within": '{"a": ' + "[" * 900 + "]" * 900 + "}",
    "nothing": "",
    "a byte of another encoding": "\udcff",
}


def own_model(path):
    """A models file beside the config of a model, which is what is wrong."""
    (path.parent / "m").mkdir()
    path.rename(path.parent / "m" / "config.json")
    entry = {"name": "mine", "path": "m", "family": "embedding", "size": "tiny", "modality": "text"}
    (path.parent / "models.json").write_text(json.dumps({"mine": entry}))
    return models_in(path.parent / "models.json")


def folder_of_weights(path):
    path.rename(path.parent / "config.json")
    return weights._read_config(path.parent)


def cell(path):
    head = "result_id,case_id,model,hardware,runtime,status,provenance,options"
    text = path.read_text(errors="surrogateescape").replace('"', '""')
    path.write_text(f'{head}\nr,c,m,cpu,x,ok,imported,"{text or "{"}"\n', errors="surrogateescape")
    return read_import("csv", path)


READERS = {
    "choosing": read_config,
    "prices": read_prices,
    "models": models_in,
    "a model's config": own_model,
    "weights": folder_of_weights,
    "results": lambda path: read_import("json", path),
    "a cell": cell,
    "a result file": aggregated,
    "a baseline": read_baseline,
    "a plan": read_plan,
    **{
        kind: lambda path, kind=kind: read_import(kind, path)
        for kind in ("aihub", "mlperf", "optimum", "benchmark-app", "pytest-benchmark")
    },
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("document", DOCUMENTS)
def test_it_gets_a_sentence(reader, document, tmp_path):
    path = tmp_path / "handed-in.json"
    path.write_text(DOCUMENTS[document], encoding="utf-8", errors="surrogateescape")
    with pytest.raises(AccelbenchError) as caught:
        READERS[reader](path)
    said = str(caught.value)
    assert len(said) < 700
    assert "RecursionError" not in said


@pytest.mark.parametrize(
    "text", ["[" * DEEP, "- " * DEEP + "x", "{a: " * DEEP, "a: &a [1]\nb: *a", "a: &a [*a]"]
)
def test_yaml_is_judged_before_it_is_built(text, tmp_path):
    """libyaml builds a document by a call in a call: 200,000 levels ended the process."""
    path = tmp_path / "perf.yaml"
    path.write_text(text)
    with pytest.raises(AccelbenchError, match=r"deeper than 100 levels|aliases are not supported"):
        read_import("aihub", path)


def test_depth_and_infinity(tmp_path):
    text = "[" * DEEPEST + "1" + "]" * DEEPEST
    assert parse(text) == loads(text)
    for read in (parse, loads):
        with pytest.raises(JsonError, match="deeper than 100 levels"):
            read(f"[{text}]")
    assert not is_too_deep(3)

    assert (
        loads('{"time_step_limit": [0.0, Infinity]}', allow_infinity=True)["time_step_limit"][1]
        > 1e308
    )
    for text, infinite in (("[Infinity]", False), ("[NaN]", True), ("[1e999]", True)):
        with pytest.raises(JsonError):
            loads(text, allow_infinity=infinite)

    (tmp_path / "Labels.json").write_text("[" * DEEP)
    assert folder._titles(tmp_path) == {}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_configuration_of_the_api_is_of_finite_numbers(value):
    with pytest.raises(AccelbenchError):
        over_defaults({"hardware_preferences": {"cpu": {"cost_factor": value}}})


#: Who reads JSON without the one reader: what programs of ours, or of engines, wrote a moment ago.
OWN = {
    "run", "fleet", "engines", "store", "hardware", "present", "models/own.py",
    "models/cost.py", "models/catalogue.py", "models/selection.py", "core/jsonc.py",
    "recommend/pricing.py", "recommend/evidence/cells.py", "judge/baselines.py",
    "cli/services/measuring.py", "judge/stored_results.py", "cli/commands/db.py",
    "judge/attempts.py", "judge/machines.py", "exchange/guide_csv.py",
    "api/live_objects.py", "cli/services/report_files.py",
}  # fmt: skip


def test_files_are_read_by_the_one_reader():
    reading = re.compile(r"\bjson\.loads?\(|\byaml\.(load|safe_load|compose)\(")
    found = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if reading.search(path.read_text(encoding="utf-8"))
    }
    loose = {name for name in found if name not in OWN and name.split("/")[0] not in OWN}
    assert loose <= {"exchange/imports/aihub.py"}
