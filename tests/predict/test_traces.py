"""Operators of catalogue models: traced in shapes, kept, and what stands in without torch."""

from __future__ import annotations

import json

import pytest

from accelbench.core.case import Shapes
from accelbench.models.cost import cost
from accelbench.models.find import every_model, find
from accelbench.models.graph_files.steps import UntracedError
from accelbench.models.inputs import settle
from accelbench.predict import traces
from accelbench.predict.cases import CaseConfiguration, PredictedCase
from accelbench.predict.signatures import CLASSES, PassTrace
from accelbench.predict.terms import PRODUCT_TERMS, TracedCase, time_terms
from accelbench.predict.traces import Traces, traced

#: Sizes that the catalogue's file has no trace of.
SHORT = Shapes(1, sequence=32)


def macs(trace: PassTrace) -> int:
    return sum(count * signature.macs for signature, count in trace.signatures)


@pytest.mark.parametrize("name", ["bert-tiny", "resnet-tiny", "vit-tiny"])
def test_products_are_those_of_the_analytic_cost(name, tmp_path):
    spec = find(name)
    shapes = settle(spec, Shapes(1))
    passed = Traces(tmp_path).of(name, shapes)["forward"]
    whole = cost(spec, shapes, "fp32")
    assert whole is not None
    assert 2 * macs(passed) == pytest.approx(whole.flops, rel=0.12)  # the rest are no products
    assert 2 * macs(passed) < whole.flops
    assert passed.weights == spec.parameters


def test_a_network_of_convolutions_has_them_and_attention_is_seen_whole(tmp_path):
    kept = Traces(tmp_path)
    convolutions = kept.of("resnet-tiny", settle(find("resnet-tiny"), Shapes(1)))["forward"]
    attention = kept.of("bert-tiny", settle(find("bert-tiny"), Shapes(1)))["forward"]
    assert {"conv", "pw", "bn", "act"} <= {s.op_class for s, _ in convolutions.signatures}
    assert sum(n for s, n in attention.signatures if s.op_class == "sdpa") == 2  # one a layer
    assert {s.op_class for s, _ in attention.signatures} <= set(CLASSES)


def test_a_request_has_a_prefill_and_a_token(tmp_path):
    spec = find("gpt2-tiny")
    passes = Traces(tmp_path).of("gpt2-tiny", settle(spec, Shapes(1, new_tokens=8)))
    assert set(passes) == {"prefill", "decode"}
    # Both make the logits of one token; beside those a prompt of 32 does 32 times as much.
    logits = spec.config["n_embd"] * spec.config["vocab_size"]
    prompt = spec.generation.prompt_tokens
    read, token = (macs(passes[name]) - logits for name in ("prefill", "decode"))
    assert read == pytest.approx(prompt * token, rel=0.1)


@pytest.mark.parametrize("name", ["bert-tiny", "resnet-tiny", "gpt2-tiny", "whisper-mini"])
def test_the_file_of_the_catalogue_has_what_is_traced(name):
    kept = json.loads(traces.CATALOGUE_FILE.read_text())
    made = json.loads(json.dumps(traced(find(name))))
    assert {key: kept.get(key) for key in made} == made


@pytest.mark.full  # a minute
def test_the_file_of_the_catalogue_is_up_to_date(monkeypatch):
    monkeypatch.setattr("sys.argv", ["traces"])
    traces.main()


def test_every_model_is_in_the_file_of_the_catalogue(monkeypatch):
    monkeypatch.setattr(traces, "torch_is_here", lambda: False)
    kept = Traces()
    for spec in every_model():
        assert kept.of(spec.id, settle(spec, Shapes(8)))
    assert not kept.coarse


def test_a_kept_trace_is_read_without_torch(tmp_path, monkeypatch):
    shapes = settle(find("bert-tiny"), SHORT)
    taken = Traces(tmp_path).of("bert-tiny", shapes)
    monkeypatch.setattr(traces, "torch_is_here", lambda: False)
    without = Traces(tmp_path)
    assert without.of("bert-tiny", shapes)["forward"].to_dict() == taken["forward"].to_dict()
    assert not without.coarse


def test_without_torch_operations_and_bytes_stand_in(tmp_path, monkeypatch):
    monkeypatch.setattr(traces, "torch_is_here", lambda: False)
    kept = Traces(tmp_path)
    spec = find("bert-base")
    coarse = kept.of("bert-base", settle(spec, SHORT))["forward"]
    assert 2 * macs(coarse) == pytest.approx(cost(spec, SHORT, "fp32").flops)
    assert kept.coarse == {"bert-base"}
    assert not list(tmp_path.iterdir())  # what stands in is not kept in a trace's place


def test_a_broken_file_is_taken_anew(tmp_path):
    shapes = settle(find("bert-tiny"), SHORT)
    taken = Traces(tmp_path).of("bert-tiny", shapes)
    (path,) = tmp_path.iterdir()
    path.write_text('{"forward": {"signatures": [["lin", 1]]}}')
    assert Traces(tmp_path).of("bert-tiny", shapes)["forward"].to_dict() == (
        taken["forward"].to_dict()
    )


def test_operators_that_nothing_counts_are_no_prediction(tmp_path, monkeypatch):
    monkeypatch.setattr(traces, "torch_is_here", lambda: False)
    monkeypatch.setattr(traces, "cost", lambda *_: None)
    with pytest.raises(UntracedError, match="bert-tiny"):
        Traces(tmp_path).of("bert-tiny", settle(find("bert-tiny"), SHORT))


@pytest.mark.parametrize("model", ["clip-tiny", "xclip-tiny"])
def test_what_each_two_items_of_a_batch_take_grows_with_its_square(model):
    """Pictures or films against the texts of all: as counted at that very batch."""
    spec = find(model)
    (forward,) = Traces(trace=False).of(model, settle(spec, Shapes(1))).values()
    counter = pytest.importorskip("accelbench.predict.tracing").SignatureCounter
    passes = pytest.importorskip("accelbench.models.passes").Passes(spec, counter_class=counter)
    counted = passes.forward(settle(spec, Shapes(16))).signatures.items()
    products = sum(signature.macs * number for signature, number in counted)
    assert forward.pair_macs > 0
    assert products == 16 * forward.sums.macs.sum() + 16 * 15 * forward.pair_macs
    place = CaseConfiguration("cuda", "NVIDIA A100-SXM4-80GB", "pytorch", "fp32", "inference")
    cases = [
        TracedCase(
            PredictedCase(model, spec.family, settle(spec, Shapes(batch)), place),
            {"forward": forward},
        )
        for batch in (1, 16)
    ]
    single, several = time_terms(cases)[:, :PRODUCT_TERMS].sum(axis=1)
    assert several / single == pytest.approx(products / forward.sums.macs.sum())
    assert PassTrace.from_dict(forward.to_dict()) == forward
