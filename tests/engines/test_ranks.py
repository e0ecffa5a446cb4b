"""Two real ranks: what they compute together is what one process computes.

One group of ranks serves all of these, each with a model opened anew.
"""

from dataclasses import replace

import numpy as np
import pytest
from training_sessions import CPU, case_of, opened

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError
from accelbench.core.protocols import Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Mode, Timing
from accelbench.engines.pytorch.distributed.group import RankGroup, RankLaunch
from accelbench.engines.pytorch.distributed.session import DistributedSession
from accelbench.measure.block_validation import refuse_bad_block, refuse_other_tokens
from accelbench.models.inputs import choosing, settle
from accelbench.models.selection import choose

#: Of the largest gradient of the model: sums in another order. Seen were 3e-7.
BOUND = 1e-5
BATCH, NEW_TOKENS = 8, 4
#: Every way of sharing a step, with whether the batch is in parts.
WAYS = {
    "ddp": {"strategy": "ddp"},
    "ddp-accumulated": {"strategy": "ddp", "accumulate": 2},
    "fsdp2": {"strategy": "fsdp2"},
    "fsdp2-accumulated": {"strategy": "fsdp2", "accumulate": 2},
    "fsdp2-checkpointed": {"strategy": "fsdp2", "gradient_checkpointing": True},
    "tp": {"strategy": "tp"},
}


@pytest.fixture(scope="module")
def ranks():
    group = RankGroup(RankLaunch(2, collective_seconds=60))
    yield group
    group.close()


@pytest.fixture(scope="module")
def alone():
    """One process: gradients of the whole batch, five losses, and outputs."""
    case = case_of("bert-tiny", batch=BATCH)
    with opened(case) as session, session.without_dropout():
        inputs = session.prepare(case)
        outputs = session.outputs(inputs)["logits"]
        loss = session._procedure._loss_of(inputs, lambda _phase: None)
        loss.backward()
        gradients = {
            name: weight.grad.numpy().copy()
            for name, weight in session._module.named_parameters()
            if weight.grad is not None
        }
        inputs = session.prepare(case)
        return gradients, list(session.sample(inputs, 5, Timing.EACH).losses), outputs


def together(case, ranks):
    return DistributedSession(Job(case, CPU, JobSettings()), ranks)


@pytest.mark.parametrize("way", WAYS)
def test_gradients_and_losses_are_those_of_one_process(way, ranks, alone):
    gradients, losses, outputs = alone
    case = replace(case_of("bert-tiny", batch=BATCH, **WAYS[way]), world_size=2)
    session = together(case, ranks)
    with session.without_dropout():
        inputs = session.prepare(case)
        np.testing.assert_allclose(session.outputs(inputs)["logits"], outputs, atol=1e-5)
        found = session.gradients(inputs)
        assert found.keys() == gradients.keys()
        largest = max(float(np.abs(g).max()) for g in gradients.values())
        for name, gradient in gradients.items():
            assert np.abs(found[name] - gradient).max() <= BOUND * largest, name
        # And the weights move as one process's do, from a fresh start.
        inputs = session.prepare(case)
        assert session.sample(inputs, 5, Timing.EACH).losses == pytest.approx(losses, rel=1e-5)
        inputs = session.prepare(case)
        assert session.sample(inputs, 1, Timing.PHASES).losses == pytest.approx(
            losses[:1], rel=1e-5
        )


@pytest.mark.parametrize("way", ["ddp", "fsdp2", "tp"])
def test_outputs_before_a_training_change_nothing_of_it(way, ranks, alone):
    """As checks ask for them: twice of the weights as they are, and once of doubled ones."""
    _, losses, outputs = alone
    case = replace(case_of("bert-tiny", batch=BATCH, **WAYS[way]), world_size=2)
    session = together(case, ranks)
    inputs = session.prepare(case)
    session.outputs(inputs)
    with session.other_weights():
        other = session.outputs(inputs)["logits"]
    assert not np.allclose(other, outputs, atol=1e-3)
    inputs = session.prepare(case)
    np.testing.assert_allclose(session.outputs(inputs)["logits"], outputs, atol=1e-5)
    with session.without_dropout():
        inputs = session.prepare(case)
        assert session.sample(inputs, 5, Timing.EACH).losses == pytest.approx(losses, rel=1e-5)


def inferring(model, batch=2, **sizes):
    (spec,) = choose([model], None, (), (), all_models=False)
    shapes = settle(spec, Shapes(batch, **sizes))
    return Case(spec, Target("pytorch", "cpu"), "fp32", shapes, Mode.INFERENCE)


