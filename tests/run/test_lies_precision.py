"""Sessions that compute in another precision than requested; none is proven."""

from dataclasses import replace

import numpy as np
import pytest
from judging import became, judged_case
from lying import Lie

from accelbench.core.vocabulary import PrecisionVerdict
from accelbench.run.verify.precision_proof import PrecisionProof


def reports(computes="", **details):
    """Computes in a precision, and reports these details and no others."""
    return Lie(computes=computes, evidence=lambda found: replace(found, details=details))


NARROW = ("bf16", "fp16", "int8", "amp-bf16")
#: Of pytorch's session, for each narrow precision.
IN_FP32 = {
    "fp32, and its evidence shows it": Lie(computes="fp32"),
    "fp32, and its weights show it": reports("fp32", weight_dtypes=["float32"], autocast=None),
    "fp32, and its products show it": reports("fp32", computed_in={"float": 0.9, "int8": 0.1}),
    "fp32, and nothing is reported": reports("fp32"),
}


@pytest.mark.parametrize("precision", NARROW)
@pytest.mark.parametrize("name", IN_FP32)
def test_fp32_is_no_narrow_result(name, precision, tmp_path):
    found, proof = judged_case("pytorch", IN_FP32[name], tmp_path, precision=precision)
    assert (found, proof) == ("precision_changed", None)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_narrow_is_no_fp32_result(precision, tmp_path):
    assert became("pytorch", Lie(computes=precision), tmp_path) == "precision_changed"
    silent = reports(precision)
    assert became("pytorch", silent, tmp_path) == "wrong_outputs"


@pytest.mark.parametrize("precision", ["fp32", *NARROW])
def test_who_computes_as_asked_is_proven(precision, tmp_path):
    if precision == "int8":
        pytest.importorskip("torchao")
    found, proof = judged_case("pytorch", Lie(), tmp_path, precision=precision)
    assert found == "ok"
    assert proof == PrecisionProof(PrecisionVerdict.PROVEN)


@pytest.mark.parametrize("precision", ["bf16", "fp16", "amp-bf16"])
def test_who_reports_nothing_is_measured_and_not_proven(precision, tmp_path):
    found, proof = judged_case("pytorch", reports(), tmp_path, precision=precision)
    assert found == "ok"
    assert proof.word == PrecisionVerdict.NOT_PROVEN
    assert len(proof.warnings) == 1


def test_fp32_outputs_prove_what_nobody_reports(kind, tmp_path):
    found, proof = judged_case(kind, reports(), tmp_path)
    assert (found, proof) == ("ok", PrecisionProof(PrecisionVerdict.PROVEN))


@pytest.mark.parametrize("precision", ["bf16", "fp16", "int8"])
def test_outputs_that_are_too_exact_for_what_is_reported_are_a_warning(precision, tmp_path):
    """Evidence may be forged; outputs that carry no rounding contradict it."""
    lie = reports("fp32", computed_in={precision: 1.0})
    lie.outputs = lie.step = lambda honest, inputs: {
        name: value * np.float32(1 + 2.6e-7) for name, value in honest(inputs).items()
    }
    found, proof = judged_case("pytorch", lie, tmp_path, precision=precision)
    assert found == "ok"
    assert proof.word == PrecisionVerdict.NOT_PROVEN
    assert len(proof.warnings) == 1


@pytest.mark.parametrize("share", [-0.5, 3, True, "most"])
def test_a_share_that_is_none_is_bad_evidence(share, tmp_path):
    lie = reports(computed_in={"float32": share})
    assert became("pytorch", lie, tmp_path) == "bad_evidence"
