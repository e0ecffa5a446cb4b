"""What is communication of a rank's step, and what of it is exposed: by events made up here."""

import pytest

from accelbench.core.protocols import Block
from accelbench.core.vocabulary import Timing
from accelbench.engines.pytorch.distributed.session import combined
from accelbench.engines.shared.communication import Span, computes, shared, united, without


def test_what_covers_a_collective():
    found = shared(
        [
            Span("gloo:all_reduce", 2, 10, 30),  # on a thread of its own
            Span("gloo:all_reduce", 3, 25, 50),  # beside it: time is counted once
            Span("aten::mm", 1, 0, 20),
            Span("aten::add", 1, 40, 45),
        ]
    )
    assert found.collectives == 40  # 10 to 50
    assert found.exposed == 40 - 10 - 5
    assert found.computing == 25
    assert found.calls == 2

    found = shared(
        [
            Span("gloo:all_reduce", 2, 10, 30),
            Span("aten::linear", 1, 0, 40),  # a product whose result is exchanged within it
            Span("_c10d_functional::wait_tensor", 1, 12, 30),
        ]
    )
    assert found.exposed == 18
    assert found.computing == 40 - 18

    assert computes("aten::mm")
    assert computes("fsdp::chunk_cat")
    assert not computes("c10d::allreduce_")
    assert not computes("FSDP::all_gather (bert.encoder.layer.0)")
    assert not computes("RegisterPostBackwardFunctionBackward")
    assert not computes("DistributedDataParallel.forward")

    assert united([(5, 6), (0, 2), (1, 3)]) == [(0, 3), (5, 6)]
    assert without([(0, 10)], [(2, 3), (5, 6)]) == [(0, 2), (3, 5), (6, 10)]
    assert without([(0, 1)], [(0, 2)]) == []


def _block(timing, losses, **phases):
    return Block(len(losses), timing, phases, losses=losses)


def test_the_slowest_rank_counts():
    # Rank 0 finishes at 10 and 20, rank 1 at 9 and 21: it took eleven, of them one that overlaps.
    one = _block(Timing.EACH, [1.0, 0.5], step=[10, 10])
    other = _block(Timing.EACH, [3.0, 1.5], step=[9, 12])
    block = combined([one, other], 2, Timing.EACH)
    assert list(block.phase_ns["step"]) == [10, 11]
    assert sum(block.phase_ns["step"]) == max(20, 21)
    assert list(block.losses) == [2.0, 1.0]

    # Of each step's own slowest rank they came to 838 ms, where 818 had passed.
    one = _block(Timing.PHASES, [1.0, 1.0], forward=[1, 9], backward=[1, 9])
    other = _block(Timing.PHASES, [1.0, 1.0], forward=[5, 2], backward=[5, 2])
    block = combined([one, other], 2, Timing.PHASES)
    assert block.phase_ns == {"forward": [1, 9], "backward": [1, 9]}
    assert sum(map(sum, block.phase_ns.values())) == max(20, 14)

    with pytest.raises(ValueError, match="argument"):
        combined([_block(Timing.EACH, [1.0], step=[1]), Block(1, Timing.EACH, {"step": [1]})], 1,
                 Timing.EACH)  # fmt: skip
