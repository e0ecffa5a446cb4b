"""One model on several ranks: asked in the worker, stepped by all of them at once.

A block is the same number of steps on every rank, after a barrier. Each counts its time from there,
and a step is over when the last rank has finished it, so that steps add up to what passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from accelbench.core.abilities import StepPreview
from accelbench.core.case import Case
from accelbench.core.errors import CaseError
from accelbench.core.profile import Profile
from accelbench.core.protocols import Block, DeviceMemory, Evidence, Job, most_steps
from accelbench.core.serial import case_to_json, job_to_json
from accelbench.core.vocabulary import MIB, Timing
from accelbench.engines.pytorch.distributed.group import RankGroup, RankLaunch, backend_of
from accelbench.engines.shared.communication import exchange_columns
from accelbench.hardware.hostmemory import HostMemory
from accelbench.hardware.machine import threads_of_each
from accelbench.models.inputs import chosen_items


class RankMemory(HostMemory):
    """Host memory of the ranks, each counted by itself; the largest rank's is what has to fit."""

    def __init__(self, group: RankGroup) -> None:
        super().__init__(0, "of the largest rank")
        self._group = group
        self.peaks: list[int | None] = []  # by rank, as last read

    def reset_peak(self) -> None:
        self._group.ask("reset_memory")

    def peak_bytes(self) -> int | None:
        answers = self._group.ask("memory_peak")
        self.source = f"of the largest rank: {answers[0]['source']}"
        self.peaks = [answer["bytes"] for answer in answers]
        known = [peak for peak in self.peaks if peak is not None]
        return max(known, default=None)

    def current_bytes(self) -> int:
        return self.reader()()

    def reader(self) -> Callable[[], int]:
        """Return a reader of other processes' memory that asks no rank while steps run."""
        import psutil

        seen = [
            (psutil.Process(answer["pid"]), answer["hidden"])
            for answer in self._group.ask("memory_now")
            if psutil.pid_exists(answer["pid"])
        ]
        return lambda: max(max(0, p.memory_info().rss - hidden) for p, hidden in seen)


#: Steps whose collectives are looked at: profilers write down every call.
_PROFILED_STEPS = 5
#: How far weights of ranks may be apart, relative to their size, and how many of them further. All
#: 41 of BERT's were equal to the last bit after three steps; ranks on GPUs of different kinds round
#: otherwise. Without an exchange AdamW moves a weight by 1e-4 in a step, about 0.5 % of its size.
_SAME_WEIGHTS, _MOST_OTHER = 1e-4, 0.25


