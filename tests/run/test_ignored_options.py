"""Options that change nothing are refused if they were typed; sizes have the names of a file."""

from dataclasses import replace

import pytest
from fixed_machine import models

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import UsageError
from accelbench.core.vocabulary import Mode
from accelbench.models.selection import choose
from accelbench.run.plan.request import Request, apart, find_unused, refuse_unused
from own_onnx import renamed


@pytest.fixture
def model(tmp_path):
    """A file whose sizes are called N, L and nodes."""
    (spec,) = choose([str(renamed(tmp_path / "sizes.onnx"))])
    return spec


def test_sizes_have_the_names_of_their_file(model):
    assert model.file.renamed == {"N": "batch", "L": "sequence"}
    assert model.dims == "nodes=?"

    dims = ("L=32,N=4,nodes=7", "L=64,N=4,nodes=7")
    (part,) = apart(Request((model, *models("bert-tiny"))[:1], dim=dims), False)
    assert part.batch_sizes == (4,)
    assert part.sequence_lengths == (32, 64)
    assert part.dim == ("nodes=7",)

    file = model.file
    assert file is not None
    other = replace(model, id="other", file=replace(file, renamed={}))
    first, second = apart(Request((model, other), dim=("L=64",)), False)
    assert (first.sequence_lengths, first.dim) == ((64,), ())
    assert (second.sequence_lengths, second.dim) == ((), ("L=64",))

    with pytest.raises(UsageError):
        apart(Request((model,), dim=("L=64",), sequence_lengths=(32,)), False)


def _case(mode=Mode.INFERENCE, **shapes):
    (bert,) = models("bert-tiny")
    return Case(bert, Target("pytorch", "cpu"), "fp32", Shapes(1, **shapes), mode)


@pytest.mark.parametrize(
    ("asked", "parameter"),
    [
        ({"image_sizes": (32,)}, "image_sizes"),
        ({"dim": ("nodes=3",)}, "dim"),
        ({"training_options": {"optimizer": "sgd"}}, "optimizer"),
        ({"runtime_options": {"openvino": {"hint": "latency"}}}, "runtime_options"),
    ],
)
def test_a_typed_option_without_effect_is_refused(asked, parameter):
    request = Request(models("bert-tiny"), **asked)
    cases = [_case(sequence=16)]
    (option,) = find_unused(request, cases)
    assert parameter in option.parameters
    with pytest.raises(UsageError):
        refuse_unused(request, cases, {parameter})
    refuse_unused(request, cases, {"models"})  # of a project's file: a note tells it
    refuse_unused(request, [], {parameter})  # nothing is there: that is told


def test_each_dimension_is_asked_for_by_itself():
    case = replace(_case(sequence=16), shapes=Shapes(1, dims="nodes=3"))
    request = Request(models("bert-tiny"), dim=("edges=2,nodes=3",))
    (option,) = find_unused(request, [case])
    assert "edges" in option.note
    assert "nodes" not in option.note


@pytest.mark.parametrize(
    ("option", "weights", "is_refused"),
    [
        ("weights", "hub", (True, False)),
        ("trust_remote_code", "random", (True, True)),
        ("trust_remote_code", "hub", (True, False)),
        ("reference", "random", (True, True)),
    ],
)
def test_options_about_weights_and_code_are_for_models_that_read_them(
    model, option, weights, is_refused
):
    for spec, refused in zip((model, *models("bert-tiny")), is_refused, strict=True):
        case = Case(spec, Target("onnxruntime", "cpu"), "fp32", Shapes(1))
        request = Request((spec,))
        if refused:
            with pytest.raises(UsageError):
                refuse_unused(request, [case], {option}, weights)
        else:
            refuse_unused(request, [case], {option}, weights)
