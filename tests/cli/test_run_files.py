"""`accelbench run mine.onnx`: from the file to a verified row, and what is refused on the way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from shells import Command

from accelbench.core.formatting import describe_references

Shape = Sequence[int | str]


def graph(path: Path, batch: int | str = "batch", scale: float = 1.0, name: str = "ids") -> Path:
    """Two products with a table before them: what an engine may fuse, convert and get wrong."""
    random = np.random.default_rng(0)

    def weight(table: str, *shape: int) -> onnx.TensorProto:
        values = (scale * random.standard_normal(shape)).astype(np.float32)
        return numpy_helper.from_array(values, table)

    nodes = [
        helper.make_node("Gather", ["table", name], ["e"]),
        helper.make_node("MatMul", ["e", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["y"]),
    ]
    made = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, TensorProto.INT64, [batch, "seq"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, "seq", 16])],
        [weight("table", 100, 32), weight("w", 32, 64), weight("v", 64, 16)],
    )
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              str(path))  # fmt: skip
    return path


def ran(run: Command, *words: str) -> list[dict[str, Any]]:
    code, out, err = run(*words, "--json")
    assert code == 0, err
    rows: list[dict[str, Any]] = json.loads(out)["results"]
    return rows


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command("run", monkeypatch, capsys)


FEW = ("--iterations", "3", "--warmup", "0", "--threads", "1")


def test_a_file_is_measured_by_every_engine_that_opens_it_and_verified(run):
    graph(Path("mine.onnx"))
    rows = ran(
        run, "mine.onnx", "--hardware", "cpu,openvino", "--batch-sizes", "1,5",
        "--sequence-lengths", "7", *FEW,
    )  # fmt: skip
    assert [(r["model"], r["runtime"], r["batch_size"], r["sequence_length"]) for r in rows] == [
        ("mine.onnx", runtime, batch, 7) for runtime in ("onnxruntime", "openvino")
        for batch in (1, 5)
    ]  # fmt: skip
    for row in rows:
        assert (row["status"], row["verification"], row["weights"]) == ("ok", "ok", "file")
        assert json.loads(row["input_shape"]) == {"ids": [row["batch_size"], 7]}
        assert row["verification_error"] < 1e-5
        assert len(row["weights_digest"]) == 64


def test_a_program_of_torch_export_is_measured_as_it_is_and_converted(run):
    torch = pytest.importorskip("torch")
    layers = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))
    free = ({0: torch.export.Dim("batch", min=1, max=16)},)
    program = torch.export.export(layers.eval(), (torch.ones(2, 8),), dynamic_shapes=free)
    torch.export.save(program, "net.pt2")
    words = ("net.pt2", "--framework", "pytorch,onnxruntime,openvino", "--hardware", "cpu,openvino")
    rows = ran(run, *words, "--batch-sizes", "5", *FEW)
    told = [(r["runtime"], r["batch_size"], r["status"], r["verification"]) for r in rows]
    assert told == [
        ("pytorch", 5, "ok", "reference"), ("onnxruntime", 5, "ok", "ok"),
        ("openvino", 5, "ok", "ok"),
    ]  # fmt: skip
    assert {row["weights"] for row in rows} == {"file"}
    assert max(row["verification_error"] or 0 for row in rows) < 1e-5
    _, out, _ = run("net.pt2", "--hardware", "cpu", "--dry-run")
    assert "batch 8" in out
    assert "batch 32" not in out  # it takes 16 at most


def test_a_changed_file_goes_on_with_its_history(run):
    words = ("mine.onnx", "--hardware", "cpu", "--batch-sizes", "1", "--benchmark-only", *FEW)
    graph(Path("mine.onnx"))
    (before,) = ran(run, *words)
    graph(Path("mine.onnx"), scale=0.5)
    (after,) = ran(run, *words)
    assert after["series_key"] == before["series_key"]
    assert after["weights_digest"] != before["weights_digest"]


def test_a_dry_run_says_what_inputs_hold(run):
    graph(Path("mine.onnx"))
    code, out, err = run("mine.onnx", "--hardware", "cpu", "--batch-sizes", "2", "--dry-run")
    assert code == 0, err
    assert "mine.onnx · onnxruntime/cpu · fp32 · batch 2 · seq 128" in out
    told = "mine.onnx reads ids, int64 [batch,sequence]: 0 to 99: rows of the table it reads."
    assert told in " ".join(out.split())


def test_a_name_is_shown_as_it_is_whatever_is_in_it(run):
    graph(Path("two words, one\x1b[31m.onnx"))
    code, out, err = run("two words, one\x1b[31m.onnx", "--hardware", "cpu", "--dry-run")
    assert code == 0, err
    assert "\x1b" not in out + err
    assert "two words, one" in out


def test_arrays_of_a_file_are_fed_as_they_are(run):
    graph(Path("mine.onnx"))
    ids = np.arange(12, dtype=np.int64).reshape(3, 4)
    np.savez("mine.npz", ids=ids)
    words = ("mine.onnx", "--hardware", "cpu,openvino", "--input-file", "mine.npz", *FEW)
    rows = ran(run, *words)
    assert [(row["batch_size"], row["status"], row["verification"]) for row in rows] == [
        (3, "ok", "ok"), (3, "ok", "ok")
    ]  # fmt: skip
    assert {row["data_source"] for row in rows} == {str(Path("mine.npz").absolute())}
    assert {json.loads(row["input_shape"])["ids"][1] for row in rows} == {4}
    digests = {row["outputs_digest"] for row in rows}
    np.savez("mine.npz", ids=ids + 1)
    (again,) = ran(run, "mine.onnx", "--hardware", "cpu", "--input-file", "mine.npz", *FEW)
    assert again["outputs_digest"] not in digests
    _, out, _ = run(*words, "--dry-run")
    assert "mine.onnx reads ids, int64 [3,4]: as mine.npz has it." in " ".join(out.split())


def test_arrays_that_are_not_the_models_are_refused(run):
    graph(Path("mine.onnx"))
    np.savez("other.npz", tokens=np.zeros((1, 4), np.int64))
    np.savez("wrong.npz", ids=np.zeros((1, 4), np.float32))
    np.savez("pickled.npz", ids=np.array([{}], object))
    Path("none.npz").write_bytes(b"PK")
    for file, says in (
        ("other.npz", "has no input 'tokens'"),
        ("wrong.npz", "takes int64, not float32"),
        ("pickled.npz", "holds what is no plain array"),
        ("none.npz", "is no archive of arrays"),
        ("absent.npz", "cannot be read"),
    ):
        code, _, err = run("mine.onnx", "--input-file", file, "--dry-run")
        assert (code, says in " ".join(err.split())) == (2, True), err
    code, _, err = run("bert-tiny", "--input-file", "other.npz", "--dry-run")
    assert code == 2
    assert "describe the inputs of your own models" in " ".join(err.split())


def test_inputs_are_of_all_models_or_of_one_by_its_name(run):
    Path("other").mkdir()
    graph(Path("mine.onnx"))
    graph(Path("other/model.onnx"), name="words")

    code, _, err = run("mine.onnx", "other/model.onnx", "--input", "ids=0..3", "--dry-run")
    told = " ".join(err.split())
    assert code == 2
    assert "'other/model.onnx' is not measured: it has no input 'ids'. Its inputs: words." in told
    assert "What is of one model alone is said with its name: --input MODEL:NAME=…" in told

    both = ("--input", "mine.onnx:ids=0..3", "--input", "other/model.onnx:words=0..2")
    code, out, err = run("mine.onnx", "other/model.onnx", *both, "--dry-run")
    assert code == 0, err
    told = " ".join(out.split())
    assert "mine.onnx reads ids, int64 [batch,sequence]: 0 to 2, as it was said." in told
    assert "other/model.onnx reads words, int64 [batch,sequence]: 0 to 1, as it was said." in told

    code, _, err = run("mine.onnx", "--input", "mine.onnx:words=0..3", "--dry-run")
    assert (code, "has no input 'words'" in " ".join(err.split())) == (2, True)
    code, _, err = run("mine.onnx", "bert-tiny", "--input", "bert-tiny:ids=0..3", "--dry-run")
    assert code == 2
    assert "--input bert-tiny:ids is of no model of your own" in " ".join(err.split())


def test_what_inputs_hold_is_no_part_of_a_plan_file(run):
    graph(Path("mine.onnx"))
    words = ("mine.onnx", "--input", "ids=0..3")
    code, _, err = run(*words, "--save-plan", "saved.yaml")
    assert (code, "--input, or --save-plan" in " ".join(err.split())) == (2, True)
    assert not Path("saved.yaml").exists()
    assert run("mine.onnx", "--save-plan", "saved.yaml")[0] == 0
    code, _, err = run("saved.yaml", "--input", "ids=0..3", "--dry-run")
    assert (code, "not of those of saved.yaml" in " ".join(err.split())) == (2, True)


def test_a_saved_plan_names_the_file_from_its_folder(run):
    Path("models").mkdir()
    graph(Path("models/model.onnx"))
    words = ("net=models/model.onnx", "bert-tiny", "--hardware", "cpu", "--batch-sizes", "2")
    code, _, err = run(*words, "--save-plan", "saved.yaml")
    assert code == 0, err
    assert "net=models/model.onnx" in Path("saved.yaml").read_text()

    def cases(*words: str) -> list[tuple[str, str]]:
        code, out, err = run(*words, "--dry-run", "--json")
        assert code == 0, err
        return [(case["model"], case["case_id"]) for case in json.loads(out)["cases"]]

    assert cases("saved.yaml") == cases(*words)
    assert [name for name, _ in cases("saved.yaml")] == ["net", "bert-tiny"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("absent.onnx",), "there is no such file"),
        (("mine.onnx", "--input", "idz=0..3"), "has no input 'idz'"),
        (("mine.onnx", "--dim", "nodes"), "--dim takes the name of a dimension and its sizes"),
        (("mine.onnx", "--dim", "nodes=0"), "--dim nodes takes whole numbers from 1"),
        (("mine.onnx", "--hardware", "auto"), "mine.onnx is a file"),
        (("mine.pt",), "is not measured: files of .pt are not read"),
    ],
)
def test_a_slip_is_one_sentence(run, words, says):
    graph(Path("mine.onnx"))
    Path("mine.pt").write_bytes(b"\x80\x02")
    code, _, err = run(*words, "--dry-run")
    assert code == 2
    assert says in " ".join(err.split())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--framework", "pytorch"), "the pytorch runtime does not open ONNX graphs"),
        (("--mode", "training"), "mine.onnx is an exported graph, which is not trained"),
        (("--batch-sizes", "4"), "mine.onnx takes a batch of 2 and no other, not 4"),
    ],
)
def test_what_cannot_be_asked_of_a_file_is_refused(run, words, says):
    graph(Path("mine.onnx"), batch=2)
    code, out, _ = run("mine.onnx", "--hardware", "cpu", *words, "--dry-run")
    assert code == 3
    assert says in " ".join(out.split())


def test_a_dimension_that_no_model_has_is_said(run):
    graph(Path("mine.onnx"))
    code, out, err = run("mine.onnx", "--hardware", "cpu", "--dim", "nodes=4", "--dry-run")
    assert code == 2, err
    assert "no model of this run has a free dimension of that name" in " ".join((out + err).split())


def test_operators_that_no_engine_has_are_named_in_a_dry_run(run):
    def with_operators(path: str, *operators: tuple[str, str]) -> None:
        tensor = helper.make_tensor_value_info
        names = ["x", *(f"v{n}" for n in range(len(operators)))]
        nodes = [
            helper.make_node(name, [names[n]], [names[n + 1]], domain=domain)
            for n, (domain, name) in enumerate(operators)
        ]
        ends = tensor("x", TensorProto.FLOAT, [2, 8]), tensor(names[-1], TensorProto.FLOAT, [2, 8])
        made = helper.make_graph(nodes, "g", ends[:1], ends[1:])
        domains = {"": 17, **{domain: 1 for domain, _ in operators if domain}}
        opsets = [helper.make_opsetid(domain, number) for domain, number in domains.items()]
        onnx.save(helper.make_model(made, opset_imports=opsets, ir_version=8), path)

    with_operators("theirs.onnx", ("", "Relu"), ("com.example", "Blend"), ("", "Mend"))
    words = ("--hardware", "cpu,openvino", "--framework", "onnxruntime,openvino", "--dry-run")
    code, out, _ = run("theirs.onnx", *words)
    told = " ".join(out.split())
    assert code == 3
    for engine in ("onnxruntime", "openvino"):
        named = f"the {engine} runtime has no operator ai.onnx:Mend, com.example:Blend"
        assert named in told, told
    assert "nothing would be measured" in told
    with_operators("ours.onnx", ("", "Relu"), ("com.microsoft", "Gelu"))
    code, out, _ = run("ours.onnx", *words)
    assert "has no operator" not in " ".join(out.split())
    with_operators("intel.onnx", ("", "Relu"), ("org.openvinotoolkit", "Swish"))
    code, out, _ = run("intel.onnx", *words)
    told = " ".join(out.split())
    assert "the onnxruntime runtime has no operator org.openvinotoolkit:Swish" in told
    assert "the openvino runtime has no operator" not in told


def test_what_is_held_against_a_converted_graph_is_verified_and_says_so(run):
    """An `Add` of opset 6 along an axis, which ONNX Runtime does not have and OpenVINO does."""
    sizes = ["batch", 3, 3]
    added = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"], broadcast=1, axis=1)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes),
         helper.make_tensor_value_info("w", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, sizes)],
        [numpy_helper.from_array(np.array([0.5, -1.0, 2.0], np.float32), "w")],
    )  # fmt: skip
    onnx.save(helper.make_model(added, opset_imports=[helper.make_opsetid("", 6)], ir_version=3),
              "old.onnx")  # fmt: skip
    few = ("--batch-sizes", "2", *FEW)
    _, out, _ = run("old.onnx", "--hardware", "cpu,openvino", *few, "--json")
    rows = {row["runtime"]: row for row in json.loads(out)["results"]}
    assert rows["openvino"]["verification"] == "ok", rows["openvino"]
    details = rows["openvino"]["evidence"]["details"]
    assert details["held_against"] == "the graph, converted to opset 7 by onnx"
    assert "converted to opset 7" in describe_references([rows["openvino"]])
    assert rows["onnxruntime"]["reason"] == "operator"
    assert "--option onnxruntime.opset=converted" in rows["onnxruntime"]["advice"]
    asked = ("--framework", "onnxruntime", "--option", "onnxruntime.opset=converted")
    (row,) = ran(run, "old.onnx", *asked, *few)
    assert (row["status"], row["verification"]) == ("ok", "ok")
