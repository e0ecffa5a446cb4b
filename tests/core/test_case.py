"""What makes two questions one, and one question two."""

from dataclasses import replace

import pytest

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.vocabulary import Mode
from accelbench.models.find import find
from accelbench.models.inputs import settle


def asked(name, mode=Mode.INFERENCE):
    model = find(name)
    return Case(model, Target("pytorch", "cpu"), "fp32", settle(model, Shapes(1)), mode)


@pytest.mark.parametrize(
    ("name", "mode", "change"),
    [
        ("wav2vec2-tiny", Mode.INFERENCE, {"sampling_rate": 8000}),
        ("wav2vec2-tiny", Mode.TRAINING, {"sampling_rate": 8000}),
        ("unet-tiny", Mode.INFERENCE, {"procedure": "forward"}),
    ],
)
def test_a_model_that_does_other_work_for_the_same_sizes_is_another_question(name, mode, change):
    case = asked(name, mode)
    other = replace(case, model=replace(case.model, **change))
    assert other.case_id != case.case_id


def test_what_makes_no_other_case():
    case = asked("unet-tiny", Mode.TRAINING)
    other = replace(case, model=replace(case.model, procedure="forward"))
    assert other.case_id == case.case_id

    model = find("gpt2-tiny")
    shapes = settle(model, Shapes(1, prompt_tokens=4, new_tokens=2))
    case = Case(model, Target("pytorch", "cpu"), "fp32", shapes)
    assert model.generation is not None
    longer = replace(model, generation=replace(model.generation, new_tokens=99))
    assert replace(case, model=longer).case_id == case.case_id
