"""`accelbench run plan.yaml`: what a plan file asks for, and what is said of one that is wrong."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from shells import SCRIPTED, Command

from accelbench.cli.arguments.run_spec_options import reference_page
from accelbench.core.axes import AXES, numeric_axes
from accelbench.core.facts import RUN_STARTED
from accelbench.core.run_options import PlanSection, RunSettings, plan_fields, run_fields
from accelbench.exchange.plan_document import plan_schema
from accelbench.store.journal import read
from own_onnx import renamed

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = DOCS / "plan.schema.json"
PLAN = """\
name: nightly
models: [bert-tiny, vit-tiny]
matrix:
  hardware: cpu
  framework: scripted
  precision: [fp32, bf16]
  batch_sizes: [1, 8]
  threads: [1, 2]
exclude:
  - {model: vit-tiny, precision: bfloat16}
  - {batch_size: 8, threads: 1}
include:
  - {model: gpt2-tiny, hardware: cpu, framework: scripted, batch_size: 4, new_tokens: 8}
  - {model: vit-tiny, compile: true}
run:
  iterations: 2
  launches: 2
"""


@pytest.fixture
def run(command: Callable[..., Command], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("ACCELBENCH_SCRIPT", "script.json")
    Path("script.json").write_text('{"step_ns": 1000000}', encoding="utf-8")
    return command("run")


def cases(run: Command, *words: str) -> list[dict[str, Any]]:
    code, out, err = run(*words, "--dry-run", "--json")
    assert code in (0, 3), err  # 3: without hardware that is not here
    found: list[dict[str, Any]] = json.loads(out)["cases"]
    return found


def ids(run: Command, *words: str) -> list[str]:
    return [case["case_id"] for case in cases(run, *words)]


def refusal(run: Command, text: str, name: str = "plan.yaml") -> str:
    Path(name).write_text(text, encoding="utf-8")
    code, out, err = run(name, "--dry-run")
    assert (code, out) == (2, ""), (code, out, err)
    assert err.count("\n") <= 4
    return " ".join(err.split())


def test_a_matrix_its_exclusions_and_additions(run):
    Path("plan.yaml").write_text(PLAN, encoding="utf-8")
    found = {
        (c["model"], c["precision"], c["batch_size"], c["options"].get("threads"),
         c["options"].get("compile"))
        for c in cases(run, "plan.yaml")
    }  # fmt: skip
    sizes = [(1, 1), (1, 2), (8, 2)]
    assert found == {
        *(("bert-tiny", p, batch, n, None) for p in ("fp32", "bf16") for batch, n in sizes),
        *(("vit-tiny", "fp32", batch, n, True) for batch, n in sizes),
        ("gpt2-tiny", "fp32", 4, None, None),
    }


def test_the_same_as_the_words_of_a_command_line(run):
    Path("plan.yaml").write_text(
        "models: [bert-tiny, gpt2-tiny]\n"
        "matrix: {hardware: cpu, framework: [pytorch, onnxruntime], batch_sizes: [1, 4]}\n"
    )
    typed = "bert-tiny gpt2-tiny --hardware cpu --framework pytorch onnxruntime --batch-sizes 1 4"
    assert ids(run, "plan.yaml") == ids(run, *typed.split())


def test_all_combinations_have_a_forward_pass_if_one_engine_cannot_generate(run):
    """A matrix that falls into several requests is still one run, whose cells compare."""
    Path("plan.yaml").write_text(
        "models: [gpt2-tiny]\n"
        "matrix: {hardware: cpu, framework: [pytorch, onnxruntime], batch_size: [1, 2]}\n"
        "exclude: [{framework: onnxruntime, batch_size: 2}]\n"
    )
    found = cases(run, "plan.yaml")
    asked = Counter((c["runtime"], c["batch_size"], c["new_tokens"] is not None) for c in found)
    forward = [("pytorch", 1, False), ("pytorch", 2, False), ("onnxruntime", 1, False)]
    assert asked == Counter([*forward, ("pytorch", 1, True), ("pytorch", 2, True)])


@pytest.mark.parametrize("suffix", ["yaml", "toml", "json"])
def test_its_form_is_told_by_its_suffix(run, suffix):
    Path("plan.yaml").write_text(PLAN, encoding="utf-8")
    before = ids(run, "plan.yaml")
    code, out, err = run("plan.yaml", "--save-plan", f"again.{suffix}")
    assert (code, out) == (0, f"Plan: again.{suffix}\n"), err
    assert ids(run, f"again.{suffix}") == before
    code, out, _ = run(f"again.{suffix}", "--dry-run")
    assert "10 cases × 2 launches" in out


#: Of every key of the matrix a value that is no default, and what it needs beside it.
EVERY = {
    "hardware": "--hardware cpu", "framework": "--framework pytorch,jax",
    "batch_sizes": "--batch-sizes 2,4", "precision": "--precision bf16,amp-fp16",
    "mode": "--mode both", "optimizer": "--mode training --optimizer sgd",
    "gradient_checkpointing": "--mode training --gradient-checkpointing",
    "pure": "--mode training --precision bf16 --pure", "compile": "--compile",
    "option": "--option onnxruntime.optimization=basic --framework onnxruntime",
    "threads": "--threads 3",
    **{axis.option_key: f"{axis.option} {'nodes=' * axis.text}16,32" for axis in AXES},
}  # fmt: skip


def test_every_key_of_the_matrix_is_tried():
    assert {one.key for one in plan_fields(PlanSection.MATRIX)} == EVERY.keys()


@pytest.mark.parametrize("key", EVERY)
def test_a_saved_plan_gives_the_same_cases(run, key):
    models = ["bert-tiny", "gpt2-tiny", "vit-tiny", "whisper-tiny", "unet-tiny"]
    if key == "dim":  # which a typed option without effect would be refused for
        models = [str(renamed(Path("sizes.onnx")))]
    words = [*models, *EVERY[key].split()]
    if key not in ("hardware", "framework"):
        words += ["--hardware", "cpu"]
    if key not in ("hardware", "framework", "option", "dim"):
        words += ["--framework", "pytorch"]
    code, _, err = run(*words, "--save-plan", "saved.toml")
    assert code == 0, err
    assert ids(run, "saved.toml") == ids(run, *words)


def test_a_saved_plan_keeps_how_the_run_goes(run):
    words = (
        "--set small --hardware cpu --framework both --seed 7 --iterations 5 --warmup 0"
        " --timeout 2m --budget 1h --no-fix --profile --verify require --limit 3 --label night"
    )
    assert run(*words.split(), "--save-plan", "saved.yaml")[0] == 0
    plan = yaml.safe_load(Path("saved.yaml").read_text())
    assert plan["run"] == {
        "seed": 7, "iterations": 5, "warmup": 0, "timeout": "2m", "budget": "1h", "no_fix": True,
        "profile": True, "verify": "require", "limit": 3, "label": "night", "launches": 5,
    }  # fmt: skip
    assert len(cases(run, "saved.yaml")) == 3


def test_what_a_plan_cannot_hold_is_said(run):
    code, out, _ = run("bert-tiny", *SCRIPTED, "--trust-remote-code", "--save-plan", "saved.yaml")
    assert code == 0
    assert "cannot hold --trust-remote-code" in out
    assert "already exists" in " ".join(run("bert-tiny", "--save-plan", "saved.yaml")[2].split())


def test_options_of_the_run_go_before_the_file(run):
    Path("plan.yaml").write_text(PLAN, encoding="utf-8")
    code, out, _ = run("plan.yaml", "--launches", "5", "--dry-run", "--json")
    assert (code, json.loads(out)["launches"]) == (0, 5)


def test_models_and_values_beside_a_file_narrow_it(run):
    Path("plan.yaml").write_text(PLAN, encoding="utf-8")
    found = cases(run, "plan.yaml", "bert-tiny", "--batch-size", "8", "--sequence-lengths", "32")
    assert {(c["model"], c["batch_size"], c["sequence_length"]) for c in found} == {
        ("bert-tiny", 8, 32)
    }
    assert len(found) == 2
    code, _, err = run("plan.yaml", "bert-tiny", "--precision", "int8", "--dry-run")
    assert code == 2
    assert "no combination has precision int8. It has: fp32, bf16." in " ".join(err.split())
    code, _, err = run("plan.yaml", "--set", "small", "--dry-run")
    assert (code, "--set cannot be given beside it" in " ".join(err.split())) == (2, True)


def test_several_files_are_one_run(run):
    Path("a.yaml").write_text(
        "models: [bert-tiny]\nmatrix: {hardware: cpu, batch_sizes: 1}\nrun: {launches: 3}\n"
    )
    Path("b.toml").write_text('models = "vit-tiny"\n[matrix]\nhardware = "cpu"\nbatch_size = 2\n')
    code, out, _ = run("a.yaml", "b.toml", "--dry-run", "--json")
    document = json.loads(out)
    assert [(c["model"], c["batch_size"]) for c in document["cases"]] == [
        *(("bert-tiny", 1), ("vit-tiny", 2))
    ]
    assert (code, document["launches"]) == (0, 3)
    with Path("b.toml").open("a") as file:
        file.write("[run]\nlaunches = 2\n")
    assert "b.toml, line 6, 'run.launches'" in " ".join(
        run("a.yaml", "b.toml", "--dry-run")[2].split()
    )


def test_a_run_keeps_its_file_and_measures_with_each_case_s_threads(shell):
    plan = PLAN.replace("  launches: 2\n", "  benchmark_only: true\n")
    (shell.work / "plan.yaml").write_text(plan, encoding="utf-8")
    done = shell("plan.yaml", "--json", "--quiet")
    rows = json.loads(done.stdout)["results"]
    assert {(row["options"].get("threads"), row["threads"]) for row in rows} == {
        *((1, 1), (2, 2), (None, None))
    }
    (journal,) = shell.work.rglob("*.jsonl")
    begun = next(fact.body for fact in read(journal) if fact.kind == RUN_STARTED)
    assert begun["plan_files"] == [
        {
            "file": str(shell.work / "plan.yaml"),
            "sha256": sha256(plan.encode()).hexdigest(),
            "name": "nightly",
        }
    ]
    assert begun["notes"][0].startswith("The plan is of plan.yaml, 'nightly' (SHA-256 ")


def test_paths_are_taken_from_the_file_s_folder(run):
    Path("sub/mine").mkdir(parents=True)
    Path("sub/plan.yaml").write_text(
        "models: bert-tiny\nmatrix: {hardware: cpu, batch_sizes: 1}\nrun: {weights: mine}\n"
    )
    assert len(cases(run, "sub/plan.yaml")) == 1
    Path("sub/mine").rmdir()
    assert "There is no folder" in run("sub/plan.yaml", "--dry-run")[2]


HOSTILE = {
    "no such key": (
        "models: bert-tiny\nmatrix: {batchsizes: 1}",
        "line 2, 'matrix.batchsizes': it is not a key",
    ),
    "a near name": ("models: bert-tiny\nmatrix: {batchsizes: 1}", "Did you mean batch_sizes"),
    "elsewhere": (
        "models: bert-tiny\nmatrix:\n  launches: 2",
        "line 3, 'matrix.launches': it belongs",
    ),
    "at its top": ("models: bert-tiny\nprecision: fp16", "line 2, 'precision': it belongs under"),
    "GitHub's place": ("models: a\nmatrix:\n  exclude: []", "it belongs next to matrix"),
    "twice": ("models: bert-tiny\nmodels: vit-tiny", "line 2, 'models': it occurs twice"),
    "two names of one": ("models: a\nmatrix: {batch_size: 1, batch_sizes: 2}", "the same as"),
    "no models": ("matrix: {hardware: cpu}", "it names no models"),
    "no such model": ("name: x\nmodels: bert-tny", "line 2, 'models': There is no model named"),
    "no such precision": (
        "models: bert-tiny\nmatrix: {precision: fp23}",
        "line 2, 'matrix.precision'",
    ),
    "no number": ("models: bert-tiny\nmatrix: {batch_sizes: many}", "'many' is not a whole number"),
    "too small": ("models: bert-tiny\nrun: {launches: 0}", "0 is not from 1"),
    "many digits": (
        f"models: bert-tiny\nmatrix: {{threads: {'9' * 5000}}}",
        "is not a whole number",
    ),
    "no truth": ("models: bert-tiny\nmatrix: {compile: perhaps}", "it is true or false"),
    "an object": ("models: {a: b}", "a word or a number was expected"),
    "an empty value": ("models:", "it is empty"),
    "an empty list": ("models: []", "the list is empty"),
    "two of a run": ("models: bert-tiny\nrun: {launches: [1, 2]}", "one value for the whole run"),
    "a list": ("- bert-tiny", "an object was expected"),
    "an alias": ("models: &a [bert-tiny]\nname: *a", "aliases are not supported"),
    "deep": ("models: " + "[" * 200, "nested deeper than 100 levels"),
    "no YAML": ("models: [", "plan.yaml, line 2"),
    "a matrix of millions": (
        "models: bert-tiny\nmatrix:\n"
        + "".join(f"  {axis.option_key}: {list(range(1, 16))}\n" for axis in numeric_axes()),
        "has 11,390,625 combinations (1 models × 15",
    ),
    "entries of millions": (
        f"models: a\nexclude: [{{batch_size: {list(range(1, 2000))}}}]",
        "it stands for 1,999 entries",
    ),
    "excluded without an axis": ("models: bert-tiny\nexclude: [{precision: fp16}]", "matrix does"),
    "excluded in vain": (
        "models: bert-tiny\nmatrix: {precision: fp16}\nexclude:\n  - {precision: bf16}",
        "line 4, 'exclude[0].precision': 'bf16' is no value of the matrix. It has: fp16.",
    ),
    "all excluded": ("models: bert-tiny\nexclude: [{model: bert-tiny}]", "is excluded"),
    "added without a model": (
        "models: bert-tiny\nmatrix: {precision: fp16}\ninclude: [{precision: int8}]",
        "names no model",
    ),
    "a program": ("models: bert-tiny\nrun: {browser: /bin/sh}", "it is not a key of plans"),
    "code": ("models: bert-tiny\nrun: {trust_remote_code: true}", "it is not a key of plans"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_wrong_gets_a_sentence(run, kind):
    text, sentence = HOSTILE[kind]
    assert sentence in refusal(run, text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("models = [", "plan.toml"),
        (
            'models = "a"\n[matrix]\nbatchsizes = 1',
            "line 3, 'matrix.batchsizes': it is not a key of plans",
        ),
        ('models = "a"\nmodels = "b"', "cannot overwrite a value"),
        ("models = " + "[" * 5000, "nested deeper"),
        ("models = 1979-05-27", "a word or a number was expected"),
    ],
)
def test_what_is_wrong_in_toml_gets_a_sentence(run, text, sentence):
    assert sentence in refusal(run, text, "plan.toml")


def test_json_of_another_kind_is_refused(run):
    assert "'run_id': it is not a key of plans" in refusal(run, '{"run_id": "x"}', "result.json")
    code, _, err = run("nowhere.yaml")
    assert (code, "There is no plan file 'nowhere.yaml'" in err) == (2, True)


def test_the_published_schema_is_the_one_of_the_options(run):
    code, out, _ = run("--plan-schema")
    assert code == 0
    assert SCHEMA.read_text(encoding="utf-8") == out


def test_the_schema():
    # The reference page is made of the fields.
    assert (DOCS / "run-options.md").read_text(encoding="utf-8") == reference_page()
    fields = [one for one in run_fields() if one.kind != "truth" and one.axis is None]
    assert [one.name for one in fields if not (one.about and one.example)] == []
    # But for what starts a program or runs code, and the id that a run is given.
    names = {one.name for one in plan_fields()}
    spelt = {"fix": "no_fix"}
    for name in RunSettings.names():
        if name not in ("run_id", "trust_remote_code"):
            assert spelt.get(name, name) in names, name
    # The schema knows what may stand where.
    jsonschema = pytest.importorskip("jsonschema")
    schema = plan_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(PLAN), schema)
    for wrong in ({"matrix": {"launches": 1}}, {"run": {"launches": 0}}, {"model": "a"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"models": "a", **wrong}, schema)


def test_what_is_wrong_is_named_by_its_path(run):
    text = "models: bert-tiny\ninclude:\n  - {batch_sizes: 1}\n  - {batch_sizes: [2, 0]}"
    assert "line 4, 'include[1].batch_sizes[1]': 0 is not from 1" in refusal(run, text)


def test_the_page_s_example_is_what_it_says(run):
    page = (DOCS / "plans.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert set(yaml.safe_load(example)) <= plan_schema()["properties"].keys()
    Path("nightly.yaml").write_text(example, encoding="utf-8")
    compiled = [c["options"].get("compile") for c in cases(run, "nightly.yaml")]
    assert (len(compiled), compiled.count(True)) == (13, 2)


def test_the_page_s_project_file_is_taken(run):
    page = (DOCS / "plans.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    Path("accelbench.toml").write_text(example, encoding="utf-8")
    code, out, _ = run("bert-tiny", "--batch-sizes", "1", "--dry-run", "--json")
    assert (code, json.loads(out)["launches"]) == (3, 5)  # CUDA is not here
