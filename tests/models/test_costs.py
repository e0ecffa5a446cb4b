"""costs.json: up to date, exact where it was not fitted, None where nothing was counted."""

import json
from dataclasses import replace

import pytest

from accelbench.core.case import Shapes
from accelbench.core.errors import UnsupportedError, UsageError
from accelbench.core.vocabulary import Mode
from accelbench.models.cost import COSTS_FILE, cost, engine_bytes, flops, memory_estimate_bytes
from accelbench.models.find import every_model, find
from accelbench.models.inputs import input_bytes
from accelbench.models.passes import Passes, TrainingPasses
from accelbench.models.polynomials import InexactError, drop_dominated, through, value

everyone = pytest.mark.parametrize("spec", every_model(), ids=lambda s: s.id)


def known(name, shapes, precision="fp32", mode=Mode.INFERENCE):
    found = cost(find(name), shapes, precision, mode)
    assert found is not None
    return found


def test_the_file_has_every_model_in_its_present_config():
    kept = json.loads(COSTS_FILE.read_text())
    assert {s.id: s.config_digest for s in every_model()} == {
        name: made["config"] for name, made in kept.items()
    }
    assert {s.id: s.training_variant.config_digest for s in every_model() if s.training} == {
        name: made["training"]["config"] for name, made in kept.items() if "training" in made
    }


@everyone
def test_every_model_has_a_cost_and_an_estimate_at_its_default_sizes(spec):
    asked = [(Shapes(batch), Mode.INFERENCE) for batch in (1, 8)]
    if spec.generation is not None:
        asked.append((Shapes(2, new_tokens=spec.generation.new_tokens), Mode.INFERENCE))
    if spec.training is not None:
        asked.append((Shapes(2), Mode.TRAINING))
    for shapes, mode in asked:
        found = cost(spec, shapes, "fp32", mode)
        assert found is not None, (shapes, mode)
        assert found.flops > 0
        assert 0 < found.peak_activation_bytes <= found.activation_bytes
        # What is stored is counted, but never what is tied twice.
        assert found.weight_bytes >= 4 * spec.parameters
        for precision in ("fp32", "bf16", "fp16", "amp-bf16"):
            needed = memory_estimate_bytes(spec, shapes, precision, mode)
            assert needed is not None
            assert needed > spec.parameters * (2 if precision in ("bf16", "fp16") else 4)


@pytest.mark.parametrize(
    "spec",
    # Of a model that retrieves and generates, what is trained is not what runs.
    [s for s in every_model() if s.training and s.task != "retrieval-augmented-generation"],
    ids=lambda s: s.id,
)
def test_training_takes_about_three_times_the_forward_pass(spec):
    forward = known(spec.id, Shapes(4, steps=spec.steps and 1)).flops
    # Frozen stems take less; attention, whose scores are calculated anew, more.
    assert 1.5 < known(spec.id, Shapes(4), mode=Mode.TRAINING).flops / forward < 5


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("bert-base", Shapes(1, sequence=128)),
        ("bert-base", Shapes(7, sequence=333)),
        ("bert-tiny", Shapes(5, sequence=3)),
        ("gpt2-tiny", Shapes(3, sequence=1024)),
        ("gpt2", Shapes(2, sequence=77)),
        ("llama-tiny", Shapes(1, sequence=77)),
        ("llama-tiny", Shapes(6, sequence=77)),
        ("clip-tiny", Shapes(9, sequence=27)),
        ("wav2vec2-tiny", Shapes(2, audio=7)),
        ("mixtral-tiny", Shapes(3, sequence=50)),
        ("detr-tiny", Shapes(2, image=288)),
        ("vit-base", Shapes(9)),
        ("resnet-50", Shapes(4)),
        ("resnet-50", Shapes(3, image=288)),
        ("resnet-tiny", Shapes(2, image=64)),
    ],
    ids=str,
)
@pytest.mark.parametrize("half", [False, True])
def test_a_cost_is_exact_where_it_was_not_fitted(name, shapes, half):
    seen = Passes(find(name), half).forward(shapes)
    said = known(name, shapes, "bf16" if half else "fp32")
    assert said.flops == seen.flops
    assert said.bytes_moved == seen.bytes_moved
    assert said.activation_bytes == seen.activation_bytes
    assert said.peak_activation_bytes == seen.peak_activation_bytes


@pytest.mark.parametrize("name", ["gpt2-tiny", "llama-tiny", "t5-tiny", "llava-tiny", "rag-tiny"])
@pytest.mark.parametrize("batch", [1, 5])
def test_a_request_is_its_prefill_and_every_decode_step(name, batch):
    """Driven token by token, against the sum that needs no driving."""
    spec = find(name)
    prompt = spec.generation.min_prompt + 20
    shapes = Shapes(batch, prompt_tokens=prompt, new_tokens=7)
    seen = Passes(spec).request(shapes, steps=6)
    said = known(name, shapes)
    assert said.flops == sum(one.flops for one in seen)
    assert said.bytes_moved == sum(one.bytes_moved for one in seen)
    assert said.activation_bytes == sum(one.activation_bytes for one in seen)
    assert said.peak_activation_bytes == max(one.peak_activation_bytes for one in seen)


