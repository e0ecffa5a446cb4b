"""Retrieval: the best passages found and read before the question, each stage apart."""

import numpy as np
import pytest
import torch

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Timing
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.models.find import find
from accelbench.models.inputs import make_inputs, settle
from accelbench.models.losses import find_loss
from refusals import refusal

CPU = Device("cpu", "a processor")
SPEC = find("rag-tiny")
PASSAGE, RETRIEVED = SPEC.config["passage_tokens"], SPEC.config["retrieved"]


def case_of(new_tokens=3, **options):
    shapes = settle(SPEC, Shapes(2, new_tokens=new_tokens))
    return Case(SPEC, Target("pytorch", "cpu"), "fp32", shapes, options=options)


@pytest.fixture
def session():
    opened = PytorchRuntime().open(Job(case_of(), CPU, JobSettings(threads=1)))
    yield opened
    opened.close()


def test_the_question_is_what_the_passages_leave_of_the_prompt():
    drawn = make_inputs(SPEC, Shapes(2, prompt_tokens=70, new_tokens=4), 0)
    assert drawn["input_ids"].shape == (2, 70 - RETRIEVED * PASSAGE)
    assert make_inputs(SPEC, Shapes(2, sequence=9), 0)["input_ids"].shape == (2, 9)
    least = SPEC.generation.min_prompt
    drawn = make_inputs(SPEC, Shapes(1, prompt_tokens=least, new_tokens=1), 0)
    assert drawn["input_ids"].shape == (1, 1)
    with refusal("prompt_too_short"):
        settle(SPEC, Shapes(1, prompt_tokens=least - 1, new_tokens=1))


def test_the_passages_found_are_the_nearest_of_all(session):
    network = session._module
    inputs = session.prepare(case_of())
    with torch.inference_mode():
        embedding = network.embed(**inputs)
        found = network.retrieve(embedding)
    assert torch.allclose(embedding.norm(dim=-1), torch.ones(2), atol=1e-6)
    nearness = embedding.double().numpy() @ network.index.double().numpy().T
    best = np.argsort(-nearness, axis=1)[:, :RETRIEVED]
    assert (found.passages.numpy() == best).all()
    assert np.allclose(found.scores, np.take_along_axis(nearness, best, 1), atol=1e-6)
    assert np.allclose(session.outputs(inputs)["scores"], found.scores)


def test_a_passage_whose_vector_is_the_questions_is_found_first_and_read_first(session):
    network = session._module
    inputs = session.prepare(case_of())
    with torch.no_grad():
        network.index[[123, 456]] = network.embed(**inputs)
        found = network.retrieve(network.embed(**inputs))
        read = network.prompt(found, **inputs)
    assert found.passages[:, 0].tolist() == [123, 456]
    assert torch.equal(read["input_ids"][:, :PASSAGE], network.passages[[123, 456]])
    assert torch.equal(read["input_ids"][:, RETRIEVED * PASSAGE :], inputs["input_ids"])
    assert read["attention_mask"].shape == read["input_ids"].shape


def test_padding_says_nothing_of_a_question(session):
    ids = session.prepare(case_of())["input_ids"]
    mask = torch.ones_like(ids)
    mask[:, 10:] = 0
    other = ids.clone()
    other[:, 10:] = 7
    with torch.inference_mode():
        one, two = (session._module.embed(i, mask) for i in (ids, other))
        bare = session._module.embed(ids[:, :10], mask[:, :10])
    assert torch.allclose(one, two, atol=1e-6)
    assert torch.allclose(one, bare, atol=1e-6)


def test_answers_are_the_generators_greedy_ones(session):
    inputs = session.prepare(case_of())
    network = session._module
    tokens = session.outputs(inputs)["tokens"]
    with torch.inference_mode():
        read = network.prompt(network.retrieve(network.embed(**inputs)), **inputs)
        theirs = network.generator.generate(**read, max_new_tokens=3, do_sample=False)
    assert (tokens == theirs[:, -3:].numpy()).all()


def test_each_stage_has_its_time_and_each_token(session):
    block = session.sample(session.prepare(case_of()), 2, Timing.PHASES)
    assert session.phases == tuple(block.phase_ns) == ("embed", "retrieve", "generate")
    for i, request in enumerate(block.token_ns):
        embed, retrieve, generate = (times[i] for times in block.phase_ns.values())
        assert len(request) == 3
        # The first token waits for its passages; the last is there before the request ends.
        assert retrieve < request[0] < request[1] < request[2] <= embed + retrieve + generate
    assert session.sample(session.prepare(case_of()), 1, Timing.EACH).token_ns == ()


def test_a_forward_pass_gives_logits_of_the_question(session):
    case = case_of(new_tokens=None)
    inputs = session.prepare(case)
    assert session.phases == ("step",)
    found = session.outputs(inputs)
    assert found["logits"].shape == (2, SPEC.sequence, SPEC.config["generator"]["vocab_size"])
    request = session.prepare(case_of())
    assert torch.equal(request["input_ids"], inputs["input_ids"])  # of the same length by default
    assert np.allclose(found["logits"][:, -1], session.outputs(request)["logits"], atol=1e-5)


def test_the_generator_alone_learns(session):
    network = session._module.train()
    inputs = session.prepare(case_of(new_tokens=None))
    find_loss(SPEC.training.loss)(network(**inputs), inputs).backward()
    learn = {n for n, p in network.named_parameters() if p.grad is not None and p.grad.any()}
    assert learn == {n for n, _ in network.named_parameters() if n.startswith("generator.")}
    assert not network.embedder.training  # dropout would find other passages
    assert network.generator.training


def test_index_and_passages_are_of_the_seed_and_follow_the_precision():
    found = []
    for seed, precision in ((1, "fp32"), (1, "bf16"), (2, "fp32")):
        case = Case(SPEC, Target("pytorch", "cpu"), precision, case_of().shapes)
        session = PytorchRuntime().open(Job(case, CPU, JobSettings(seed=seed, threads=1)))
        found.append((session._module.index, session._module.passages, session.weights_digest))
        session.close()
    (index, passages, digest), (narrow, same, narrow_digest), (other, others, _) = found
    assert index.dtype is torch.float32
    assert torch.equal(narrow, index.bfloat16())
    assert torch.equal(passages, same)
    assert passages.dtype is torch.int64
    assert digest == narrow_digest
    assert not torch.equal(index, other)
    assert not torch.equal(passages, others)
