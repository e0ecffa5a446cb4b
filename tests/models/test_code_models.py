"""Models that an owner's code makes: which words name some, and what an attribute gives."""

from pathlib import Path

import pytest
import torch

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError, UnsupportedError, UsageError
from accelbench.core.model import CodeKind, FileFormat
from accelbench.core.serial import case_from_json, case_to_json
from accelbench.models.build import build, build_module
from accelbench.models.code_models.loading import code_word
from accelbench.models.code_models.models import describe_code_model, model_of_code
from accelbench.models.file_models.given_inputs import parse_inputs
from accelbench.models.inputs import input_shapes, make_inputs
from accelbench.models.losses import loss_of_module
from accelbench.models.narrow import in_precision
from accelbench.models.selection import choose
from code_looked_at import look_here

MODULES = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.table = nn.Embedding(100, width)
        self.out = nn.Linear(width, 4)

    def forward(self, ids, scale):
        return self.out(self.table(ids).mean(1) * scale)

def make():
    return Net(), (torch.tensor([[3, 7], [5, 60]]), torch.ones(2, 1))

class Flat(nn.Module):
    example_inputs = torch.ones(3, 4)
    def forward(self, x):
        return x.reshape(12).sum()[None]

linear = nn.Linear(4, 2)
linear.example_inputs = {"input": torch.zeros(1, 4)}
bare = nn.Linear(4, 2)
sized = lambda size: nn.Linear(size, 2)
words = "no model"
"""


@pytest.fixture
def spec(tmp_path, monkeypatch):
    """The model of an attribute of a file with such a source, looked at in this process."""
    monkeypatch.chdir(tmp_path)
    look_here(monkeypatch)

    def made(attribute, *inputs, source=MODULES, reference=""):
        (tmp_path / "mine.py").write_text(source)
        word = code_word(f"mine.py:{attribute}")
        assert word is not None
        return model_of_code(word, parse_inputs(inputs), reference)

    return made


@pytest.mark.parametrize(
    ("word", "place", "attribute"),
    [
        ("mine.py:make", "mine.py", "make"),
        ("a/mine.py:Net.make", "a/mine.py", "Net.make"),
        (r"C:\work\mine.py:make", r"C:\work\mine.py", "make"),
        ("net=a/mine.py:make", "a/mine.py", "make"),
        ("json.decoder:JSONDecoder", "json.decoder", "JSONDecoder"),
        ("mine.py", "mine.py", ""),
    ],
)
def test_a_word_with_a_colon_names_code(word, place, attribute):
    found = code_word(word)
    assert (found.place, found.attribute) == (place, attribute)


@pytest.mark.parametrize("word", ["bert:latest", r"C:\models", "cuda:0", "bert-tiny", "a/b", "x:"])
def test_other_words_are_left_to_others(word):
    assert code_word(word) is None


def test_only_what_is_there_is_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert code_word("mine_from_here:make") is None
    Path("mine_from_here.py").touch()
    assert code_word("mine_from_here:make") is not None
    monkeypatch.chdir(tmp_path)
    Path("resnet.py").write_text("raise SystemExit")
    assert choose(["resnet-tiny"])[0].code is None


def test_a_factory_says_names_types_and_values(spec):
    made = spec("make")
    assert made.id == "mine.py:make"
    assert made.parameters == 100 * 8 + 8 * 4 + 4
    ids, scale = made.inputs
    assert (ids.name, ids.shape, ids.dtype, ids.low, ids.high) == (
        "ids",
        ("batch", 2),
        "int64",
        3,
        61,
    )
    assert (scale.shape, scale.dtype) == (("batch", 1), "float")
    assert (made.code.kind, made.code.made_by) == (CodeKind.MODULE, "factory")
    assert made.format is None
    assert "runs in every worker" in describe_code_model(made)[0]
    assert "3 to 60: the least and the largest" in describe_code_model(made)[1]


def test_an_owner_says_more_of_an_input(spec):
    made = spec("make", "ids=int64[batch,sequence]:0..100")
    ids = made.inputs[0]
    assert (ids.shape, ids.low, ids.high) == (("batch", "sequence"), 0, 100)
    assert made.sequence == 2  # its example's own
    named = spec("make", "ids=int64[batch,words]:0..100")
    assert named.dims == "words=2"
    bare = spec("bare", "input=float32[batch,4]")
    assert bare.inputs[0].shape == ("batch", 4)


def test_an_example_says_the_rest(spec):
    made = spec("linear")
    assert [entry.name for entry in made.inputs] == ["input"]
    assert made.inputs[0].shape == ("batch", 4)
    made = spec("Flat")
    assert made.fixed_batch == 3
    assert made.inputs[0].shape == (3, 4)
    assert (
        "at a batch of 3 alone: with its example twice over it fails"
        in describe_code_model(made)[-1]
    )
    made = spec("make")
    case = Case(made, Target("pytorch", "cpu"), "fp32", Shapes(2))
    assert case_from_json(case_to_json(case)) == case


def test_its_weights_are_its_own_and_the_same_in_each_worker(spec):
    made = spec("make")
    first, second = build_module(made, 0), build_module(made, 0)
    assert first.digest == second.digest != build_module(made, 1).digest
    inputs = make_inputs(made, Shapes(2), 0)
    assert inputs["ids"].min() >= 3
    assert inputs["ids"].max() <= 60
    fixed = spec("linear")
    one, other = build_module(fixed, 0), build_module(fixed, 0)
    assert one.digest == other.digest
    assert one.module is not other.module  # what trained the first has not trained the second


def test_other_code_or_weights_than_looked_at(spec):
    first = build_module(spec("make"), 0)
    second = spec("make", source=MODULES.replace(".mean(1)", ".sum(1)"))
    assert build_module(second, 0).digest != first.digest
    assert second.config_digest == spec("make").config_digest  # its history goes on
    made = spec("make")
    Path("mine.py").write_text(MODULES + "\n")
    with pytest.raises(CaseError, match="was changed after the run had looked at it"):
        build_module(made, 0)

    Path("mine_part.py").write_text("WIDTH = 8")
    source = MODULES + "\nimport mine_part\n"
    first = spec("make", source=source)
    assert [Path(file).name for file in first.code.sources] == ["mine.py", "mine_part.py"]
    Path("mine_part.py").write_text("WIDTH = 9")
    with pytest.raises(CaseError, match="was changed"):
        build_module(first, 0)

    with pytest.raises(CaseError, match="brings its weights"):
        build_module(spec("make"), 0, "hub")


CALLABLES = """
import numpy as np

