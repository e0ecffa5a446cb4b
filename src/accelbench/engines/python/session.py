"""A callable opened: its code run, set up, called, and asked what it returned."""

from __future__ import annotations

import copy
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from platform import python_implementation, python_version
from typing import Any

import numpy as np
import psutil

from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.errors import CaseError
from accelbench.core.model import ModelCode
from accelbench.core.plugins import version_of
from accelbench.core.profile import OperatorTime, Profile, build_profile
from accelbench.core.protocols import Block, Evidence, Job
from accelbench.core.vocabulary import Timing
from accelbench.engines.python.answers import (
    arrays,
    digest_of_values,
    refuse_unfinished,
    uncompared,
)
from accelbench.engines.python.cached_results import Calls, OwnedState, find_handout, owned_state
from accelbench.engines.python.evaluation import (
    evaluated,
    late_parts,
    slow_attributes,
    without_values,
)
from accelbench.engines.python.places import devices, waiting
from accelbench.engines.shared.arrays import EngineSession
from accelbench.engines.shared.local import LocalSampler, walls
from accelbench.engines.shared.sketches import Sketch, sketch
from accelbench.models.code_models.example import arguments
from accelbench.models.code_models.loading import LoadedCode, failure, load, own_sources, seed_all

#: Floats become smaller by these shares, so that they stay within [0, 1] or [-1, 1]. The least is
#: twice what bf16 rounds by.
_LESS = 2**-7, 2**-6


def make_similar(example: Any, seed: int) -> Any:
    """Return an example with other numbers; itself if it has none that can be changed.

    A function with an example is always called with the same values: others show whether it
    computes its answers or keeps them. Floats change by about a hundredth. The elements of an
    integer array change their places, unless they are sorted: sorted ones may be offsets. The
    rest stays.
    """
    return _changed(example, np.random.default_rng(seed))


def _changed(value: Any, draw: np.random.Generator) -> Any:
    kind = type(value)
    if kind is np.ndarray:
        return _changed_array(value, draw)
    if kind is float:
        return float(_smaller(np.asarray(value), draw))
    if kind in (list, tuple):
        new = [_changed(part, draw) for part in value]
        is_same = all(a is b for a, b in zip(new, value, strict=True))
        return value if is_same else kind(new)
    if kind is dict:
        changed = {key: _changed(part, draw) for key, part in value.items()}
        return changed if any(changed[key] is not value[key] for key in value) else value
    torch = sys.modules.get("torch")
    if torch is not None and kind is torch.Tensor and value.layout is torch.strided:
        return _changed_tensor(torch, value, draw)
    return value


def _changed_array(array: Any, draw: np.random.Generator) -> Any:
    if array.dtype.kind in "fc":
        return _smaller(array, draw) if array.any() else array
    flat = array.ravel()
    if array.dtype.kind not in "iu" or flat.size < 2 or (flat[1:] >= flat[:-1]).all():
        return array
    return draw.permutation(flat).reshape(array.shape)


def _smaller(array: Any, draw: np.random.Generator) -> Any:
    return (array * (1 - draw.uniform(*_LESS, array.shape))).astype(array.dtype)


def _changed_tensor(torch: Any, tensor: Any, draw: np.random.Generator) -> Any:
    held = tensor.detach()
    if held.is_floating_point():
        less = torch.from_numpy(draw.uniform(*_LESS, tuple(held.shape)))
        return (held - held * less.to(held)).requires_grad_(tensor.requires_grad)
    if held.is_complex() or held.dtype is torch.bool or held.is_quantized:
        return tensor
    array = held.cpu().numpy()
    changed = _changed_array(array, draw)
    return tensor if changed is array else torch.from_numpy(changed).to(held.device)


#: How long is looked, first and after what may spin has come to rest.
_GLANCE_S, _REST_S, _LOOK_S = 0.02, 0.3, 0.15
#: Of that time what somebody has who works. On a machine of two cores with eight others at work a
#: thread had a fifth of a core; a worker at rest has less than a hundredth.
_SHARE = 0.08
#: The same of Python's own threads, which do not spin; those of a worker use nothing at rest. A
#: thread that computes ahead may need 0.3 ms for the one call that has ended.
_OF_THREADS = 0.005


