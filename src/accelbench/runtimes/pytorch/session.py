"""A model opened in PyTorch: built, placed, stepped, and asked where it ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from accelbench.catalog.build import build, weights_digest
from accelbench.catalog.inputs import make_inputs
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.errors import CaseError, OutOfMemoryError
from accelbench.core.protocols import Block, DeviceMemory, Evidence, Job
from accelbench.core.words import Timing
from accelbench.runtimes.local import LocalSampler
from accelbench.runtimes.pytorch.places import Place, place_for

_DTYPES = {
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "amp-fp16": torch.float32,  # weights and inputs stay whole, autocast narrows each operation
    "amp-bf16": torch.float32,
}
_AUTOCAST = {"amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}


#: How torch's allocators and its arithmetic on sizes say it, on Linux, Windows and macOS.
_NO_MEMORY = (
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "storage size calculation overflowed",
)


@contextmanager
def memory_errors() -> Iterator[None]:
    """Turn every way in which PyTorch says 'no memory' into OutOfMemoryError.

    The CPU allocator raises a plain RuntimeError whose text is all there is.
    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise OutOfMemoryError(first_line(error)) from error
    except MemoryError as error:
        raise OutOfMemoryError("the host has no memory left") from error
    except RuntimeError as error:
        text = str(error)
        if any(words in text.lower() for words in _NO_MEMORY):
            raise OutOfMemoryError(first_line(error)) from error
        raise