def add(x, y=1):
    return x + y
add.example_inputs = (np.arange(3),)

def plain():
    return 4

def bare(x, y):
    return x

async def later(x):
    return x

def parts(x):
    yield x

class Counter:
    example_inputs = {"x": 3}
    def setup(self): self.ready = True
    def __call__(self, x): return x if self.ready else None

class Sized:
    def __init__(self, size): ...

def broken():
    raise ValueError("no such table")
"""


def test_what_is_no_module_is_timed_as_it_is(spec):
    for attribute, made_by in (("add", "itself"), ("plain", "itself"), ("Counter", "class")):
        made = spec(attribute, source=CALLABLES)
        assert (made.format, made.fixed_batch) == (FileFormat.CALLABLE, 1)
        assert (made.code.made_by, made.inputs, made.item) == (made_by, (), "calls")
        assert "called with its own inputs" in describe_code_model(made)[1]
    drawn = spec("bare", "x=float32[batch,64]", "y=int64[2]:0..9", source=CALLABLES)
    assert drawn.fixed_batch is None
    assert [entry.shape for entry in drawn.inputs] == [("batch", 64), (2,)]


def test_another_batch_of_a_call_with_its_own_example_is_told_of_drawn_inputs(spec):
    with pytest.raises(UnsupportedError, match="takes a batch of 1 and no other") as caught:
        input_shapes(spec("add", source=CALLABLES), Shapes(4))
    assert "--batch-sizes 1, or have its inputs drawn: --input NAME=" in str(caught.value.advice)


def test_an_owner_names_whose_answers_are_right(spec):
    source = CALLABLES + "\nadd.reference = lambda x, y=1: 1 + x\n"
    own = spec("add", source=source)
    assert own.code.reference == "add.reference"
    named = spec("add", source=CALLABLES, reference="bare")
    assert named.code.reference == "bare"
    with pytest.raises(UsageError, match="there is no 'bar' in it"):
        spec("add", source=CALLABLES, reference="bar")
    with pytest.raises(UsageError, match="compared with itself in fp32"):
        spec("make", reference="sized")


@pytest.mark.parametrize(
    ("attribute", "source", "says"),
    [
        ("mak", MODULES, "there is no 'mak' in it. Did you mean make?"),
        ("bare", MODULES, "it takes input, and nothing says what input is. Give it example_inputs"),
        ("words", MODULES, "it is of type str, which cannot be called"),
        ("sized", MODULES, "it takes size, and nothing says what size is"),
        ("bare", CALLABLES, "it takes x, y, and nothing says what x is"),
        ("later", CALLABLES, "it is a coroutine: its work is not done when it returns"),
        ("parts", CALLABLES, "it is a generator"),
        ("Sized", CALLABLES, "it is a class that takes size"),
        ("broken", CALLABLES, "its code fails: ValueError: no such table (mine.py, line "),
        ("make", "import no_such_package", "its code fails: ModuleNotFoundError"),
        ("make", "def make(:\n", "its code fails: SyntaxError: invalid syntax (mine.py, line 1)"),
    ],
)
def test_what_is_not_measured_is_one_sentence_with_its_reason(spec, attribute, source, says):
    with pytest.raises(UsageError) as refused:
        spec(attribute, source=source)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("attribute", "source", "inputs"), [("bare", MODULES, "input"), ("bare", CALLABLES, "x, y")]
)
@pytest.mark.parametrize("given", ["z=0..3", "z=float32[batch,4]"])
def test_an_input_that_a_model_does_not_have_is_refused_with_those_that_it_has(
    spec, attribute, source, inputs, given
):
    with pytest.raises(UsageError) as refused:
        spec(attribute, given, source=source)
    assert f"it has no input 'z'. Its inputs: {inputs}." in str(refused.value)


def test_what_names_code_or_inputs(tmp_path):
    with pytest.raises(UsageError, match="its inputs are input_ids, attention_mask"):
        choose(["bert-tiny"], inputs=parse_inputs(["x=0..3"]))
    with pytest.raises(UsageError, match=r"Name it behind a colon: mine\.py:make"):
        choose([str(tmp_path / "mine.py")])


def test_it_is_looked_at_in_a_process_that_ends(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("noisy.py").write_text("def f():\n    print('{}')\n    return 1\n")
    assert choose(["noisy.py:f"])[0].id == "noisy.py:f"
    Path("leaves.py").write_text("raise SystemExit(0)")
    with pytest.raises(UsageError, match=r"its code fails: SystemExit: 0 \(leaves\.py, line 1\)"):
        choose(["leaves.py:f"])
    Path("gone.py").write_text("import os\nprint('so far')\nos._exit(3)")
    with pytest.raises(UsageError) as gone:
        choose(["gone.py:f"])
    assert "its process ended (exit code 3); its last output: so far." in gone.value.message
    assert "os._exit in it ends whoever measures it" in gone.value.advice


TRAINED = """
import torch
from torch import nn

