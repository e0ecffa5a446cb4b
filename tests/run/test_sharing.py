"""How several processes share a step: what is planned, by what fits, and what is said of it."""

import pytest
from fixed_machine import models

from accelbench.core.case import Case
from accelbench.core.protocols import Device
from accelbench.core.vocabulary import Mode, Status
from accelbench.engines.jax import JaxRuntime
from accelbench.engines.onnxruntime import OnnxruntimeRuntime
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.hardware.machine import threads_of_each
from accelbench.run.conduct.launch_context import COLUMN, OneProcessTimes
from accelbench.run.plan.expand import expand
from accelbench.run.plan.request import Distribution, Request
from accelbench.run.plan.run_forecast import memory

CPU = Device("cpu", "a processor")
MIB = 2**20
#: What a process takes of each way, made up: DDP has all, FSDP2 half, a row of the batch 10.
WEIGHTS = {"ddp": 100, "fsdp2": 50, "fsdp": 50, "tp": 60}
JAX, INFERENCE = {"runtime": JaxRuntime()}, {"mode": Mode.INFERENCE}


def estimate(case):
    options = case.options
    strategy = str(options.get("strategy", "ddp"))
    parts = 1 if strategy == "tp" else case.world_size
    rows = case.shapes.batch // parts // int(options.get("accumulate", 1))
    return (WEIGHTS[strategy] + rows * (5 if options.get("gradient_checkpointing") else 10)) * MIB


def plan(
    mib=None,
    batch=(8,),
    processes=2,
    hardware="cpu",
    inventory=None,
    runtime=None,
    options=None,
    model="bert-tiny",
    mode=Mode.TRAINING,
    precision="fp32",
    **how,
):
    runtime = runtime or PytorchRuntime()
    room = None if mib is None else int(mib * MIB)
    request = Request(
        models=models(model),
        hardware=(hardware,),
        runtimes=(runtime.info.name,),
        batch_sizes=tuple(batch),
        modes=(mode,),
        precisions=(precision,),
        training_options=options or {},
        distribution=Distribution(processes, memory_bytes=room, **how),
    )
    there = inventory or {"cpu": [CPU]}
    return expand(request, there, {runtime.info.name: runtime}, estimate, lambda _: None)


def ways(found):
    return [dict(p.case.options) for p in found.cases if p.case.world_size > 1]


@pytest.mark.parametrize(
    ("mib", "chosen"),
    [
        (None, {"strategy": "ddp"}),
        (140, {"strategy": "ddp"}),
        (120, {"strategy": "ddp", "accumulate": 2}),
        (110, {"strategy": "ddp", "accumulate": 4}),
        (90, {"strategy": "fsdp2"}),
        (60, {"strategy": "fsdp2", "accumulate": 4}),
        (55, {"strategy": "fsdp2", "accumulate": 4, "gradient_checkpointing": True}),
    ],
)
def test_the_first_way_that_fits_is_taken(mib, chosen):
    found = plan(mib)
    assert ways(found) == [chosen]
    assert all(p.refusal is None for p in found.cases)


def test_the_plan_says_what_was_chosen_and_what_fits_no_way():
    (note,) = plan(90).notes
    assert note == (
        "bert-tiny, batch 8, 2 processes: fsdp2, micro-batch 4, an estimated 90 MiB of 90 MiB"
        " each. Too much for it: ddp, micro-batch 1 × 4 110 MiB."
    )

    (only,) = plan(20).cases
    assert only.refusal.status is Status.OUT_OF_MEMORY
    assert "each of 2 processes has 20 MiB" in only.refusal.message
    assert "55 MiB: fsdp2, micro-batch 1 × 4, checkpointed" in only.refusal.message
    assert "--max-memory-gb 0.06" in only.refusal.advice

    assert ways(plan(strategy="tp")) == [{"strategy": "tp"}]
    assert ways(plan(accumulate=4)) == [{"strategy": "ddp", "accumulate": 4}]
    saving = {"gradient_checkpointing": True}
    assert ways(plan(options=saving)) == [{"strategy": "ddp", **saving}]
    (only,) = plan(batch=(7,), processes=2, strategy="ddp").cases
    assert only.refusal.reason == "batch_split"
    assert only.refusal.advice == "Use --batch-sizes 8."