def left_running() -> str:
    """Return what goes on, here or in a child, once a call has returned; "" if nothing does.

    It takes time from the next call, and is in no call's own. Threads that wait, as those of a
    pool do, take none. A pool of OpenMP spins for 200 ms after its work: if Python's own
    threads are at rest, who is busy is looked at twice.
    """
    if any(isinstance(thread, threading.Timer) for thread in threading.enumerate()):
        return "a timer is set"
    before = _thread_seconds()
    share = _busy(_GLANCE_S)
    after = _thread_seconds()
    used = sum(value - before.get(thread, value) for thread, value in after.items())
    if used >= _OF_THREADS * _GLANCE_S:
        return f"{share:.0%} of a core"
    if share < _SHARE:
        return ""
    time.sleep(_REST_S)
    share = _busy(_LOOK_S)
    return "" if share < _SHARE else f"{share:.0%} of a core"


def _busy(seconds: float) -> float:
    before, start = _cpu_seconds(), time.monotonic()
    time.sleep(seconds)
    after, took = _cpu_seconds(), time.monotonic() - start
    used = sum(value - before[key] for key, value in after.items() if key in before)
    return used / took


def _thread_seconds() -> dict[int, float]:
    clock_of = getattr(time, "pthread_getcpuclockid", None)
    found: dict[int, float] = {}
    for thread in threading.enumerate():
        if clock_of is None or thread.ident is None or thread is threading.current_thread():
            continue
        try:
            found[thread.ident] = time.clock_gettime(clock_of(thread.ident))
        except OSError:  # it has ended meanwhile
            continue
    return found


def _cpu_seconds() -> dict[int, float]:
    found = {0: time.process_time()}
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        found[process.pid] = times.user + times.system
    return found


#: What a callable is called with: by place, and by name.
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
_ENGINES = ("torch", "jax", "numpy")
#: What timed steps left once something else is asked: a callable may well return None.
_GIVEN_UP = object()
#: The first call with inputs is made with others than those that are timed.
_FIRST_SEED = 0x5E771E
#: Longer steps are not repeated with inputs like the example, nor is a call that takes a second:
#: one that a cache answers otherwise may take many times as long as a step.
_LONGEST_STEP_NS, _LONGEST_CALL_NS = 50e6, 1e9
#: A cache saves at least this: calls take so many times less than the first one.
_TIMES_QUICKER, _SAVED_NS = 4.0, 0.1e6


class LapSampler(LocalSampler):
    """Samples that follow each other without a gap: each lasts from the end of the one before.

    A callable may take less than reading the clock does. What the loop takes would be a share of
    the time that no sample explains; here it is in the samples, 0.1 us of each.
    """

    def _each(self, inputs: Any, n: int) -> Mapping[str, list[int]]:
        now, step = self.clock.now_ns, self.step
        durations = [0] * n
        last = n - 1
        before = now()
        for i in range(last):
            step(inputs)
            after = now()
            durations[i] = after - before
            before = after
        self.left = step(inputs)
        durations[last] = now() - before
        return {"step": durations}