def make():
    return nn.Linear(4, 3), torch.randn(2, 4), nn.CrossEntropyLoss(), torch.tensor([0, 2])
"""


def test_a_factory_says_how_its_module_is_trained(spec):
    import torch

    made = spec("make", source=TRAINED)
    (labels,) = made.training.labels
    assert (labels.name, labels.shape, labels.low, labels.high) == ("labels", ("batch",), 0, 3)
    module = build_module(made.training_variant, 0).module
    assert list(module.state_dict()) == ["weight", "bias"]  # its loss is no layer of it
    fed = {"labels": torch.tensor([1, 2])}
    outputs = module(torch.ones(2, 4))
    right = torch.nn.functional.cross_entropy(outputs, fed["labels"])
    assert torch.equal(loss_of_module(made.training.loss, module)(outputs, fed), right)
    assert spec("linear").training is None


UNFINISHED = """
import torch
from torch import nn

X = (torch.ones(2, 4),)

class Late(nn.Module):
    def __init__(self):
        super().__init__()
        self.made = None
    def forward(self, x):
        if self.made is None:
            self.made = nn.Linear(4, 2)
        return self.made(x)

class Cached(nn.Module):
    def forward(self, x):
        if not hasattr(self, "angles"):
            self.register_buffer("angles", torch.ones(4))
        return x * self.angles

class Halves(nn.Module):
    def forward(self, x):
        return x.mul_(0.5) + 1

class Cuts(nn.Module):
    def forward(self, x):
        return x.relu_() + 1

lazy = lambda: (nn.LazyLinear(2), X)
late = lambda: (Late(), X)
meta = lambda: (nn.Linear(4, 2, device="meta"), X)
halves = lambda: (Halves(), X)
cached = lambda: (Cached(), X)
empty = lambda: (nn.Linear(4, 2), (torch.zeros(0, 4),))
double = lambda: (nn.Linear(4, 2).double(), (torch.zeros(1, 4, dtype=torch.float64),))
cuts = lambda: (Cuts(), (torch.tensor([[1.0, -1.0], [2.0, -2.0]]),))
"""


@pytest.mark.parametrize(
    ("attribute", "words"),
    [
        ("lazy", "its weight 'weight' is made by its first call, which every process makes anew"),
        ("late", r"its weight 'made\.bias' is made by its first call"),
        ("meta", "its weight 'weight' is on the device meta, which holds no values"),
        ("empty", r"its input 'input' is empty in its example: \[0, 4\]"),
        ("halves", r"each call changes its input 'x' in place.* x = x\.clone\(\)"),
    ],
)
def test_a_module_that_is_not_ready_is_refused_with_its_own_fault(spec, attribute, words):
    with pytest.raises(UsageError, match=words):
        spec(attribute, source=UNFINISHED)


def test_a_module_in_fp64_is_built_in_fp32_wherever_it_is_built_and_says_so(spec):
    """The export had its weights in fp64 and its inputs in fp32."""
    found = spec("double", source=UNFINISHED)
    assert {p.dtype for p in build(found, 0).parameters()} == {torch.float32}
    assert "has weights of float64, which are cast to --precision" in found.code.notes


def test_complex_weights_keep_their_imaginary_parts():
    """`Module.to` drops them: results were of another model, and verified against that."""
    module = torch.nn.Linear(2, 2).double()
    module.register_buffer("turning", torch.tensor([1 + 2j]), persistent=False)
    cast = in_precision(module, torch.float32)
    assert cast.get_buffer("turning").item() == 1 + 2j
    assert cast.weight.dtype == torch.float32


@pytest.mark.parametrize("attribute", ["cached", "cuts"])
def test_a_module_whose_second_call_does_the_same_is_measured(spec, attribute):
    assert spec(attribute, source=UNFINISHED).inputs[0].name == "x"
