"""`accelbench.benchmark(…, isolate=False)`: measured where the object is, and said to be."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

import accelbench
from accelbench.core.columns import COLUMNS
from accelbench.core.errors import UsageError


def measured(model: Any, inputs: Any = None, **more: Any) -> Any:
    return accelbench.benchmark(
        model, inputs, isolate=False, iterations=5, warmup=1, threads=1, **more
    )


def test_code_of_this_process():
    # A closure is measured in this process.
    calls = []
    result = measured(lambda x: calls.append(1) or x + 1, 41, name="closure")
    (row,) = result.rows
    assert result.ok, str(result)
    assert (row["model"], row["runtime"], row["verification"]) == ("closure", "python", "not_done")
    assert len(calls) > 5
    assert [len(samples) for samples in result.samples] == [5]
    # What is lost is said.
    (row,) = measured(lambda: sum(range(99))).rows
    assert any("isolate=False" in text for text in row["warnings"])
    assert row["memory_peak_mb"] is None
    assert "isolate=False" in row["nulls"]["memory_peak_mb"]
    # It is not compared with what fresh processes measured.
    here = measured(lambda: sum(range(99)), name="closure")
    apart = replace(here, run_id="of-fresh-processes", isolated=True)
    for one, other in ((here, apart), (apart, here)):
        with pytest.raises(UsageError, match="is not compared with one of fresh processes"):
            one.compare(other)
    here.compare(here)

    # Code that fails is a result with the reason.
    def broken(x: Any) -> Any:
        raise KeyError("no such key")

    result = measured(broken, 1)
    assert not result.ok
    assert "no such key" in str(result)


def test_a_call_that_makes_something_else_of_what_it_changed_is_refused_for_that():
    """It was told as a fault of the runtime, to be reported there."""

    def counts(x: list[float]) -> float:
        x[0] += 1
        return x[0]

    (row,) = measured(counts, ([1.0],), name="counts").rows
    assert (row["status"], row["reason"]) == ("failed", "inputs_changed")
    assert "each call of counts changes what it is called with" in row["message"]


def test_modules_of_this_process():
    # A module is as it was afterwards.
    torch = pytest.importorskip("torch")

    class Local(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.out = torch.nn.Linear(8, 4)
            self.drop = torch.nn.Dropout(0.5)

        def forward(self, x: Any) -> Any:
            return self.drop(self.out(x))

    module = Local().train()
    before, threads = module.out.weight.clone(), torch.get_num_threads()
    torch.manual_seed(5)
    random.seed(5)
    drawn = torch.rand(1), random.random()
    torch.manual_seed(5)
    random.seed(5)
    result = measured(module, torch.zeros(2, 8), batch_sizes=[1, 4])
    assert [row["batch_size"] for row in result.rows] == [1, 4]
    assert {row["runtime"] for row in result.rows} == {"pytorch"}
    assert result.ok, str(result)
    assert module.training
    assert module.drop.training
    assert torch.equal(module.out.weight, before)
    assert str(module.out.weight.device) == "cpu"
    assert torch.get_num_threads() == threads
    assert (torch.rand(1), random.random()) == drawn
    # It was left in fp32, with what its weights lose by that.
    torch = pytest.importorskip("torch")
    module = torch.nn.BatchNorm1d(4).double()
    module.weight.data.fill_(0.1)
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    assert measured(module, (torch.zeros(2, 4, dtype=torch.float64),), batch_sizes=[2]).ok
    for name, tensor in module.state_dict().items():
        assert tensor.dtype == before[name].dtype
        assert torch.equal(tensor, before[name])


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"hardware": "cuda"}, "on the CPU alone, not 'cuda'"),
        ({"precision": "fp16"}, "in fp32 alone, not 'fp16'"),
        ({"mode": "training"}, "inference alone, not 'training'"),
        ({"launches": 5}, "has no launches"),
        ({"framework": "onnxruntime"}, "by python alone, not by 'onnxruntime'"),
        ({"verify": "require"}, "has no reference"),
        ({"db": "kept.duckdb"}, "keeps no results"),
    ],
)
def test_what_needs_a_process_of_its_own_is_refused(more, says):
    with pytest.raises(UsageError) as refused:
        measured(len, "abc", **more)
    assert says in str(refused.value)


def test_what_is_no_object_of_this_process():
    with pytest.raises(UsageError, match="not a name"):
        measured("bert-tiny")
    with pytest.raises(UsageError, match="isolate=False"):
        accelbench.benchmark(lambda x: x + 1, 41)


def test_a_result_of_this_process_is_drawn_and_tabled_as_any_other():
    result = measured(lambda x: x + 1, 41, name="closure")
    (row,) = result.rows
    missing = {column.name for column in COLUMNS} - set(row)
    assert not missing
    assert "closure" in str(result.plot().picture.spec)