def test_one_process_comes_first_and_each_has_a_device():
    found = plan(batch=(4, 8))
    sizes = [(p.case.world_size, p.case.shapes.batch) for p in found.cases]
    assert sizes == [(1, 4), (1, 8), (2, 4), (2, 8)]
    assert dict(found.cases[0].case.options) == {"threads": threads_of_each(None, 2)}
    assert [p.case.world_size for p in plan(baseline=False).cases] == [2]
    # They are cases of their own, so that nothing takes one for the other.
    assert len({p.case.case_id for p in found.cases}) == 4

    cards = {"cuda": [Device("cuda", "a card", 0), Device("cuda", "a card", 1)]}
    enough = plan(hardware="cuda", inventory=cards).cases[-1]
    assert enough.refusal is None or enough.refusal.reason != "device_absent"
    few = plan(hardware="cuda", inventory=cards, processes=4).cases[-1]
    assert few.refusal.reason == "device_absent"
    assert few.refusal.message == "cuda has 2 devices here, and 4 processes need one each"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"model": "clip-tiny"}, "the contrastive loss of clip-tiny is of the whole batch"),
        ({"strategy": "fsdp"}, "the pytorch runtime has no strategy fsdp"),
        (
            {"runtime": OnnxruntimeRuntime()},
            "the onnxruntime runtime makes each step in one process",
        ),
        ({**JAX, "strategy": "fsdp2"}, "the jax runtime has no strategy fsdp2"),
        ({**JAX, "strategy": "tp"}, "the jax runtime has no strategy tp"),
        ({**JAX, "accumulate": 2}, "the jax runtime takes the whole of a batch at once"),
        ({**JAX, "nodes": 2}, "among the devices of one machine"),
        ({**JAX, **INFERENCE}, "the jax runtime shares out training alone"),
        (INFERENCE, "they are as many independent runs"),
        ({**INFERENCE, "strategy": "tp", "precision": "int8"}, "are not split over processes"),
        ({**INFERENCE, "strategy": "tp", "model": "rag-tiny"}, "of several models or passes"),
    ],
)
def test_what_cannot_be_shared_out_says_why(asked, said):
    refusal = plan(**{"strategy": "ddp", **asked}).cases[-1].refusal
    assert refusal.status is Status.UNSUPPORTED
    assert refusal.reason in ("distributed", "precision")
    assert said in refusal.message
    assert refusal.advice


def test_the_first_way_of_the_runtime_and_mode_is_taken():
    assert ways(plan(90, **JAX)) == [{"strategy": "fsdp"}]
    assert ways(plan(**JAX)) == [{"strategy": "ddp"}]
    found = plan(**INFERENCE, batch=(1,))
    assert ways(found) == [{"strategy": "tp"}]
    assert all(p.refusal is None for p in found.cases)
    # What shares a step is said as it is: devices of one process are no processes.
    (note,) = plan(**JAX, baseline=False).notes
    assert "batch 8, 2 devices: ddp" in note


def test_an_inferred_batch_stays_whole():
    """By default one item is asked for as well: it is not parted."""
    found = plan(**INFERENCE, batch=(), baseline=False)
    assert [p.case.shapes.batch for p in found.cases] == [1, 8, 32, 128]


def test_estimates_of_inference_are_without_the_others_products():
    request = Request(
        models=models("llama-3.2-1b"), batch_sizes=(1,), hardware=("cpu",), new_tokens=(8,),
        prompt_tokens=(128,), distribution=Distribution(2, "tp"),
    )  # fmt: skip
    runtimes = {"pytorch": PytorchRuntime()}
    alone, split = expand(request, {"cpu": [CPU]}, runtimes, estimate, lambda _: None).cases
    apart = (memory(alone.case) or 0) - (memory(split.case) or 0)
    # Of 1.24e9 weights in fp32 0.97e9 are those of products in blocks.
    assert apart / 4 == pytest.approx(0.97e9 / 2, rel=0.05)


def test_estimates_follow_the_strategy():
    """Of BERT-base: measured were 1,918 to 2,008, 1,040 MB at batch 2, AdamW, two processes."""
    request = Request(
        models=models("bert-base"), modes=(Mode.TRAINING,), batch_sizes=(2,), hardware=("cpu",),
        distribution=Distribution(2, "ddp", baseline=False),
    )  # fmt: skip
    runtimes = {"pytorch": PytorchRuntime()}
    (planned,) = expand(request, {"cpu": [CPU]}, runtimes, estimate, lambda _: None).cases
    ddp = (memory(planned.case) or 0) / MIB
    sharded = Case(**{**vars_of(planned.case), "options": {"strategy": "fsdp2"}})
    fsdp2 = (memory(sharded) or 0) / MIB
    assert ddp == pytest.approx(1960, rel=0.15)
    assert fsdp2 == pytest.approx(1040, rel=0.15)


def vars_of(case):
    return {name: getattr(case, name) for name in case.__dataclass_fields__}


def _row(planned, ms):
    return {
        "status": "ok", "case_id": planned.case.case_id, "device": "cpu:0", "latency_p50_ms": ms,
        "world_size": planned.case.world_size, "memory_estimate_mb": 100.0,
        "memory_peak_mb": 130.0, "nulls": {COLUMN: "not yet"},
    }  # fmt: skip


def test_efficiency_is_of_one_process_of_the_same_run():
    alone, together = plan().cases
    times = OneProcessTimes()
    times.look(_row(alone, 100.0), alone, 1)
    row = _row(together, 62.5)
    times.look(row, together, 1)
    assert row[COLUMN] == pytest.approx(0.8)
    assert COLUMN not in row["nulls"]
    assert row["warnings"] == [
        "The largest process took 130 MB where 100 MB were estimated, 30% more."
    ]
    lonely = _row(together, 62.5)
    OneProcessTimes().look(lonely, together, 1)
    assert COLUMN not in lonely
    assert lonely["nulls"][COLUMN] == "one process was not measured before it"
    resumed = _row(together, 50.0)
    OneProcessTimes.of([_row(alone, 100.0)]).look(resumed, together, 1)
    assert resumed[COLUMN] == pytest.approx(1.0)
