"""The model as one rank has it, what a rank answers, and collectives by themselves."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity

from accelbench.core.case import Case
from accelbench.core.clock import Clock, MonotonicClock, cpu_seconds
from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.core.protocols import Block, Job
from accelbench.core.serial import case_from_json, job_from_json
from accelbench.core.vocabulary import Mode, Timing
from accelbench.engines.pytorch.distributed.group import RankLaunch
from accelbench.engines.pytorch.distributed.parallel import Parallel, RankTrain, here, parallel
from accelbench.engines.pytorch.places import TorchPlace
from accelbench.engines.pytorch.procedures import Procedure
from accelbench.engines.pytorch.procedures.base import buffers_kept, chances_kept
from accelbench.engines.pytorch.runtime import PytorchRuntime
from accelbench.engines.pytorch.session import PytorchSession
from accelbench.engines.shared.communication import Span, is_collective, shared
from accelbench.engines.shared.local import walls
from accelbench.hardware.hostmemory import HostMemory, release_freed_memory
from accelbench.models.inputs import choosing, make_inputs, tensors
from accelbench.models.losses import find_loss

#: Kernels by which NCCL and RCCL carry out collectives; copies compute nothing.
_KERNELS, _COPIES = ("nccl", "rccl"), ("memcpy", "memset")
_US = 1e3  # in a millisecond


def communication(step: Callable[[], Any], steps: int, place: TorchPlace) -> dict[str, Any]:
    """Return what collectives take of a step by torch.profiler, in mean milliseconds.

    A step is done when it returns.
    """
    device = place.device.type != "cpu"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device else [])]
    with torch.profiler.profile(activities=activities, acc_events=True) as profiler:
        times = walls(MonotonicClock(), steps, step)
    share = shared(_spans(profiler.events(), device))
    return share.of_step(steps, sum(times) / steps / 1e6, _US)


def _spans(events: Any, device: bool) -> Iterator[Span]:
    # What the host did, or on a device its kernels: each on a stream as on a thread.
    kinds = torch.autograd.DeviceType
    for event in events:
        start, end = event.time_range.start, event.time_range.end
        if not device:
            if event.device_type == kinds.CPU and (not event.is_async or is_collective(event.name)):
                yield Span(event.name, event.thread, start, end)
        elif event.device_type != kinds.CPU:
            name = event.name.lower()
            if any(word in name for word in _KERNELS):
                yield Span(f"nccl:{event.name}", event.device_resource_id, start, end)
            elif not any(word in name for word in _COPIES):
                yield Span(f"kernel::{event.name}", event.device_resource_id, start, end)


_BYTES = 4  # of a value in fp32


@dataclass(frozen=True)
class Exchange:
    """A collective with its buffers.

    A step carries it out once; `expected` is the result if each rank gives its number, from 1
    on.
    """

    step: Callable[[], object]
    given: torch.Tensor
    taken: torch.Tensor
    expected: torch.Tensor


def opened_collective(name: str, size: int, backend: str, clock: Clock) -> Callable[[int], int]:
    """Carry out a collective once, check it, and return what times so many steps of it.

    `size` is the bytes of the whole buffer, as nccl-tests have it: that of all ranks together if
    each has a part. It is on the host for gloo, else on the rank's own GPU.
    """
    on_device = backend != "gloo"
    device = torch.device("cuda", torch.cuda.current_device()) if on_device else torch.device("cpu")
    exchange = _EXCHANGES[name](size // _BYTES, device)
    exchange.given.fill_(dist.get_rank() + 1.0)
    exchange.step()
    if not torch.equal(exchange.taken, exchange.expected):
        raise CaseError(
            "wrong_outputs", f"the result of {name} over {size:,} bytes is wrong", "Do not use it."
        )
    exchange.given.zero_()  # sums of zeros stay finite, however often they are taken

    def block(steps: int) -> int:
        begin = clock.now_ns()
        for _ in range(steps):
            exchange.step()
        if on_device:
            torch.cuda.synchronize(device)
        return clock.now_ns() - begin

    return block


def _all_reduce(count: int, device: torch.device) -> Exchange:
    values, ranks = torch.empty(count, device=device), dist.get_world_size()
    total = torch.full_like(values, ranks * (ranks + 1) / 2)
    return Exchange(lambda: dist.all_reduce(values), values, values, total)


def _all_gather(count: int, device: torch.device) -> Exchange:
    ranks = dist.get_world_size()
    given = torch.empty(count // ranks, device=device)
    taken = torch.empty(len(given) * ranks, device=device)
    step = dist.all_gather_into_tensor
    return Exchange(lambda: step(taken, given), given, taken, _by_rank(taken, ranks))


def _reduce_scatter(count: int, device: torch.device) -> Exchange:
    ranks = dist.get_world_size()
    taken = torch.empty(count // ranks, device=device)
    given = torch.empty(len(taken) * ranks, device=device)
    total = torch.full_like(taken, ranks * (ranks + 1) / 2)
    return Exchange(lambda: dist.reduce_scatter_tensor(taken, given), given, taken, total)


def _broadcast(count: int, device: torch.device) -> Exchange:
    values = torch.empty(count, device=device)
    first = torch.ones_like(values)
    return Exchange(lambda: dist.broadcast(values, src=0), values, values, first)


def _by_rank(whole: torch.Tensor, ranks: int) -> torch.Tensor:
    numbers = torch.arange(1.0, ranks + 1, device=whole.device)
    return numbers.repeat_interleave(len(whole) // ranks)


_EXCHANGES: dict[str, Callable[[int, torch.device], Exchange]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "broadcast": _broadcast,
}


_NORMS = (torch.nn.modules.batchnorm._BatchNorm,)


@dataclass(frozen=True)
class Ranks:
    """This rank among the others."""

    rank: int
    world: int
    local: int
    questions: Any  # a group that carries nothing else, in which all but rank 0 wait for long
    meeting: Any  # one of which none waits longer than a collective does
    launch: RankLaunch

    def passed_on(self, question: dict[str, Any] | None) -> dict[str, Any] | None:
        box = [question]
        dist.broadcast_object_list(box, src=0, group=self.questions)
        return box[0]

    def gathered(self, answer: Any) -> list[Any]:
        answers: list[Any] | None = [None] * self.world if self.rank == 0 else None
        dist.gather_object(answer, answers, dst=0, group=self.meeting)
        return answers or []

    def together(self) -> None:
        dist.barrier(group=self.meeting)


class RankSession(PytorchSession):
    """One rank's part of a model."""

    def __init__(self, job: Job, clock: Clock, ranks: Ranks) -> None:
        self._ranks = ranks
        self._shared: Parallel
        device = job.device
        if device.hardware != "cpu":
            device = replace(device, ordinal=ranks.local)
        settings = job.settings.with_values(threads=ranks.launch.threads)
        super().__init__(replace(job, device=device, settings=settings), clock)

    @property
    def part(self) -> int:
        return self._ranks.rank if self._shared.parts > 1 else 0

    def _runnable(self, module: torch.nn.Module) -> Callable[..., Any]:
        case = self._job.case
        strategy = str(case.options.get("strategy", "ddp"))
        self._shared = parallel(
            strategy, module, self._place.device, case.model.id, self._without_gradient
        )
        return self._shared.run

    def _without_gradient(self) -> set[str]:
        # By a step of two items, which leaves nothing else.
        case, module = self._job.case, self._module
        how = case.model.training
        assert how is not None  # the runtime's card has refused it otherwise
        shapes = replace(case.shapes, batch=2)
        arrays = make_inputs(case.model, shapes, self._job.settings.seed, Mode.TRAINING)
        inputs = self._placed(case, arrays)
        labels = {label.name for label in how.labels}
        module.train()
        with buffers_kept(module):
            with chances_kept(self._place.device), self._autocast():
                outputs = module(**{n: t for n, t in inputs.items() if n not in labels})
            find_loss(how.loss)(outputs, inputs).backward()
        idle = {n for n, p in module.named_parameters() if p.requires_grad and p.grad is None}
        module.zero_grad(set_to_none=True)
        module.eval()
        return idle

    def _procedure_of(self, case: Case) -> Procedure:
        if case.mode is not Mode.TRAINING:
            return super()._procedure_of(case)
        return RankTrain(case, self._opened, self._shared, self.part)

    def _arrays(self, case: Case, seed: int | None) -> Mapping[str, Any]:
        arrays = super()._arrays(case, seed)
        parts = self._shared.parts
        if parts == 1:
            return arrays
        rows = case.shapes.batch // parts
        cut = slice(self.part * rows, (self.part + 1) * rows)
        shared = {
            i.name
            for i in tensors(case.model, case.shapes, case.mode)
            if i.shape and i.shape[0] == "batch"
        }
        # Copied: a part of an array keeps all of it.
        return {n: a[cut].copy() if n in shared else a for n, a in arrays.items()}

    def _doubling(self) -> list[torch.Tensor]:
        # All of them: what is split is of a class of its own, as is what is quantised elsewhere.
        return [here(weight) for weight in self._module.parameters() if weight.is_floating_point()]

    def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
        block = super().sample(inputs, n, timing)
        if timing is not Timing.PHASES:
            return block
        return replace(block, phase_ns={k: _folded(v, n) for k, v in block.phase_ns.items()})

    def without_dropout(self) -> AbstractContextManager[None]:
        if self._shared.parts > 1 and any(isinstance(m, _NORMS) for m in self._module.modules()):
            raise UnsupportedError(
                "batch_statistics",
                "each rank normalises its own part of the batch, so losses are not those of one"
                " process",
            )
        return super().without_dropout()

    def communication(self, inputs: Any, steps: int) -> dict[str, Any]:
        return self._recorded(inputs, lambda step: communication(step, steps, self._place))

    def gradients(self, inputs: Any) -> dict[str, Any]:
        procedure = self._procedure
        assert isinstance(procedure, RankTrain)
        with self._around():
            return {name: g.float().cpu().numpy() for name, g in procedure.gradients(inputs)}

    def facts(self) -> dict[str, Any]:
        memory = self.device_memory()
        return {
            "device": str(self._place.device),
            "threads": torch.get_num_threads(),
            "device_memory_peak_bytes": None if memory is None else memory.peak_bytes,
            **self._shared.facts(),
        }


