"""Programs of torch.export: read without running them, hostile ones refused, the same bits made."""

import json
import pickle
import zipfile
from pathlib import Path

import pytest

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError, UnsupportedError, UsageError
from accelbench.core.protocols import Device
from accelbench.core.serial import case_from_json, case_to_json
from accelbench.engines.pytorch.runtime import PytorchRuntime
from accelbench.models.build import build_module
from accelbench.models.file_models.kinds import FileRefusedError
from accelbench.models.file_models.looking import look
from accelbench.models.file_models.models import model_of_file
from accelbench.models.inputs import make_inputs, named_tensors, settle

torch = pytest.importorskip("torch")


class Reader(torch.nn.Module):
    """A table, a part without gradients, a size that is computed, and outputs by name."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(50, 8)
        self.norm = torch.nn.BatchNorm1d(8)
        self.tied = torch.nn.Linear(8, 50, bias=False)
        self.tied.weight = self.table.weight
        self.scale = torch.full((8,), 0.5)

    def forward(self, ids, mask):
        rows = self.table(ids) * mask.unsqueeze(-1)
        with torch.no_grad():
            places = torch.arange(ids.shape[1], device=ids.device).sqrt()
        rows = (rows + places[None, :, None]) * self.scale
        flat = rows.reshape(ids.shape[0] * ids.shape[1], 8)
        left, right = self.norm(flat).chunk(2, dim=1)
        return {"logits": self.tied(rows), "halves": left * right}


def drawn(module):
    """A module with weights that differ from place to place, as it infers."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return module.eval()


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    path = tmp_path_factory.mktemp("programs") / "reader.pt2"
    batch, length = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("seq", min=4, max=99)
    free = {0: batch, 1: length}
    example = (torch.zeros(2, 5, dtype=torch.int32), torch.ones(2, 5))
    made = torch.export.export(drawn(Reader()), example, dynamic_shapes=(free, free))
    torch.export.save(made, path)
    return path


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    path = tmp_path_factory.mktemp("programs") / "product.pt2"
    example = (torch.ones(3, 4),)
    torch.export.save(torch.export.export(drawn(torch.nn.Linear(4, 2)), example), path)
    return path


def rewritten(source, target, program=None, weights=None, more=None, compress=zipfile.ZIP_STORED):
    """An archive as another one, some of it changed."""
    changes = {"model.json": program, "model_weights_config.json": weights}
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", compress) as new:
        members = {name: old.read(name) for name in old.namelist()}
        members |= {f"{source.stem}/{name}": data for name, data in (more or {}).items()}
        for name, data in members.items():
            change = changes.get(name.rpartition("/")[2])
            if change is not None:
                value = json.loads(data)
                change(value)
                data = json.dumps(value).encode()
            new.writestr(name, data)
    return target


def says(path):
    with pytest.raises(FileRefusedError) as refused:
        look(path)
    return f"{refused.value.message} {refused.value.advice}"


def test_a_program_says_what_it_reads(reader):
    spec = model_of_file(str(reader))
    ids, mask = spec.inputs
    assert (spec.id, spec.parameters) == ("reader.pt2", 50 * 8 + 2 * 8)
    assert (ids.shape, ids.dtype, ids.low, ids.high) == (("batch", "sequence"), "int32", 0, 50)
    assert (mask.dtype, mask.constant) == ("float", 1)
    assert (spec.file.precision, spec.file.most) == ("fp32", {"batch": 64, "sequence": 99})
    assert (spec.file.least, spec.format, spec.graph) == ({"sequence": 4}, None, None)
    case = Case(spec, Target("pytorch", "cpu"), "fp32", Shapes(1, sequence=16))
    assert case_from_json(case_to_json(case)).model == spec


