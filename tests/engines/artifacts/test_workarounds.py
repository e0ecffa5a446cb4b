"""The table of workarounds: documented, ordered, for those it is for."""

import dataclasses
import re

import pytest

from accelbench.core.model import FileFormat, ModelFile
from accelbench.engines.artifacts.exporting import _REPLACED, _SET, _ZEROS
from accelbench.engines.artifacts.workarounds import (
    WORKAROUNDS,
    at_once,
    find,
    fixes_batch,
    next_for,
)
from accelbench.models.find import find as find_model

BERT, MAMBA, NEXT, XCLIP = (
    find_model(name) for name in ("bert-tiny", "mamba-tiny", "llava-next-tiny", "xclip-tiny")
)


@pytest.mark.parametrize("one", WORKAROUNDS, ids=lambda one: one.name)
def test_every_entry_says_what_and_why(one):
    assert len(one.what) > 15
    assert len(one.why) > 30
    assert re.fullmatch(r"[a-z_]+", one.name)
    re.compile(one.cures)
    re.compile(one.builders)
    assert find(one.name) is one
    # What acts on the module has code that acts, and what acts on the export has none.
    assert (one.name in {*_SET, _ZEROS, *_REPLACED}) == (one.acts == "module")


def test_entries_in_order():
    names = [one.name for one in WORKAROUNDS]
    assert len(names) == len(set(names))
    assert {*_SET, _ZEROS, *_REPLACED} <= set(names)
    names = [one.name for one in WORKAROUNDS]
    assert names.index("no_packed_sequences") < names.index("fixed_batch")
    assert names.index("image_sizes_as_numbers") < names.index("fixed_batch")
    assert names[-1] == "graph_exporter"
    for failure in ("export_failed: x", "wrong_outputs: y", ""):
        assert next_for(MAMBA, failure, ()) != "scan_by_doubling"
    assert not fixes_batch(())
    assert not fixes_batch(["eager_attention", "graph_exporter"])
    assert fixes_batch(["eager_attention", "fixed_batch"])
    assert fixes_batch(["image_sizes_as_numbers"])


@pytest.mark.parametrize(
    ("model", "failure", "first"),
    [
        (BERT, "export_failed: Exporting the operator 'aten::diff' is unsupported", "no_packed_"),
        (BERT, "export_failed: the operator 'aten::histc' to ONNX", "experts_in_batches"),
        (NEXT, "export_failed: Tensor type unknown has no __round__", "image_sizes_as_numbers"),
        (XCLIP, "fallback: 1 of 342 operators on CPU (Einsum × 1)", "product_for_einsum"),
        (NEXT, "fallback: 5 of 194 on CPU (NonZero × 1, ScatterND × 1)", "gather_for_scatter"),
        (BERT, "session_failed: gatherElements only supports constant indices", "token_types_as"),
        (BERT, "unlike_the_cpu: the output at a batch of 2 is 0.44 of its", "layer_norm_written"),
        (BERT, "wrong_outputs: its outputs are not the reference's", "fixed_batch"),
        (BERT, "run_failed: Non-zero status code returned while running Gather", "fixed_batch"),
        (BERT, "export_failed: scaled_dot_product_attention is not known", "eager_attention"),
        (BERT, "export_failed: anything at all", "graph_exporter"),
    ],
)
def test_a_known_failure_has_its_entry(model, failure, first):
    found = next_for(model, failure, ())
    assert found.startswith(first)


@pytest.mark.parametrize("form", FileFormat.all_formats())
def test_of_files_those_that_are_made_anew_alone_have_workarounds(form):
    """An ncnn network whose outputs were wrong was said to be no `onnx.ModelProto`."""
    file = ModelFile(form, "net", "digest", "stamp", "fp32", ())
    mine = dataclasses.replace(BERT, builder=f"file:{form}", file=file)
    found = next_for(mine, "wrong_outputs: its outputs are not the reference's", ())
    assert (found == "fixed_batch") is (form in {FileFormat.ONNX, FileFormat.PT2})


def test_an_entry_is_for_its_models_alone():
    assert next_for(BERT, "export_failed: __round__", ()) == "graph_exporter"
    assert (
        next_for(BERT, "fallback: 1 of 9 operators on the CPU (Einsum × 1, NonZero × 1)", ())
        is None
    )
    assert at_once(MAMBA) == ("scan_by_doubling",)
    assert at_once(BERT) == ()
    assert at_once(find_model("llava-1.5-7b")) == ("fixed_batch",)
    assert at_once(find_model("llava-next-7b")) == ("image_sizes_as_numbers",)


def test_nothing_is_tried_twice_and_it_ends():
    applied = []
    while (name := next_for(BERT, "wrong_outputs: far off", applied)) is not None:
        assert name not in applied
        applied.append(name)
    assert applied == ["fixed_batch", "graph_exporter"]
    assert next_for(BERT, "package_missing: no torch", ()) is None
