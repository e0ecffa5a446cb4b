"""int8 in PyTorch: whether most of the work is in it, and what torchao cannot do."""

import pytest

from refusals import refusal

pytest.importorskip("torchao")

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import UnsupportedError
from accelbench.core.protocols import Device, Job
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.models.find import find
from accelbench.models.inputs import settle
from accelbench.run.verify.precision_proof import refuse_other_precision


def looked_at(name):
    spec = find(name)
    case = Case(spec, Target("pytorch", "cpu"), "int8", settle(spec, Shapes(1)))
    session = PytorchRuntime().open(Job(case, Device("cpu", "the processor")))
    session.inspect(session.prepare(case))
    return session.evidence().details


@pytest.mark.parametrize(
    ("name", "products", "share"), [("bert-tiny", 13, 1), ("vit-tiny", 13, 0.94)]
)
def test_the_part_of_the_work_that_is_int8_is_counted(name, products, share):
    details = looked_at(name)
    assert details["int8_products"] == products
    assert details["computed_in"]["int8"] == pytest.approx(share, abs=0.005)
    assert details["weight_shares"]["int8"] > 0.05


def test_a_model_of_convolutions_is_not_int8_because_its_last_layer_is():
    details = looked_at("resnet-tiny")
    assert details["computed_in"]["int8"] == pytest.approx(0.02, abs=0.01)
    case = Case(find("resnet-tiny"), Target("pytorch", "cpu"), "int8", Shapes(1))
    with refusal("precision_changed"):
        refuse_other_precision(case, {"details": details})


def test_what_torchao_has_no_product_for_is_refused_and_no_crash():
    """Mamba multiplies the weights of a linear layer itself."""
    with pytest.raises(UnsupportedError, match=r"aten\.matmul") as told:
        looked_at("mamba-tiny")
    assert told.value.reason == "int8_not_covered"
