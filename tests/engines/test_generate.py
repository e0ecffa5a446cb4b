"""Requests: the tokens that transformers would write, the cache in use, each token's time."""

import dataclasses
from contextlib import nullcontext

import pytest
import torch
from transformers import GenerationMixin

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import UnsupportedError
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Timing
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.engines.pytorch.procedures import Opened
from accelbench.engines.pytorch.procedures.generate import Generate, Request, write
from accelbench.engines.shared.sketches import KEPT_LOGITS
from accelbench.models.build import build
from accelbench.models.find import every_model, find
from accelbench.models.inputs import make_inputs, settle

CPU = Device("cpu", "a processor")
WRITERS = [
    spec for spec in every_model()
    if spec.generation is not None and spec.procedure == "forward" and "small" in spec.sets
]  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def drawn(spec, new_tokens, seed=3):
    arrays = make_inputs(spec, Shapes(2, new_tokens=new_tokens), seed)
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def kind(spec):
    return spec.generation.kind


def case_of(name, new_tokens, **options):
    spec = find(name)
    shapes = settle(spec, Shapes(2, new_tokens=new_tokens))
    return Case(spec, Target("pytorch", "cpu"), "fp32", shapes, options=options)


def test_every_kind_of_writer_is_among_them():
    assert {spec.architecture.value for spec in WRITERS} >= {
        *("decoder-only", "encoder-decoder", "mixture-of-experts", "state-space"),
        *("multimodal", "speech", "vision-encoder-text-decoder"),
    }


@pytest.mark.parametrize("spec", WRITERS, ids=lambda spec: spec.id)
def test_tokens_and_logits_are_those_of_transformers(spec):
    module, inputs, new = build(spec, seed=0), drawn(spec, 5), 5
    module.generation_config.eos_token_id = None  # here, too, nothing ends a request early
    with torch.inference_mode():
        request = Request(module, kind(spec), inputs, new)
        logits = [request.prefill(), *(request.decode() for _ in range(new - 1))]
        # Whisper's own generate() cuts sound into windows: the general one is what is meant.
        theirs = GenerationMixin.generate(
            module, **inputs, max_new_tokens=new, do_sample=False, use_cache=True,
            return_dict_in_generate=True, output_logits=True,
        )  # fmt: skip
    assert torch.equal(request.tokens, theirs.sequences[:, -new:])
    for ours, other in zip(logits, theirs.logits, strict=True):
        assert torch.allclose(ours.float(), other, atol=1e-5)


def test_a_cached_token_is_that_of_reading_everything_again_masks_included():
    spec = find("gpt2-tiny")
    module, inputs = build(spec, seed=0), drawn(spec, 4)
    inputs["attention_mask"][0, :5] = 0
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    with torch.inference_mode():
        request = Request(module, "decoder", inputs, 4)
        cached = [request.prefill(), *(request.decode() for _ in range(3))]
        for logits in cached:
            again = module(input_ids=ids, attention_mask=mask).logits[:, -1]
            assert torch.allclose(logits, again, atol=1e-5)
            ids = torch.cat([ids, again.argmax(-1, keepdim=True)], dim=1)
            mask = torch.cat([mask, mask.new_ones(2, 1)], dim=1)
        unmasked = {**inputs, "attention_mask": torch.ones_like(inputs["attention_mask"])}
        other = Request(module, "decoder", unmasked, 4).prefill()
    assert torch.equal(request.tokens, ids[:, -4:])
    assert not torch.allclose(cached[0][0], other[0], atol=1e-3)


def watched(module):
    """Tokens read and positions with logits, for every call of a decoder."""
    calls = []

    def note(_module, _args, fed, output):
        calls.append((fed["input_ids"].shape[1], output.logits.shape[1]))

    module.register_forward_hook(note, with_kwargs=True)
    return calls


@pytest.mark.parametrize("name", ["gpt2-tiny", "llama-tiny", "mamba-tiny"])
def test_the_prompt_is_read_once_and_only_one_position_has_logits(name):
    spec = find(name)
    module = build(spec, seed=0)
    calls = watched(module)
    with torch.inference_mode():
        request = Request(module, "decoder", drawn(spec, 3), 3)
        request.prefill()
        write(request)
    assert calls == [(32, 1), (1, 1), (1, 1)]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("llava-tiny", "model.vision_tower"),
        ("t5-tiny", "encoder"),
        ("whisper-mini", "model.encoder"),
        ("vit-gpt2-tiny", "encoder"),
    ],
)
def test_images_and_encoders_are_of_the_prefill_alone(name, part):
    spec = find(name)
    module = build(spec, seed=0)
    seen = []
    module.get_submodule(part).register_forward_hook(lambda *_: seen.append(None))
    with torch.inference_mode():
        request = Request(module, kind(spec), drawn(spec, 4), 4)
        request.prefill()
        write(request)
    assert len(seen) == 1