def first_line(error: BaseException) -> str:
    """What an engine's error says, without its stack."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__


def _compile_totals() -> tuple[int, int]:
    """How many graphs Dynamo has compiled in this process, and the nanoseconds spent."""
    from torch._dynamo import utils

    graphs = int(utils.counters["stats"]["unique_graphs"])
    seconds = sum(utils.compilation_time_metrics.get("_compile.compile_inner", ()))
    return graphs, round(seconds * 1e9)


class PytorchSession:
    """One model on one device in one precision; shapes may change between measurements."""

    phases = ("step",)

    def __init__(self, job: Job, clock: Clock) -> None:
        case = job.case
        if job.threads:
            torch.set_num_threads(job.threads)
        self._job = job
        self._precision = case.precision
        self._dtype = _DTYPES[case.precision]
        self._place: Place = place_for(torch, job.device.hardware, job.device.ordinal)
        self.device_timed = self._place.timer is not None
        self.timings: dict[str, int] = {}
        with memory_errors():
            module = self._timed(clock, "build", lambda: self._build(job))
            self.weights_digest = weights_digest(module)
            self._module = self._timed(clock, "load", lambda: self._load(module))
        self._run: Callable[..., Any] = self._module
        if case.compiled:
            # Static shapes: with dynamic ones, the second batch size of a worker would
            # silently run other code than the first.
            self._run = torch.compile(self._module, dynamic=False)
        self._sampler = LocalSampler(
            clock=clock,
            step=self._step,
            synchronize=self._place.synchronize,
            timer=self._place.timer,
            around=self._around,
            compiled=_compile_totals if case.compiled else lambda: (0, 0),
        )
        self._output_facts: dict[str, Any] = {}

    def _timed(self, clock: Clock, name: str, make: Callable[[], Any]) -> Any:
        start = clock.now_ns()
        made = make()
        if self._place.synchronize is not None:
            self._place.synchronize()
        self.timings[name] = clock.now_ns() - start
        return made

    def _build(self, job: Job) -> torch.nn.Module:
        module: torch.nn.Module = build(
            job.case.model, job.seed, job.weights, job.trust_remote_code
        )
        return module

    def _load(self, module: torch.nn.Module) -> torch.nn.Module:
        return module.to(device=self._place.device, dtype=self._dtype).eval()

    @contextmanager
    def _around(self) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(memory_errors())
            stack.enter_context(torch.inference_mode())
            narrow = _AUTOCAST.get(self._precision)
            if narrow is not None:
                stack.enter_context(torch.autocast(self._place.device.type, dtype=narrow))
            yield

    def _step(self, inputs: Mapping[str, torch.Tensor]) -> Any:
        return self._run(**inputs)

    def prepare(self, case: Case) -> dict[str, torch.Tensor]:
        with memory_errors():
            arrays = make_inputs(case.model, case.shapes, self._job.seed)
            floats = {i.name for i in case.model.inputs if i.dtype == "float"}
            return {
                name: torch.from_numpy(array).to(
                    device=self._place.device, dtype=self._dtype if name in floats else None
                )
                for name, array in arrays.items()
            }

    def compile(self, inputs: Any) -> int | None:
        """torch.compile works at the first call; that call's block carries its time."""
        return None

    def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
        return self._sampler.sample(inputs, n, timing)

    def inspect(self, inputs: Any) -> None:
        with self._around():
            self._look(_named_tensors(self._run(**inputs)))

    def outputs(self, inputs: Any) -> dict[str, Any]:
        with self._around():
            tensors = _named_tensors(self._run(**inputs))
            self._look(tensors)
            return {
                name: (t.float() if t.is_floating_point() else t).cpu().numpy()
                for name, t in tensors.items()
            }

    def _look(self, tensors: Mapping[str, torch.Tensor]) -> None:
        found = tensors.values()
        self._output_facts = {
            "output_devices": sorted({str(t.device) for t in found}),
            "output_dtypes": sorted({str(t.dtype).removeprefix("torch.") for t in found}),
            "outputs_finite": all(_finite(t) for t in found),
        }

    def reset_memory(self) -> None:
        self._place.reset_memory()

    def device_memory(self) -> DeviceMemory | None:
        return self._place.memory()

    def evidence(self) -> Evidence:
        """Read back from the tensors themselves after they were computed."""
        weights = {str(p.device) for p in self._module.parameters()}
        dtypes = sorted({str(p.dtype).removeprefix("torch.") for p in self._module.parameters()})
        seen = weights.union(self._output_facts.get("output_devices", ()))
        hardware = self._job.device.hardware
        return Evidence(
            devices=tuple(sorted(self._named(name, hardware) for name in seen)),
            requested=str(self._job.device),
            engine=f"torch {torch.__version__}",
            emulated=self._job.device.emulated,
            details={
                "weight_dtypes": dtypes,
                "autocast": self._precision if self._precision in _AUTOCAST else None,
                **self._output_facts,
                **self._place.facts(),
            },
        )

    def _named(self, name: str, hardware: str) -> str:
        """torch's "cpu" or "cuda:1" in our words: with an ordinal always.

        ROCm's PyTorch calls its devices "cuda"; CudaPlace has proved the build.
        """
        kind, _, ordinal = name.partition(":")
        return f"{hardware if kind == self._place.device.type else kind}:{ordinal or 0}"

    def close(self) -> None:
        # Not deleted but replaced: closing twice is no error.
        self._module = torch.nn.Module()
        self._run = self._module
        self._sampler = LocalSampler(clock=self._sampler.clock, step=self._run)


def _finite(tensor: torch.Tensor) -> bool:
    """Without a temporary of the tensor's size: its extremes tell, and NaN passes through them."""
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return True
    low, high = torch.aminmax(tensor)
    return bool(torch.isfinite(low)) and bool(torch.isfinite(high))


def _named_tensors(output: Any) -> dict[str, torch.Tensor]:
    """Every tensor of a model's output by name, whatever shape the output has."""
    if isinstance(output, torch.Tensor):
        return {"output": output}
    if isinstance(output, Mapping):
        return {str(k): v for k, v in output.items() if isinstance(v, torch.Tensor)}
    if isinstance(output, (tuple, list)):
        return {str(i): v for i, v in enumerate(output) if isinstance(v, torch.Tensor)}
    raise CaseError("no_outputs", f"the model returned a {type(output).__name__}, not tensors")