def split(case):
    return replace(case, world_size=2, options={"strategy": "tp"})


def test_requests_are_those_of_one_process(ranks):
    case = inferring("llama-tiny", prompt_tokens=8, new_tokens=NEW_TOKENS)
    with opened(case) as alone:
        right = [alone.outputs(alone.prepare(case, seed)) for seed in (0, 1)]
    session = together(split(case), ranks)
    for seed, outputs in enumerate(right):
        found = session.outputs(session.prepare(split(case), seed))
        assert np.array_equal(found["tokens"], outputs["tokens"])
        largest = float(np.abs(outputs["logits"]).max())
        assert np.abs(found["logits"] - outputs["logits"]).max() <= BOUND * largest
    assert not np.array_equal(right[0]["tokens"], right[1]["tokens"])
    # Each rank has half of a block's products: queries by columns, what follows by rows.
    facts = session.evidence().details["distributed"]["ranks"]
    assert [rank["split_modules"] for rank in facts] == [{"colwise": 10, "rowwise": 4}] * 2


def test_prefill_and_decode_of_ranks_are_timed_together(ranks):
    case = split(inferring("llama-tiny", prompt_tokens=8, new_tokens=NEW_TOKENS))
    session = together(case, ranks)
    inputs = session.prepare(case)
    block = session.sample(inputs, 2, Timing.PHASES)
    refuse_bad_block(block, 2, Timing.PHASES, ("prefill", "decode"))
    refuse_other_tokens(block, NEW_TOKENS)
    assert len(block.token_ns) == 2
    # A timed step leaves what outputs are.
    session.sample(inputs, 1, Timing.EACH)
    left = session.stepped(100)
    assert np.array_equal(left["tokens"].values, session.outputs(inputs)["tokens"].ravel())
    # Each block of each token sums over the ranks twice.
    exchanged = session.exchanged(case)
    assert [rank["collectives"] for rank in exchanged["ranks"]] == [2 * 2 * NEW_TOKENS] * 2
    assert exchanged["communication_ms"] > 0


def test_a_forward_pass_of_ranks_is_that_of_one_process(ranks):
    case = inferring("bert-tiny", batch=3, sequence=16)
    with opened(case) as alone:
        right = alone.outputs(alone.prepare(case))
    session = together(split(case), ranks)
    with choosing([2, 0, 1]):  # each rank draws its inputs
        found = session.outputs(session.prepare(split(case)))
    assert found.keys() == right.keys()
    for name, values in right.items():
        np.testing.assert_allclose(found[name], values[[2, 0, 1]], atol=1e-5)


def test_what_ranks_spend_on_each_other_is_told(ranks):
    case = replace(case_of("bert-tiny", batch=BATCH, strategy="ddp"), world_size=2)
    session = together(case, ranks)
    found = session.exchanged(case)
    assert 0 < found["exposed_communication_ms"] <= found["communication_ms"]
    assert 0 < found["communication_share"] <= 1
    assert found["straggler_ratio"] >= 1
    assert [rank["collectives"] >= 1 for rank in found["ranks"]] == [True, True]
    session.host_memory.reset_peak()
    session.sample(session.prepare(case), 1, Timing.EACH)
    assert session.host_memory.peak_bytes() == max(session.host_memory.peaks)
    told = session.evidence()
    assert told.devices == ("cpu:0",)
    assert [rank["rank"] for rank in told.details["distributed"]["ranks"]] == [0, 1]
    assert told.details["distributed"]["micro_batch"] == BATCH // 2


@pytest.mark.parametrize("name", ["all_reduce", "all_gather", "reduce_scatter", "broadcast"])
def test_a_collective_by_itself_is_right_and_timed(name, ranks):
    """Each rank holds its own result against what the numbers of all come to."""
    assert ranks.ask("open_collective", name=name, size=4096) == [None, None]
    assert all(took > 0 for took in ranks.ask("time_collective", steps=2))


def test_a_rank_that_refuses_says_why_and_all_are_gone(ranks):
    # The last of this file: what one refuses ends the whole group.
    case = replace(case_of("qwen2-tiny", batch=2, strategy="tp"), world_size=2)
    with pytest.raises(CaseError, match="num_key_value_heads of qwen2-tiny is 1") as caught:
        together(case, ranks)
    assert (caught.value.reason, caught.value.status) == ("tensor_parallel", "unsupported")
    with pytest.raises(CaseError, match="have ended"):
        ranks.ask("evidence")