def test_its_module_gives_the_bits_that_torch_gives(reader):
    spec = model_of_file(str(reader))
    made = build_module(spec, 0)
    theirs = torch.export.load(reader).module()
    for batch, length in ((1, 4), (3, 17)):
        arrays = make_inputs(spec, Shapes(batch, sequence=length), 0)
        inputs = {name: torch.from_numpy(values) for name, values in arrays.items()}
        with torch.no_grad():
            ours, others = named_tensors(made.module(**inputs)), theirs(*inputs.values())
        assert list(ours) == ["logits", "halves"]
        assert all(torch.equal(ours[name], others[name]) for name in ours)


def test_a_program_of_fixed_sizes_has_its_own_batch_alone(product):
    spec = model_of_file(str(product))
    assert (spec.inputs[0].shape, spec.fixed_batch) == ((3, 4), 3)


@pytest.mark.parametrize(
    ("shapes", "told"),
    [
        (Shapes(65, sequence=8), "takes a batch of 64 or less, not 65"),
        (Shapes(1, sequence=3), "takes a sequence of 4 or more and 99 or less, not 3"),
        (Shapes(1, sequence=100), "takes a sequence of 4 or more and 99 or less, not 100"),
    ],
)
def test_sizes_outside_its_ranges_are_refused(reader, shapes, told):
    spec = model_of_file(str(reader))
    with pytest.raises(UnsupportedError, match=told):
        settle(spec, shapes)
    assert settle(spec, Shapes(64, sequence=99)).batch == 64


def support(path, precision):
    case = Case(model_of_file(str(path)), Target("pytorch", "cpu"), precision, Shapes(3))
    return PytorchRuntime().supports(case, Device("cpu", "a processor")).message


def test_a_program_is_cast_where_none_of_its_nodes_names_a_type(product, tmp_path):
    spec = model_of_file(str(product))
    assert support(product, "bf16") == ""
    module = build_module(spec, 0, dtype=torch.bfloat16).module
    assert module(input=torch.ones(3, 4, dtype=torch.bfloat16))["output"].dtype == torch.bfloat16
    assert build_module(spec, 0, dtype=torch.bfloat16).digest == build_module(spec, 0).digest

    class Named(torch.nn.Module):
        def forward(self, x):
            return x.to(torch.float16).cumsum(0) * torch.ones(4, dtype=torch.float16)

    named = tmp_path / "named.pt2"
    torch.export.save(torch.export.export(Named().half(), (torch.ones(3, 4),)), named)
    assert "name a floating-point type, so that it is not cast to bf16" in support(named, "bf16")
    assert support(named, "amp-bf16") == ""


def test_a_type_that_nodes_name_follows_where_the_program_is_widened(tmp_path):
    class Half(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(4))

        def forward(self, x):
            return x * self.weight + torch.arange(4, dtype=self.weight.dtype)

    path = tmp_path / "half.pt2"
    torch.export.save(torch.export.export(Half().half(), (torch.ones(3, 4).half(),)), path)
    spec = model_of_file(str(path))
    assert (spec.file.precision, spec.inputs[0].dtype) == ("fp16", "float")
    wide = build_module(spec, 0).module(x=torch.full((3, 4), 1e-4))["output"]
    assert wide.dtype == torch.float32
    assert wide[0, 1] == 1 + torch.tensor(1e-4)  # which fp16 does not tell from 1


class Bomb:
    def __reduce__(self):
        return (Path.touch, (Path("exploded"),))


