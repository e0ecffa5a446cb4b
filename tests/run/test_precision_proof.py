"""What proves the precision of a case, what contradicts it, and what shows nothing."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from lying import CASE

from accelbench.core.errors import CaseError
from accelbench.core.vocabulary import Mode, Outcome, PrecisionVerdict, Provenance, Status
from accelbench.run.conduct.launch import with_proof
from accelbench.run.verify.precision_proof import PrecisionProof, prove_precision
from accelbench.run.verify.verdicts import NOT_DONE, OK, Verdict, is_unrounded
from refusals import refusal

PROVEN, NOT_PROVEN = PrecisionVerdict.PROVEN, PrecisionVerdict.NOT_PROVEN
UNVERIFIED = Verdict(NOT_DONE, "it was not asked for")


def asked(precision, mode=Mode.INFERENCE, **options):
    return replace(CASE, precision=precision, mode=mode, options=options)


def proof(case, verdict=UNVERIFIED, **details):
    return prove_precision(case, {"devices": ["cpu:0"], "details": details}, verdict)


@pytest.mark.parametrize(
    ("precision", "details"),
    [
        ("fp32", {"computed_in": {"float": 1.0}}),
        ("fp32", {"computed_in": {"float64": 1.0}}),
        ("fp32", {"computed_in": {"fp32": 0.5, "int8": 0.5}}),
        ("fp16", {"computed_in": {"float16": 0.5, "float": 0.5}}),
        ("bf16", {"computed_in": {"bf16": 0.97, "fp32": 0.03}}),
        ("int8", {"computed_in": {"int8": 0.6, "float": 0.4}}),
        ("int8", {"computed_in": {"int8": 0.6, "fp32": 0.4}, "weight_dtypes": ["float32"]}),
        ("fp32", {"weight_dtypes": ["float32"], "autocast": None}),
        ("bf16", {"weight_dtypes": ["torch.bfloat16", "float32"]}),
        ("bf16", {"weight_shares": {"bfloat16": 0.99, "float32": 0.01}}),
        # Embeddings stay in float, and are most of the weights of BERT's tiny size.
        ("int8", {"weight_shares": {"float32": 0.9, "int8": 0.1}}),
        ("int8", {"weight_dtypes": ["float32", "uint8"]}),
        ("amp-bf16", {"weight_dtypes": ["float32"], "autocast": "bfloat16"}),
        ("amp-fp16", {"weight_dtypes": ["float32"], "autocast": "torch.float16"}),
        ("bf16", {"weight_dtypes": "bfloat16"}),
    ],
)
def test_evidence_that_proves(precision, details):
    assert proof(asked(precision), **details) == PrecisionProof(PROVEN)


@pytest.mark.parametrize(
    ("precision", "details"),
    [
        ("fp32", {"computed_in": {"float16": 1.0}}),
        ("fp32", {"computed_in": {"tf32": 1.0}}),
        ("fp32", {"computed_in": {"bf16": 0.97, "fp32": 0.03}}),
        ("fp32", {"weight_dtypes": ["bfloat16"]}),
        ("fp32", {"weight_dtypes": ["float32"], "autocast": "bfloat16"}),
        ("fp16", {"computed_in": {"float": 0.51, "float16": 0.49}}),
        ("fp16", {"weight_dtypes": ["float32"]}),
        ("bf16", {"weight_dtypes": "float32"}),
        ("bf16", {"weight_dtypes": ["float32"], "autocast": None}),
        ("bf16", {"weight_shares": {"float32": 0.99, "bfloat16": 0.01}}),
        ("bf16", {"computed_in": {"bf16": 0.1, "fp32": 0.6, "int8": 0.3}}),
        ("int8", {"computed_in": {"int8": 0.4, "float": 0.6}}),
        ("int8", {"computed_in": {"fixed16 × int8": 1.0}}),
        ("int8", {"computed_in": {"int8": 0.0, "float32": 1.0}}),
        ("int8", {"weight_dtypes": ["float32"]}),
        ("int8", {"weight_dtypes": ["float32", "float16"]}),
        ("amp-bf16", {"weight_dtypes": ["float32"], "autocast": None}),
        ("amp-bf16", {"weight_dtypes": ["float32"], "autocast": "float16"}),
    ],
)
def test_evidence_that_contradicts(precision, details):
    with pytest.raises(CaseError) as raised:
        proof(asked(precision), **details)
    assert raised.value.reason == "precision_changed"
    assert raised.value.advice


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16", "int8", "amp-bf16"])
@pytest.mark.parametrize(
    "details",
    [
        {},
        {"computed_in": {}},
        {"computed_in": None, "computed_in_unknown": "the NPU counts nothing"},
        {"computed_in": {"unknown": 1.0}},
        {"weight_dtypes": []},
        {"output_dtypes": ["float32"]},
    ],
)
def test_evidence_that_shows_nothing(precision, details):
    found = proof(asked(precision), **details)
    assert found.word is NOT_PROVEN
    assert len(found.warnings) == 1
    assert details.get("computed_in_unknown", "") in found.warnings[0]


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_training_is_judged_by_the_type_that_it_calculates_in(precision):
    """Its weights stay in fp32, unless pure half precision is asked for."""
    mixed = asked(precision, Mode.TRAINING)
    pure = asked(precision, Mode.TRAINING, pure=True)
    narrow = {"bf16": "bfloat16", "fp16": "float16"}[precision]
    assert proof(mixed, weight_dtypes=["float32"], autocast=narrow).word is PROVEN
    assert proof(mixed, weight_dtypes=["float32"]).word is NOT_PROVEN
    assert proof(pure, weight_dtypes=[narrow], autocast=None).word is PROVEN
    for case, details in (
        (mixed, {"weight_dtypes": ["float32"], "autocast": None}),
        (pure, {"weight_dtypes": ["float32"]}),
    ):
        with refusal("precision_changed"):
            proof(case, **details)


@pytest.mark.parametrize("share", [-0.1, 2, True, "all", None, float("nan")])
def test_a_share_that_cannot_be_is_bad_evidence(share):
    with refusal("bad_evidence"):
        proof(asked("bf16"), computed_in={"bf16": share})


def test_too_exact_outputs_are_told_by_what_evidence_shows():
    found = proof(asked("bf16"), TOO_EXACT, weight_dtypes=["bfloat16"])
    assert found.word is NOT_PROVEN
    assert len(found.warnings) == 1
    with refusal("precision_changed"):
        proof(asked("bf16"), TOO_EXACT)
    # However much the reference is moved by rounding: int8 a channel each may be far better.
    assert not is_unrounded("int8", 1e-3, 0.5)
    assert not is_unrounded("fp32", 0.0, 1.0)
    case = asked("fp32")
    assert proof(case, Verdict(OK, error=2e-6, tolerance=2e-4)) == PrecisionProof(PROVEN)
    # A model that amplifies rounding has a larger tolerance, within which a narrow type may lie.
    assert proof(case, Verdict(OK, error=5e-3, tolerance=1e-2)).word is NOT_PROVEN


#: What rounding costs small models, as docs/measuring.md has it: the least that was seen.
ROUNDED = {"fp16": 6e-4, "bf16": 5e-3, "int8": 1e-3, "amp-fp16": 6e-4, "amp-bf16": 5e-3}


@pytest.mark.parametrize("precision", ROUNDED)
def test_errors_of_fp32_are_told_from_those_of_a_narrow_precision(precision):
    rounded = ROUNDED[precision]
    for error in (0.0, 1e-8, 2.6e-7, 1e-6):
        assert is_unrounded(precision, error, rounded)
    # The least ratio that was seen of an engine that rounds is 0.02; the limit is 0.004 to 0.011.
    for ratio in (0.02, 0.2, 1.0, 4.0):
        assert not is_unrounded(precision, ratio * rounded, rounded)


@pytest.mark.parametrize("precision", ROUNDED)
def test_a_model_that_rounding_hardly_moves_accuses_nobody(precision):
    for rounded in (0.0, 1e-9, 1e-7, 1e-6):
        for ratio in (0.02, 1.0):
            assert not is_unrounded(precision, ratio * rounded, rounded)


TOO_EXACT = Verdict(OK, error=2.6e-7, tolerance=0.03, rounded=5e-3)


def runtime_of(provenance):
    return SimpleNamespace(info=SimpleNamespace(provenance=provenance))


def outcome(precision, verdict, provenance, **details):
    measured = Outcome(Status.OK, measurement={"evidence": {"details": details}, "metrics": {}})
    return with_proof(asked(precision), measured, verdict, runtime_of(provenance), {})


def test_a_result_has_the_proof_as_a_column_and_as_a_warning():
    shown = outcome("bf16", UNVERIFIED, Provenance.MEASURED, weight_dtypes=["bfloat16"])
    assert shown.measurement["metrics"]["precision_proof"] == "proven"
    assert shown.warnings == []
    silent = outcome("bf16", UNVERIFIED, Provenance.MEASURED)
    assert silent.status is Status.OK
    assert silent.measurement["metrics"]["precision_proof"] == "not_proven"
    assert len(silent.warnings) == 1
    failed = outcome("bf16", TOO_EXACT, Provenance.MEASURED)
    assert (failed.status, failed.reason) == (Status.FAILED, "precision_changed")
    assert "latency_p50_ms" not in failed.measurement["metrics"]


def test_a_script_computes_nothing_that_could_be_proven():
    found = outcome("bf16", UNVERIFIED, Provenance.SIMULATED)
    assert "precision_proof" not in found.measurement["metrics"]
    assert found.warnings == []
    assert found.null_reasons["precision_proof"]