class PythonSession(EngineSession):
    """One callable; what it is called with is its own example, or drawn as its owner said."""

    evaluates_outputs = True

    def __init__(self, job: Job, clock: Clock) -> None:
        code = job.case.model.code
        assert code is not None  # the runtime's card has refused it otherwise
        super().__init__(job, clock)
        self._code: ModelCode = code
        self._facts: dict[str, Any] = {}
        self._given: tuple[Arguments | None, str] = None, ""
        self._devices: set[str] = set()
        self._going_on = ""
        seed_all(job.settings.seed)
        self._loaded: LoadedCode = self._timed("build", lambda: load(code))
        self._limit_threads()
        seed_all(job.settings.seed)
        if self._loaded.setup is not None:
            self._timed("load", self._loaded.setup)
        self.weights_digest = code.digest[:16]
        self._call: Callable[..., Any] = self._loaded.subject
        self._settled: Case | None = None
        self._finish: Callable[[Any], Any] | None = None
        self._late: list[str] = []
        self._before: OwnedState | None = None
        self._first_ns = self._step_ns = 0.0
        self._takes_similar: bool | None = None  # None: it was not tried
        self._ignores_similar = False
        self._sampler = LapSampler(clock=clock, step=self._step)
        self._sampler.left = _GIVEN_UP

    def _limit_threads(self) -> None:
        # Libraries read the number of threads from the environment; torch is told as well.
        torch, threads = sys.modules.get("torch"), self._job.settings.threads
        if torch is not None and threads:
            torch.set_num_threads(threads)

    def prepare(self, case: Case, seed: int | None = None) -> Arguments:
        # Anew: what a call changes in its own arguments is not there for the next.
        self._given = None, ""
        if case != self._settled:
            self._settle(case)
        prepared = self._arguments(case, seed)
        self._given = prepared, digest_of_values(arrays(prepared))
        return prepared

    def _arguments(self, case: Case, seed: int | None) -> Arguments:
        if case.model.inputs:
            return (), dict(self._inputs.arrays(case, seed))
        return self._example()

    def _example(self) -> Arguments:
        if self._loaded.example is None:
            return (), {}
        return arguments(_copied(self._loaded.example))

    def similar_inputs(self, seed: int) -> Arguments | None:
        args, keywords = given = self._example()
        changed, named = make_similar((args, keywords), seed)
        if changed is args and named is keywords:
            return None
        if self._takes_similar is None:
            self._takes_similar = self._accepts((changed, named), given)
        return (changed, named) if self._takes_similar else None

    def _accepts(self, similar: Arguments, given: Arguments) -> bool:
        if self._step_ns > _LONGEST_STEP_NS:
            return False
        start = self._clock.now_ns()
        try:
            answer = arrays(self._answer(similar))
        except CaseError:
            return False
        if self._clock.now_ns() - start > _LONGEST_CALL_NS:
            return False
        has_floats = any(one.dtype.kind in "fc" and one.any() for one in answer.values())
        self._ignores_similar = has_floats and digest_of_values(answer) == digest_of_values(
            arrays(self._answer(given))
        )
        return True

    def _settle(self, case: Case) -> None:
        """Find out by a first call what has to be waited for and evaluated in each step.

        It is called with other inputs than those that are timed: a cache must not know these.
        """
        self._finish, self._late = None, []
        inputs = self._arguments(case, self._job.settings.seed ^ _FIRST_SEED)
        if not case.model.inputs and self._before is None:
            self._before = self._owned_state().forget_objects()
        start = self._clock.now_ns()
        answer = self._called(inputs)
        self._first_ns = float(self._clock.now_ns() - start)
        self._going_on = left_running()  # at once: a little of it is soon over
        refuse_unfinished(answer)
        self._finish = waiting(answer)
        self._late = late_parts(answer)
        self._settled = case
        self._sampler.step = self._finished if self._finish or self._late else self._step

    def _owned_state(self) -> OwnedState:
        return owned_state(self._call, self._code.sources)

    def _step(self, inputs: Arguments) -> Any:
        return self._call(*inputs[0], **inputs[1])

    def _finished(self, inputs: Arguments) -> Any:
        answer = self._call(*inputs[0], **inputs[1])
        if self._finish is not None:
            self._finish(answer)
        return evaluated(answer) if self._late else answer

    def _called(self, inputs: Arguments) -> Any:
        try:
            return self._finished(inputs)
        except CaseError:
            raise
        except Exception as error:
            raise CaseError(
                "code_failed",
                f"{self._job.case.model.id} fails: {failure(error, self._code.sources)}",
                "Run it in Python alone, and mend it.",
            ) from error

    def _answer(self, inputs: Arguments) -> Any:
        """Call once, and refuse an answer that is less finished than the first one."""
        answer = self._called(inputs)
        refuse_unfinished(answer)
        if late := late_parts(answer):
            raise CaseError(
                "unfinished",
                f"it returns values that are computed only when they are asked for ({late[0]}), and"
                " its first answer had none: its work is not done when it returns",
                "Let each call return the same kind of values.",
            )
        return answer

    def sample(self, inputs: Arguments, n: int, timing: Timing) -> Block:
        block = self._sampler.sample(inputs, n, timing)
        self._step_ns = sum(map(sum, block.phase_ns.values())) / block.steps
        return block

    def stepped(self, most: int) -> Mapping[str, Sketch]:
        left = self._sampler.left
        return {} if left is _GIVEN_UP else sketch(arrays(left), most)

    def inspect(self, inputs: Arguments) -> None:
        self._sampler.left = _GIVEN_UP
        answer = self._answer(inputs)
        self._look(answer)
        self._facts |= self._look_for_missing_work(inputs, answer)

    def outputs(self, inputs: Arguments) -> Mapping[str, Any]:
        self._sampler.left = _GIVEN_UP
        answer = self._answer(inputs)
        self._look(answer)
        return arrays(answer)

    def _inputs_changed(self) -> bool:
        # Asked once memory has been measured.
        given, digest = self._given
        return given is not None and digest_of_values(arrays(given)) != digest

    def _imported_later(self) -> list[str]:
        # Its owner's files that were imported as it was called: no digest has them.
        later = set(own_sources("", self._code.folder)) - set(self._code.sources)
        return sorted(Path(file).name for file in later)

    def _look(self, answer: Any) -> None:
        values = arrays(answer)
        floats = [v for v in values.values() if v.dtype.kind in "fc" and v.size]
        self._devices = devices(answer)
        self._facts = {
            "returns": type(answer).__name__,
            "output_devices": sorted(self._devices),
            "output_dtypes": sorted({str(value.dtype) for value in values.values()}),
            "outputs_finite": all(bool(np.isfinite(value).all()) for value in floats),
            "not_compared": uncompared(answer),
        }

    def _look_for_missing_work(self, inputs: Arguments, answer: Any) -> dict[str, Any]:
        """Refuse answers that the timed calls have not computed; return what may not have been."""
        facts: dict[str, Any] = {
            "computed_when_read": slow_attributes(
                answer, inputs, self._step_ns, self._clock.now_ns
            ),
            "holds_only_inputs": without_values(answer, inputs),
            "evaluated": self._late,
        }
        case = self._settled
        if self._before is None or case is None:
            return facts
        is_quicker = self._first_ns >= max(
            self._step_ns * _TIMES_QUICKER, self._step_ns + _SAVED_NS
        )
        calls = Calls(self._answer, lambda: self._arguments(case, None), self._owned_state)
        found = find_handout(calls, inputs, answer, self._before, is_quicker)
        if found.kept_by:
            raise CaseError(
                "cached",
                f"each call returns what the first one made, and a {found.kept_by} in its code has"
                " kept: outputs are remembered, not computed",
                "Measure the function without its cache, such as its __wrapped__.",
            )
        found_in = list(found.caches) if is_quicker else []
        self.similar_inputs(self._job.settings.seed ^ _FIRST_SEED)
        return {
            **facts,
            "same_answer": found.same,
            "found_in_caches": found_in,
            "same_for_similar_inputs": self._ignores_similar,
        }

    def profile(self, inputs: Arguments, steps: int, traces: Path | None) -> Profile:
        # By Python's own profiler: functions, of which what they call is left out.
        import cProfile

        profiler, step = cProfile.Profile(), self._sampler.step

        def profiled_step() -> None:
            profiler.enable()  # within the time around it, which it adds up to
            try:
                step(inputs)
            finally:
                profiler.disable()

        times = walls(self._clock, steps, profiled_step)
        where = str(self._job.device)
        spent = []
        for entry in profiler.getstats():
            code = entry.code
            name = code if isinstance(code, str) else f"{code.co_name} ({code.co_filename})"
            kind = code if isinstance(code, str) else code.co_qualname
            spent.append(OperatorTime(name, kind, entry.inlinetime * 1e9, entry.callcount, where))
        return build_profile("cProfile", spent, times)

    def evidence(self) -> Evidence:
        # Where the tensors lie that it returned, and whether it began to use a GPU.
        changed = self._inputs_changed()
        going_on = self._going_on or left_running()
        return Evidence(
            devices=tuple(sorted(self._devices or {"cpu:0"})),
            requested=str(self._job.device),
            engine=f"{python_implementation()} {python_version()}",
            details={
                "libraries": _libraries(),
                **self._facts,
                "inputs_changed": changed,
                "left_running": going_on,
                "imported_later": self._imported_later(),
                **self._inputs.details(),
            },
        )

    def close(self) -> None:
        loaded, self._loaded = self._loaded, LoadedCode(_gone)
        self._call, self._given = _gone, (None, "")
        self._sampler.left = _GIVEN_UP
        if loaded.teardown is not None:
            loaded.teardown()


def _gone(*_args: Any, **_keywords: Any) -> None:
    """What was closed is called no more."""


def _copied(example: Any) -> Any:
    try:
        return copy.deepcopy(example)
    except Exception:
        return example


def _libraries() -> dict[str, str]:
    versions = {name: version_of(name) for name in _ENGINES if name in sys.modules}
    return {name: version for name, version in versions.items() if version is not None}