def test_nothing_of_a_hostile_program_is_run(reader, tmp_path, monkeypatch):
    """What torch.export.load evaluates, executes and unpickles is passed over."""
    monkeypatch.chdir(tmp_path)
    touch = "__import__('pathlib').Path('exploded').touch()"

    def evil(program):
        program["guards_code"] = [f"{touch} or True"]
        module = program["graph_module"]
        values = module["graph"]["tensor_values"]
        values["embedding"]["sizes"][0]["as_expr"]["expr_str"] = touch
        module["module_call_graph"][1]["signature"] = {"in_spec": "os:system"}
        for node in module["graph"]["nodes"]:
            node["metadata"] = {"source_fn_stack": "x,torch.os.abort", "stack_trace": f"\n{touch}"}
            node["name"] = f"a():\n {touch}#"

    more = {"data/sample_inputs/model.pt": pickle.dumps(Bomb())}
    path = rewritten(reader, tmp_path / "evil.pt2", evil, more=more)
    spec = model_of_file(str(path))
    inputs = {"ids": torch.ones(1, 4, dtype=torch.int32), "mask": torch.ones(1, 4)}
    assert build_module(spec, 0).module(**inputs)["logits"].shape == (1, 4, 50)
    assert not Path("exploded").exists()


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("torch.os.system", "calls 'torch.os.system', which is no operator of ATen"),
        ("torch.ops.load_library", "calls 'load_library', which is no operator of ATen"),
        ("torch.ops.aten.from_file.default", "its operator from_file opens files"),
        ("torch.ops.aten.__class__.__init__.x", "is no operator of ATen"),
        ("math.__loader__", "calls 'math.__loader__'"),
        ("torch.ops.quantized_decomposed.add.default", "calls 'quantized_decomposed.add.default'"),
        ("#higher:order", "calls '#higher:order'"),
    ],
)
def test_what_is_no_operator_is_not_called(product, tmp_path, target, told):
    def call(program):
        program["graph_module"]["graph"]["nodes"][0]["target"] = target

    words = says(rewritten(product, tmp_path / "calls.pt2", call))
    assert told.lower() in words.lower()
    assert "Export it to ONNX" in words


def test_an_operator_that_torch_does_not_have_is_said_where_it_is_built(product, tmp_path):
    def call(program):
        program["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.aten.newer.default"

    spec = model_of_file(str(rewritten(product, tmp_path / "newer.pt2", call)))
    with pytest.raises(CaseError, match=r"has no operator aten\.newer\.default"):
        build_module(spec, 0)


def node(change):
    return lambda program: change(program["graph_module"]["graph"]["nodes"][0])


def signature(change):
    return lambda program: change(program["graph_module"]["signature"])


def meta(**fields):
    return lambda config: config["config"]["weight"]["tensor_meta"].update(fields)


_HUGE = [{"as_int": 2**40}, {"as_int": 4}]
_CHANGED = {"buffer_mutation": {"arg": {"name": "linear"}, "buffer_name": "count"}}


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"program": lambda p: p.clear()}, "is not as torch.export writes it"),
        ({"program": lambda p: p.update(graph_module=[])}, "is not as torch.export writes it"),
        ({"program": lambda p: p["schema_version"].update(major=9)}, "version 9 of its schema"),
        ({"program": node(lambda n: n["inputs"][0].update(arg={"as_tensor": {"name": "gone"}}))},
         "is not as torch.export writes it"),
        ({"program": node(lambda n: n["inputs"][0].update(arg={"as_operator": "torch.os.abort"}))},
         "takes a operator"),
        ({"program": signature(lambda s: s["output_specs"].append(_CHANGED))},
         "Each call changes its 'count'"),
        ({"program": signature(lambda s: s["input_specs"].insert(0, {"token": {"arg": {}}}))},
         "takes a token"),
        ({"weights": lambda c: c["config"].pop("weight")}, "Its weight 'weight' is not in it"),
        ({"weights": lambda c: c["config"]["weight"].update(use_pickle=True)},
         "Its weight 'weight' is pickled"),
        ({"weights": lambda c: c["config"]["weight"].update(path_name="../../../etc/passwd")},
         "is not as torch.export writes it"),
        ({"weights": meta(sizes=_HUGE)}, "claims bytes that are not there"),
        ({"weights": meta(sizes=_HUGE, strides=[{"as_int": 0}, {"as_int": 0}])},
         "claims bytes that are not there"),
        ({"weights": meta(storage_offset={"as_int": 1})}, "claims bytes that are not there"),
        ({"weights": meta(strides=[{"as_int": -4}, {"as_int": 1}])},
         "is not as torch.export writes it"),
        ({"weights": meta(dtype=6)}, "Its weights are of several types: fp16, fp32"),
        ({"more": {"data/aotinductor/model/a.so": b"\x7fELF"}}, "code that AOTInductor compiled"),
        ({"more": {"data/constants/custom_obj_0": b"x"}}, "It holds pickled objects"),
        ({"more": {"data/constants/opaque_obj_0": b"x"}}, "It holds pickled objects"),
        ({"more": {"data/weights/model.pt": b"x"}}, "Its weights are pickled"),
        ({"more": {"models/other.json": b"{}"}}, "It holds several programs"),
        ({"more": {"../../outside": b"x"}}, "has a member outside its own folder"),
        ({"more": {"models/model.json": b"\xff"}}, "Its program is no JSON"),
        ({"more": {"models/model.json": b"[" * 5000}}, "Its program is no JSON"),
        ({"compress": zipfile.ZIP_DEFLATED}, "is compressed or encrypted"),
    ],
)  # fmt: skip
def test_a_hostile_archive_is_one_sentence(product, tmp_path, how, told):
    assert told in says(rewritten(product, tmp_path / "bad.pt2", **how))