def _folded(times: Sequence[int], steps: int) -> list[int]:
    # With several micro-batches a phase comes several times a step.
    each = len(times) // steps
    return [sum(times[i * each : (i + 1) * each]) for i in range(steps)]


#: Questions that a rank's session answers by itself, and those that it is asked with the inputs.
_OF_SESSION = frozenset({"stepped", "weight_values", "device_memory"})
_OF_INPUTS = frozenset({"outputs", "inspect", "preview_step"})


class RankWork:
    """The answers of a rank."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._clock = MonotonicClock()
        self._memory = HostMemory.start()
        self._session: RankSession | None = None
        self._inputs: Any = None
        self._held: dict[str, ExitStack] = {}
        self._collective: Callable[[int], int] | None = None

    def answer(self, question: Mapping[str, Any]) -> Any:
        what = dict(question)
        do = what.pop("do")
        if do in _OF_INPUTS:
            return getattr(self._opened(), do)(self._inputs, **what)
        if do in _OF_SESSION:
            return getattr(self._opened(), do)(**what)
        return getattr(self, f"_{do}")(**what)

    def close(self) -> None:
        self._inputs = None
        self._collective = None
        if self._session is not None:
            self._session.close()
            self._session = None

    def _opened(self) -> RankSession:
        assert self._session is not None
        return self._session

    def _open(self, job: Mapping[str, Any]) -> dict[str, Any]:
        self.close()
        for module in PytorchRuntime.info.preload:  # as the workers of one process have it
            import_module(module)
        release_freed_memory()
        self._memory = HostMemory.start()
        session = self._session = RankSession(job_from_json(job), self._clock, self._ranks)
        return {
            "timings": dict(session.timings),
            "weights_digest": session.weights_digest,
            "phases": session.phases,
            "device_timed": session.device_timed,
            "parts": session._shared.parts,
        }

    def _where(self) -> dict[str, Any]:
        return {"rank": self._ranks.rank, "pid": os.getpid(), "host": socket.gethostname()}

    def _meet(self) -> None:
        self._ranks.together()

    def _prepare(
        self, case: Mapping[str, Any], seed: int | None, items: Sequence[int] | None
    ) -> dict[str, Any]:
        self._inputs = None
        with nullcontext() if items is None else choosing(items):
            self._inputs = self._opened().prepare(case_from_json(case), seed)
        return dict(self._opened().loaded())

    def _sample(self, n: int, timing: str) -> Block:
        session = self._opened()
        self._ranks.together()
        return session.sample(self._inputs, n, Timing(timing))

    def _gradients(self) -> dict[str, Any]:
        found = self._opened().gradients(self._inputs)
        return found if self._ranks.rank == 0 else {}

    def _communication(self, steps: int) -> dict[str, Any]:
        self._ranks.together()
        return self._opened().communication(self._inputs, steps)

    def _profile(self, steps: int, folder: str | None) -> Any:
        wanted = Path(folder) if folder and self._ranks.rank == 0 else None
        return self._opened().profile(self._inputs, steps, wanted)

    def _enter(self, what: str) -> None:
        stack = self._held[what] = ExitStack()
        stack.enter_context(getattr(self._opened(), what)())

    def _leave(self, what: str) -> None:
        self._held.pop(what).close()

    def _reset_memory(self) -> None:
        release_freed_memory()
        self._memory.reset_peak()
        self._opened().reset_memory()

    def _memory_peak(self) -> dict[str, Any]:
        return {"bytes": self._memory.peak_bytes(), "source": self._memory.source}

    def _memory_now(self) -> dict[str, Any]:
        import psutil

        now = self._memory.current_bytes()
        return {"pid": os.getpid(), "hidden": psutil.Process().memory_info().rss - now}

    def _evidence(self) -> dict[str, Any]:
        session = self._opened()
        return {"evidence": session.evidence(), "rank": {**self._where(), **session.facts()}}

    def _open_collective(self, name: str, size: int) -> None:
        self._collective = None
        self._collective = opened_collective(name, size, self._ranks.launch.backend, self._clock)

    def _time_collective(self, steps: int) -> int:
        assert self._collective is not None
        self._ranks.together()
        return self._collective(steps)

    def _cpu_seconds(self) -> float:
        return cpu_seconds()