class DistributedSession:
    """A model whose steps a group of ranks makes."""

    def __init__(self, job: Job, group: RankGroup | None = None) -> None:
        self._job = job
        case = job.case
        self._group = group or start(job)
        try:
            answers = self._group.ask("open", job=job_to_json(job))
        except BaseException:
            self._group.close()
            raise
        slowest = [answer["timings"] for answer in answers]
        self.timings = {name: max(t[name] for t in slowest) for name in slowest[0]}
        self.weights_digest: str = answers[0]["weights_digest"]
        self.phases: tuple[str, ...] = tuple(answers[0]["phases"])
        self.device_timed: bool = answers[0]["device_timed"]
        self._parts: int = answers[0]["parts"]
        self.host_memory = RankMemory(self._group)
        self._case = case
        self._columns: Mapping[str, Any] = {}
        self._step_ns: list[list[int]] = []  # by rank, of the last blocks of single steps
        self._of_ranks: list[dict[str, Any]] = []

    # -- the session's protocol

    def prepare(self, case: Case, seed: int | None = None) -> object:
        # The inputs lie with the ranks; what is handed back stands for them.
        self._case = case
        # Each rank draws the inputs by itself, so it needs to know which items are chosen.
        answers = self._group.ask(
            "prepare", case=case_to_json(case), seed=seed, items=chosen_items()
        )
        self._columns = answers[0]
        self._step_ns = []
        return object()

    def loaded(self) -> Mapping[str, Any]:
        return self._columns

    def compile(self, inputs: Any) -> int | None:
        return None

    def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
        n = most_steps(n)
        blocks: list[Block] = self._group.ask("sample", n=n, timing=timing.value)
        if timing is Timing.EACH:
            self._step_ns = [list(block.phase_ns["step"]) for block in blocks]
        return combined(blocks, n, timing)

    def inspect(self, inputs: Any) -> None:
        self._group.ask("inspect")

    def stepped(self, most: int) -> Mapping[str, Any]:
        # Rank 0's: `outputs` sees that ranks decide alike.
        left: Mapping[str, Any] = self._group.ask("stepped", most=most)[0]
        return left

    def weight_values(self, most: int, draw: int) -> Mapping[str, Any]:
        """Return rank 0's; raise CaseError if ranks that keep whole weights have other ones."""
        ranks: list[Mapping[str, Any]] = self._group.ask("weight_values", most=most, draw=draw)
        if self._job.case.options.get("strategy", "ddp") == "ddp":
            _refuse_other_weights(ranks)
        return ranks[0]

    def preview_step(self, inputs: Any, most: int, draw: int) -> StepPreview | None:
        # Rank 0's weights, and the mean of the ranks' losses.
        previews: list[StepPreview] = self._group.ask("preview_step", most=most, draw=draw)
        loss = sum(preview.loss for preview in previews) / len(previews)
        return replace(previews[0], loss=loss)

    def outputs(self, inputs: Any) -> dict[str, Any]:
        answers: list[dict[str, Any]] = self._group.ask("outputs")
        if self._parts == 1:
            _refuse_differing(answers)
            return answers[0]
        return {name: np.concatenate([a[name] for a in answers]) for name in answers[0]}

    def gradients(self, inputs: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._group.ask("gradients")[0]
        return found

    def reset_memory(self) -> None:
        """Return the ranks have restarted their counters with those of the host."""

    def device_memory(self) -> DeviceMemory | None:
        answers: list[DeviceMemory | None] = self._group.ask("device_memory")
        known = [answer for answer in answers if answer is not None]
        return max(known, key=lambda memory: memory.peak_bytes or 0, default=None)

    def evidence(self) -> Evidence:
        answers = self._group.ask("evidence")
        own: list[Evidence] = [answer["evidence"] for answer in answers]
        kind = self._job.device.hardware
        devices = {
            name if kind == "cpu" else name.partition(":")[0] for e in own for name in e.devices
        }
        self._of_ranks = [self._of_rank(answer["rank"]) for answer in answers]
        first = own[0]
        details = {
            **first.details,
            "threads": sum(rank["threads"] for rank in self._of_ranks),
            "distributed": {
                "strategy": self._job.case.options.get("strategy", "ddp"),
                "backend": backend_of(kind),
                "ranks": self._of_ranks,
                "micro_batch": micro_batch(self._case, self._parts),
                "accumulate": int(self._case.options.get("accumulate", 1)),
                "variables": allocator_of(self._case, kind),
            },
        }
        return Evidence(
            devices=tuple(sorted(devices)),
            requested=str(self._job.device),
            engine=first.engine,
            emulated=first.emulated,
            details=details,
        )

    def _of_rank(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        rank = int(facts["rank"])
        peaks, steps = self.host_memory.peaks, self._step_ns
        peak = peaks[rank] if rank < len(peaks) else None
        return {
            **facts,
            "host_memory_peak_mb": None if peak is None else peak / MIB,
            "step_ms": median(steps[rank]) / 1e6 if rank < len(steps) else None,
        }

    def close(self) -> None:
        self._group.close()

    # -- what it may do beside

    def cpu_seconds(self) -> float:
        return float(sum(self._group.ask("cpu_seconds")))

    def profile(self, inputs: Any, steps: int, traces: Path | None) -> Profile:
        folder = None if traces is None else str(traces)
        found: Profile = self._group.ask("profile", steps=steps, folder=folder)[0]
        return found

    @contextmanager
    def _within(self, what: str) -> Iterator[None]:
        self._group.ask("enter", what=what)
        try:
            yield
        finally:
            self._group.ask("leave", what=what)

    def other_weights(self) -> Any:
        return self._within("other_weights")

    def without_dropout(self) -> Any:
        return self._within("without_dropout")

    def exchanged(self, case: Case) -> Mapping[str, Any]:
        inputs = self.prepare(case)
        self.sample(inputs, 2, Timing.EACH)
        return exchange_columns(self._group.ask("communication", steps=_PROFILED_STEPS))


def start(job: Job) -> RankGroup:
    """Start the ranks of a job on this node."""
    case, kind = job.case, job.device.hardware
    nodes = job.settings.nodes
    here = case.world_size // nodes
    launch = RankLaunch(
        here,
        backend_of(kind),
        threads_of_each(job.settings.threads, here),
        nodes=nodes,
        rendezvous=job.settings.rendezvous or "",
    )
    return RankGroup(launch, allocator_of(case, kind))


def allocator_of(case: Case, hardware: str) -> dict[str, str]:
    """What the host's allocator is told where weights come and go block by block.

    By itself glibc keeps blocks of up to 32 MB that were freed and does not find them again among
    those of other sizes: with it ranks of BERT-base took 2,150 MB in place of 1,040, more than
    with all weights whole. Blocks of a MiB and more are then given back at once.
    """
    sharded = case.options.get("strategy") == "fsdp2" and hardware == "cpu"
    return {"MALLOC_MMAP_THRESHOLD_": str(2**20)} if sharded else {}


def micro_batch(case: Case, parts: int) -> int:
    """Return how many items a rank takes at once."""
    return case.shapes.batch // parts // int(case.options.get("accumulate", 1))


def combined(blocks: Sequence[Block], n: int, timing: Timing) -> Block:
    """Join the ranks' blocks: a step is over when its last rank has finished it."""
    losses = [sum(each) / len(blocks) for each in zip(*(b.losses for b in blocks), strict=True)]
    tokens: Sequence[Sequence[int]] = ()
    if timing is Timing.PHASES:
        slowest = _slowest(blocks)
        phases = {name: list(times) for name, times in slowest.phase_ns.items()}
        tokens = slowest.token_ns
    else:
        phases = {"step": _latest([block.phase_ns["step"] for block in blocks])}
    return Block(
        steps=n,
        timing=timing,
        phase_ns=phases,
        token_ns=tokens,
        losses=losses,
        compilations=max(block.compilations for block in blocks),
        compile_ns=max(block.compile_ns for block in blocks),
    )


def _refuse_differing(answers: Sequence[Mapping[str, Any]]) -> None:
    # Each rank chooses tokens for itself: one that chose others would read another text. Numbers
    # may differ in their last places if ranks are on machines of different kinds.
    first = answers[0]
    decided = [name for name, values in first.items() if values.dtype.kind != "f"]
    for rank, other in enumerate(answers):
        for name in decided:
            if not np.array_equal(first[name], other[name]):
                raise CaseError(
                    "wrong_outputs",
                    f"rank {rank} has other {name} than rank 0",
                    "Measure one process, and report it: collectives gave different sums.",
                )


def _refuse_other_weights(ranks: Sequence[Mapping[str, Any]]) -> None:
    # With other weights than rank 0's, gradients are not exchanged.
    for rank, weights in enumerate(ranks):
        other = [
            name
            for name, values in ranks[0].items()
            if np.linalg.norm(weights[name] - values) > _SAME_WEIGHTS * np.linalg.norm(values)
        ]
        if len(other) > _MOST_OTHER * len(ranks[0]):
            raise CaseError(
                "wrong_steps",
                f"{len(other)} of {len(ranks[0])} weights of rank {rank} are not those of rank 0:"
                " the ranks do not exchange their gradients",
                "Look for what switches off the synchronisation of gradients, such as no_sync().",
            )


def _latest(times: Sequence[Sequence[int]]) -> list[int]:
    ends = [max(moment) for moment in zip(*(accumulate(of) for of in times), strict=True)]
    return [later - earlier for earlier, later in pairwise([0, *ends])]


def _slowest(blocks: Sequence[Block]) -> Block:
    # Of one rank throughout: phases of whichever took longest over each step would add up to more
    # than passed, as ranks that are late by turns make up for it in the next step.
    return max(blocks, key=lambda block: sum(map(sum, block.phase_ns.values())))