def test_archives_that_are_none(product, tmp_path):
    whole = product.read_bytes()
    path = tmp_path / "other.pt2"
    path.write_bytes(whole[: len(whole) // 2])
    assert "It is no archive of torch.export, or half of one" in says(path)
    path.write_bytes(pickle.dumps(Bomb()))
    assert "It begins as a pickle does" in says(path)
    torch.save(torch.nn.Linear(2, 2).state_dict(), path)
    words = says(path)
    assert "a pickled checkpoint of torch.save" in words
    assert "torch.export.save(torch.export.export(model, example), path)" in words
    torch.jit.save(torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(1, 2)), str(path))
    assert "It is a TorchScript archive" in says(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("serialized_exported_program.json", b"{}")
    assert "PyTorch before 2.8 wrote it" in says(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", b"<w/>")
    assert "There is no program of torch.export in it" in says(path)

    torch.save({}, tmp_path / "model.pt2")
    with pytest.raises(UsageError, match="is not measured: it is a pickled checkpoint"):
        model_of_file(str(tmp_path / "model.pt2"))


def test_members_that_lie_over_each_other_are_refused(product, tmp_path):
    """A directory that names the same bytes many times is a bomb without compression."""
    path = tmp_path / "over.pt2"
    with zipfile.ZipFile(product) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
        new.writestr("product/data/weights/weight_8", bytes(10_000))
        first = new.filelist[-1]
        for number in range(50):
            again = zipfile.ZipInfo(f"product/data/weights/weight_{number + 9}")
            for field in ("header_offset", "file_size", "compress_size", "CRC"):
                setattr(again, field, getattr(first, field))
            new.filelist.append(again)
            new.NameToInfo[again.filename] = again
    assert "claims more bytes than the file has" in says(path)


class Changing(torch.nn.Module):
    """Work in place: on an input by a view, on what it has made, and on what it keeps."""

    def __init__(self, what):
        super().__init__()
        self.what = what
        self.norm = torch.nn.BatchNorm1d(8)
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        if self.what == "input":
            return self.linear(x.view(-1, 8)[:2].mul_(2.0))
        return self.linear(self.norm(x)).relu_()


@pytest.mark.parametrize(
    ("what", "named"), [("input", "'x'"), ("norm", "'norm.running_mean'|'norm.num_batches")]
)
def test_work_in_place_on_what_is_given_is_refused(tmp_path, what, named):
    """Such a step has another batch each time, or another state; the signature says neither."""
    module = Changing(what).train(what == "norm")
    path = tmp_path / "changing.pt2"
    torch.export.save(torch.export.export(module, (torch.randn(4, 8),)), path)
    with pytest.raises((FileRefusedError, UsageError), match=f"Each call changes its (?:{named})"):
        look(path)


def test_work_in_place_on_what_it_has_made_is_measured(tmp_path):
    path = tmp_path / "made.pt2"
    torch.export.save(torch.export.export(Changing("").eval(), (torch.randn(4, 8),)), path)
    assert look(path)
