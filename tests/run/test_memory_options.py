"""What is advised when memory is short makes that very case fit."""

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.precision import bytes_per_weight
from accelbench.core.vocabulary import Mode
from accelbench.models.find import find
from accelbench.run.process.memory_guard import options_that_fit

GIB = 2**30


def case(name, mode=Mode.INFERENCE, precision="fp32", **sizes):
    return Case(find(name), Target("pytorch", "cpu"), precision, Shapes(1, **sizes), mode=mode)


def weights(one):
    return one.model.parameters * bytes_per_weight(one.precision)


def test_options_that_need_less_memory_are_named():
    llama = case("llama-2-7b", sequence=16)
    fits_20 = lambda one: weights(one) <= 20 * GIB  # noqa: E731
    assert options_that_fit(llama, fits_20, lambda _: True) == [
        "--precision bf16",
        "--precision fp16",
    ]
    only_int8 = lambda one: one.precision in ("fp32", "int8")  # noqa: E731
    assert options_that_fit(llama, fits_20, only_int8) == ["--precision int8"]
    assert options_that_fit(case("mixtral-8x7b", sequence=16), fits_20, lambda _: True) == []

    trained = case("bert-base", Mode.TRAINING, "bf16", sequence=16)
    checkpointed = lambda one: bool(one.options.get("gradient_checkpointing"))  # noqa: E731
    assert options_that_fit(trained, checkpointed, lambda _: True) == ["--gradient-checkpointing"]
    sgd = lambda one: one.options.get("optimizer") == "sgd"  # noqa: E731
    assert options_that_fit(trained, sgd, lambda _: True) == ["--optimizer sgd"]

    long = case("bert-base", precision="bf16", sequence=512)
    short = lambda one: (one.shapes.sequence or 0) <= 128  # noqa: E731
    assert options_that_fit(long, short, lambda _: True)[0] == "--sequence-lengths 128"