@pytest.mark.parametrize("name", ["bert-tiny", "gpt2-tiny", "vit-tiny", "clip-tiny"])
@pytest.mark.parametrize("batch", [1, 6])
def test_a_training_step_where_it_was_not_fitted(name, batch):
    spec = find(name)
    shapes = Shapes(batch, sequence=spec.sequence and 30)
    passes = TrainingPasses(spec)
    seen = passes.step(shapes)
    said = known(name, shapes, mode=Mode.TRAINING)
    trained, _ = passes.trained_weights()
    assert said.flops == seen.flops + 14 * trained
    assert said.activation_bytes == seen.activation_bytes
    assert said.peak_activation_bytes == pytest.approx(seen.peak_activation_bytes, rel=0.05)


def test_costs_follow_steps_and_tokens():
    one, four = (known("unet-tiny", Shapes(2, steps=n)) for n in (1, 4))
    assert four.flops == 4 * one.flops
    assert four.bytes_moved == 4 * one.bytes_moved
    assert four.peak_activation_bytes == one.peak_activation_bytes

    # Keys and values of every token: what a longer request keeps is counted.
    config = find("gpt2").config
    spec, kept = find("gpt2"), 2 * config["n_layer"] * config["n_embd"] * 4
    short, long = (
        memory_estimate_bytes(spec, Shapes(8, prompt_tokens=16, new_tokens=n), "fp32")
        for n in (400, 500)
    )
    assert short is not None
    assert long is not None
    assert 100 * 8 * kept <= long - short < 2.6 * 100 * 8 * kept

    position_buffers = 2 * 512 * 8  # BERT's position and segment ids, kept as integers
    assert known("bert-base", Shapes(1)).weight_bytes == 109_482_240 * 4 + position_buffers
    assert known("bert-base", Shapes(1), "fp16").weight_bytes == 109_482_240 * 2 + position_buffers
    assert known("gpt2", Shapes(1)).weight_bytes == 124_439_808 * 4


def test_what_was_not_counted_or_cannot_be():
    bert = find("bert-base")
    assert cost(bert, Shapes(1), "amp-bf16") is None
    assert cost(bert, Shapes(1), "int8") is None
    assert cost(bert, Shapes(1), "bf16", Mode.TRAINING) is None
    assert cost(find("resnet-50"), Shapes(1, image=225), "fp32") is None
    assert memory_estimate_bytes(find("resnet-50"), Shapes(1, image=225), "fp32") is None
    assert cost(find("mamba-tiny"), Shapes(1, sequence=40), "fp32") is None
    other = replace(bert, config={**bert.config, "hidden_size": 1536})
    assert cost(other, Shapes(1), "fp32") is None
    assert flops(replace(bert, id="own"), Shapes(1)) is None

    with pytest.raises(UnsupportedError):
        cost(find("bert-base"), Shapes(1, sequence=513), "fp32")
    with pytest.raises(UsageError):
        cost(find("bert-base"), Shapes(0), "fp32")
    needed = memory_estimate_bytes(find("bert-base"), Shapes(10**9), "fp32")
    assert needed is not None
    assert needed > 10**9 * 2**20


@everyone
def test_flops_hardly_depend_on_precision(spec):
    """Steps that a model does in fp32 whatever its type, torch may count in other parts."""
    half = known(spec.id, Shapes(2), "fp16").flops
    assert flops(spec, Shapes(2)) == pytest.approx(half, rel=0.01)


def test_memory_by_precision():
    shapes = Shapes(8)
    said = known("vit-base", shapes)
    expected = said.weight_bytes + said.peak_activation_bytes + 8 * 3 * 224 * 224 * 4
    assert memory_estimate_bytes(find("vit-base"), shapes, "fp32") == int(expected) + (
        engine_bytes(find("vit-base"), int(said.peak_activation_bytes))
    )

    spec, shapes = find("bert-base"), Shapes(4)
    full, half, amp, int8 = (
        memory_estimate_bytes(spec, shapes, p) for p in ("fp32", "bf16", "amp-bf16", "int8")
    )
    assert full is not None
    assert half is not None
    assert amp is not None
    assert int8 is not None
    assert half < full < amp
    assert amp - full == 2 * spec.parameters
    assert int8 < full


def test_memory_of_training_by_its_options():
    def needed(precision="fp32", **options):
        found = memory_estimate_bytes(spec, shapes, precision, Mode.TRAINING, options)
        assert found is not None
        return found

    spec, shapes = find("gpt2"), Shapes(8)
    weights, said = 4 * spec.parameters, known("gpt2", shapes, mode=Mode.TRAINING)
    moments = 2 * weights
    inputs = input_bytes(spec, shapes, mode=Mode.TRAINING)
    held = said.weight_bytes + moments + said.peak_activation_bytes + inputs
    assert needed() == held + engine_bytes(spec, int(said.peak_activation_bytes))
    assert needed() - needed(optimizer="sgd") == weights
    assert needed("bf16") - needed() == spec.parameters * 2  # the weights, narrowed
    assert needed("bf16", pure=True) < 0.6 * needed()
    assert needed(gradient_checkpointing=True) < needed()


def test_polynomials_are_of_whole_numbers_and_undominated():
    points = {(b, x): b * x * (x - 1) // 2 for b in (1, 2) for x in (1, 2, 3)}
    with pytest.raises(InexactError):
        through((1, 2), (1, 2, 3), points)
    whole = {point: 2 * y for point, y in points.items()}
    assert value(through((1, 2), (1, 2, 3), whole), 7, 11) == 7 * 11 * 10

    small, large, steep = [[0, 1], [1, 0]], [[0, 2], [1, 0]], [[0, 0], [0, 3]]
    assert drop_dominated([small, large, steep, small]) == [large, steep]
