"""`accelbench.benchmark`: an object of this process measured in fresh ones, and its result."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import accelbench
from accelbench.api import live_objects
from accelbench.api.benchmark import _spec
from accelbench.api.live_objects import batches_meant
from accelbench.api.result import Result
from accelbench.core.errors import UsageError
from accelbench.models.code_models import loading
from accelbench.models.code_models.models import describe_code_model
from accelbench.store.opening import open_store


def product(x: Any, y: Any) -> Any:
    return x @ y


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    inputs = (np.ones((2, 3), np.float32), np.ones((3, 2), np.float32))
    made = accelbench.benchmark(
        product, inputs, hardware="cpu", iterations=4, warmup=0, threads=1, name="mine",
        db=tmp_path_factory.mktemp("db") / "kept.duckdb",
    )  # fmt: skip
    assert isinstance(made, Result)
    return made


def test_a_result(result):
    # A function is measured in a fresh process.
    assert result.ok, str(result)
    (row,) = result.rows
    assert (row["model"], row["runtime"], row["provenance"]) == ("mine", "python", "measured")
    assert [len(samples) for samples in result.samples] == [4]
    assert min(result.samples[0]) > 0
    # A result reads in a terminal and in a notebook.
    assert "mine python/cpu" in repr(result)
    assert "calls/s" in str(result)
    page = result._repr_html_()
    assert page.startswith("<table ")
    assert "mine python/cpu" in page
    # A result is a table of pandas.
    frame = result.to_pandas()
    assert list(frame["model"]) == ["mine"]
    assert len(frame["samples_ms"][0]) == 4
    # A result is a table of polars.
    pytest.importorskip("polars", reason="polars takes 180 MB, and nothing else here needs it")
    failed = {**result.rows[0], "status": "failed", "latency_p50_ms": None}
    failed |= {"samples": {}, "sampling": {}}
    frame = Result("r", [failed, *result.rows]).to_polars()
    assert frame.columns == list(result.to_pandas().columns)
    assert frame["model"].to_list() == ["mine", "mine"]
    assert [len(samples) for samples in frame["samples_ms"].to_list()] == [0, 4]
    assert Result("r", []).to_polars().is_empty()
    # Two results are compared by the rules of compare.
    other = Result("other", [{**row, "run_id": "other", "result_id": "o"} for row in result.rows])
    lines = result.compare(other)
    assert [line["run_id"] for line in lines] == ["other", result.run_id]
    assert lines[0]["speedup"] == 1.0
    # What a page shows of a name is escaped.
    hostile = Result("r", [{**result.rows[0], "model": "<script>"}])
    page, (ours, *more) = hostile._repr_html_(), result._repr_html_().split("<script>")[1:]
    assert "&lt;script&gt; python/cpu" in page
    assert page.split("<script>")[1:] == [ours, *more]


def test_without_polars_the_install_is_named(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UsageError, match="pip install polars"):
        result.to_polars()


def test_a_run_has_the_label_that_it_is_given(tmp_path):
    db = tmp_path / "kept.duckdb"
    made = accelbench.benchmark(
        len, ([1],), iterations=1, warmup=0, threads=1, label="main", budget=60.0, db=db,
        batch_sizes="given",
    )  # fmt: skip
    assert made.ok, str(made)
    _, rows = open_store(str(db)).query("SELECT run_id, label FROM benchmark_runs")
    assert rows == [(made.run_id, "main")]


@pytest.mark.parametrize(
    ("fixed", "model", "inputs", "means"),
    [
        (None, len, (np.ones((8, 3)), np.ones((8, 2))), (8,)),
        (None, len, {"x": np.ones((2, 3))}, (2,)),
        (None, len, (np.ones((8, 3)), np.ones((4, 2))), (1,)),
        (1, len, np.ones((8, 3)), (1,)),
        (None, SimpleNamespace(example_inputs=np.ones((5, 3))), None, (5,)),
        (None, "bert-tiny", ["x=float32[batch,2]"], (1,)),
    ],
)
def test_the_batch_that_is_given_is_that_of_the_inputs(fixed, model, inputs, means):
    spec: Any = SimpleNamespace(fixed_batch=fixed)
    assert batches_meant("given", spec, model, inputs) == means
    assert batches_meant(None, spec, model, inputs) == ()
    assert batches_meant([3], spec, model, inputs) == (3,)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"label": "two\nlines"}, "label takes one line of text"),
        ({"budget": 0}, "budget takes seconds, not 0"),
        ({"batch_sizes": "all"}, "batch_sizes takes a list of whole numbers, not 'all'"),
        ({"isolate": False, "label": "main"}, "isolate=False makes no run"),
    ],
)
def test_words_that_mean_nothing_are_refused(words, says):
    with pytest.raises(UsageError, match=says):
        accelbench.benchmark(product, **words)


def test_a_word_is_called_as_it_is_told_and_the_catalogue_as_it_is(tmp_path):
    (tmp_path / "own.py").write_text("def one():\n    return 1\n")
    spec = _spec(f"{tmp_path / 'own.py'}:one", None, "tests/t.py::test[a=b]", tmp_path)
    assert spec.id == "tests/t.py::test[a=b]"
    with pytest.raises(UsageError, match="bert-tiny is a model of the catalogue"):
        _spec("bert-tiny", None, "mine", tmp_path)


def test_a_live_object_is_called_no_file_that_its_owner_has_not(tmp_path):
    """A note said that live_object.py was run, which was written for it."""
    spec = _spec(product, (np.ones((2, 3)), np.ones((3, 2))), "mine", tmp_path)
    (first, *_) = describe_code_model(spec)
    assert "live_object" not in first
    assert first.endswith("it was made again to look at it, and is in every worker.")


def test_a_result_is_drawn(result, tmp_path):
    result.plot().save(str(tmp_path / "chart.svg"))
    assert (tmp_path / "chart.svg").read_text().lstrip().startswith("<svg")
    with pytest.raises(UsageError, match="no chart 'pie'"):
        result.plot("pie")


def test_a_live_module_goes_over_with_its_weights(tmp_path):
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(4, 2)
    word = live_objects.written(module, torch.zeros(1, 4), tmp_path)
    assert word == f"{tmp_path}/live_object.py:make"
    scope: dict[str, Any] = {"__file__": str(tmp_path / "live_object.py"), "__name__": "live"}
    exec((tmp_path / "live_object.py").read_text(), scope)
    again, inputs = scope["make"]()
    assert torch.equal(again.weight, module.weight)
    assert inputs.shape == (1, 4)
    (tmp_path / "object.pickle").write_bytes(b"other")
    with pytest.raises(ValueError, match=r"object\.pickle was changed"):
        scope["make"]()


def test_other_weights_are_told_apart(tmp_path):
    torch = pytest.importorskip("torch")
    sources = []
    for number, folder in enumerate((tmp_path / "a", tmp_path / "b")):
        folder.mkdir()
        module = torch.nn.Linear(4, 2)
        torch.nn.init.constant_(module.weight, number)
        live_objects.written(module, None, folder)
        sources.append((folder / "live_object.py").read_text())
    assert sources[0] != sources[1]


def test_where_it_is_searched_makes_no_other_version(tmp_path, monkeypatch):
    sources = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        monkeypatch.syspath_prepend(folder)
        live_objects.written(product, None, folder)
        sources.append((folder / "live_object.py").read_text())
    assert sources[0] == sources[1]


def test_a_changed_helper_beside_it_is_another_version(tmp_path, monkeypatch):
    """What the file of an object imports from its owner's own folder, and what that imports."""
    package = tmp_path / "travelling_owners"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "model.py").write_text(
        "from json import dumps\nfrom travelling_owners import helper\n"
        "class Net:\n    def __call__(self, x):\n        return helper.scaled(x)\n"
    )
    (package / "helper.py").write_text(
        "def scaled(x):\n    from .deeper import FACTOR\n    return x * FACTOR\n"
    )
    (package / "deeper.py").write_text("FACTOR = 2\n")
    (package / "unrelated.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("model", "unrelated", "deeper"):
        importlib.import_module(f"travelling_owners.{name}")
    net = sys.modules["travelling_owners.model"].Net()
    files = [Path(file).name for file in live_objects._sources(net)]
    assert files == ["__init__.py", "deeper.py", "helper.py", "model.py"]

    def version(name: str) -> str:
        folder = tmp_path / name
        folder.mkdir()
        live_objects.written(net, 3, folder)
        return (folder / "live_object.py").read_text()

    first = version("first")
    (package / "unrelated.py").write_text("x = 1\n")
    assert version("second") == first
    (package / "deeper.py").write_text("FACTOR = 3\n")
    assert version("third") != first


@pytest.mark.parametrize(
    ("model", "inputs", "says"),
    [
        (lambda: 1, None, "it was defined within a function or as a lambda"),
        (4, None, "What cannot be called cannot be measured: int"),
        ("bert-tiny", (1, 2), "inputs takes what --input does"),
        ("no-such-model", None, "There is no model named"),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(model, inputs, says):
    with pytest.raises(UsageError) as refused:
        accelbench.benchmark(model, inputs, hardware="cpu")
    assert says in str(refused.value)


def test_a_script_that_measures_itself_does_not_begin_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "_importing", ["here"])
    with pytest.raises(UsageError, match="__main__"):
        accelbench.benchmark(product, hardware="cpu")


def test_a_class_of_a_session_says_the_way_out(tmp_path, monkeypatch):
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    monkeypatch.setattr(product, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "product", product, raising=False)
    with pytest.raises(UsageError, match="defined in a session, not in a file"):
        live_objects.written(product, None, tmp_path)