def test_what_does_not_write_is_not_opened():
    module = build(find("bert-tiny"), seed=0)
    inputs = {"input_ids": torch.zeros(1, 3, dtype=torch.int64)}
    with pytest.raises(UnsupportedError) as caught, torch.inference_mode():
        Request(module, "decoder", inputs, 2).prefill()
    assert caught.value.reason == "no_cache"

    asked = dataclasses.replace(case_of("gpt2-tiny", 4), model=find("bert-tiny"))
    with pytest.raises(UnsupportedError):
        PytorchRuntime().open(Job(asked, CPU))


class Waiting:
    """A device that has done its work when it was waited for, on a clock that notes who asks."""

    timer = None
    device = torch.device("cpu")

    def __init__(self):
        self.time = 0
        self.asked = 0
        self.waited = 0

    def now_ns(self):
        self.asked += 1
        return self.time

    def synchronize(self):
        self.waited += 1
        self.time += 1


def opened(case, place, per_token=10):
    """A model on such a device; a pass takes `per_token` for each token read."""
    module = build(case.model, seed=0)

    def take(_module, _args, fed, _output):
        place.time += per_token * fed["input_ids"].shape[1]

    module.register_forward_hook(take, with_kwargs=True)
    job = Job(case, CPU)
    somewhere = place
    return Opened(job, module, module, somewhere, somewhere, nullcontext, dict)


def marks_of(place):
    marks = {}
    return marks, lambda phase: marks.setdefault(phase, []).append(place.time)


def test_each_token_has_its_time_from_the_start_of_its_request():
    case, place = case_of("gpt2-tiny", 4), Waiting()
    procedure = Generate(case, opened(case, place))
    marks, mark = marks_of(place)
    inputs = drawn(case.model, 4)
    assert procedure.phases == ("prefill", "decode")
    with procedure.around():
        procedure.split(inputs, mark)
        place.time = 5000
        procedure.split(inputs, mark)
        noted = procedure.drain()
    # 32 tokens read at 10 each, one wait of 1; then a token and a wait at a time.
    assert noted == {"token_ns": [[321, 332, 343, 354]] * 2}
    assert marks == {"prefill": [321, 5321], "decode": [354, 5354]}
    assert procedure.drain() == {}


def test_a_step_takes_no_times_and_nothing_is_left_of_a_failed_block():
    case, place = case_of("gpt2-tiny", 4), Waiting()
    procedure = Generate(case, opened(case, place))
    with procedure.around():
        left = procedure.step(drawn(case.model, 4))
        assert procedure.drain() == {}
    assert left.tokens.shape == (2, 4)
    assert place.asked == place.waited == 0

    case, place = case_of("gpt2-tiny", 2), Waiting()
    procedure = Generate(case, opened(case, place))
    inputs = drawn(case.model, 2)
    with procedure.around():
        procedure.split(inputs, lambda _: None)
    with procedure.around():
        procedure.split(inputs, lambda _: None)
        assert len(procedure.drain()["token_ns"]) == 1


def test_a_request_of_one_token_has_no_decode():
    case, place = case_of("gpt2-tiny", 1), Waiting()
    procedure = Generate(case, opened(case, place))
    marks, mark = marks_of(place)
    with procedure.around():
        procedure.split(drawn(case.model, 1), mark)
        assert procedure.drain() == {"token_ns": [[321]]}
    assert procedure.phases == ("prefill",)
    assert marks == {"prefill": [321]}


def test_a_short_request_stands_for_a_long_one():
    case = case_of("gpt2-tiny", 9)
    procedure = Generate(case, opened(case, Waiting()))
    inputs = drawn(case.model, 9)
    with procedure.around():
        short, whole = procedure.outputs(inputs), procedure.step(inputs)
    assert short["logits"].shape == (2, 50257)
    assert torch.equal(short["tokens"], whole.tokens[:, :4])
    assert torch.equal(short["logits"].argmax(-1), whole.tokens[:, 0])
    assert torch.equal(short["logits"][:, :KEPT_LOGITS], whole.logits)


@pytest.mark.parametrize("precision", ["fp16", "bf16", "amp-bf16"])
def test_a_session_generates_in_every_precision(precision):
    case = dataclasses.replace(case_of("llama-tiny", 3), precision=precision)
    session = PytorchRuntime().open(Job(case, CPU, JobSettings(threads=1)))
    inputs = session.prepare(case)
    block = session.sample(inputs, 2, Timing.PHASES)
    assert set(block.phase_ns) == {"prefill", "decode"}
    assert [len(request) for request in block.token_ns] == [3, 3]
    for request, prefill, decode in zip(block.token_ns, *block.phase_ns.values(), strict=True):
        assert 0 < request[0] < request[1] < request[2] <= prefill + decode
        assert request[0] <= prefill
    assert session.outputs(inputs)["tokens"].shape == (2, 3)
    session.close()
