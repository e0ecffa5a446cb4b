"""The pytorch runtime's card: readable without importing torch."""

from __future__ import annotations

from accelbench.core.case import Case
from accelbench.core.clock import Clock, MonotonicClock
from accelbench.core.options import RuntimeOption
from accelbench.core.protocols import (
    SUPPORTED,
    Absent,
    Device,
    Job,
    RuntimeInfo,
    Session,
    Support,
)
from accelbench.core.vocabulary import Belongs, Mode
from accelbench.runtimes.pytorch.distributed.splittable import nothing_says_how, uneven_heads
from accelbench.runtimes.shared.names import CARDS_IN_ORDER, MODULES_QUIET
from accelbench.runtimes.shared.refusals import (
    MODULE_OPTIONS,
    missing,
    no,
    no_such_sharing,
    not_an_option,
    not_listed,
    not_trained,
    writes_nothing,
)

_HARDWARE = ("cpu", "cuda", "rocm", "mps")
#: Of torch.compile: what it is told by, and what it may be told.
COMPILE_MODE = "compile_mode"
COMPILE_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class PytorchRuntime:
    """Runs torch modules as they are, or through torch.compile."""

    info = RuntimeInfo(
        name="pytorch",
        hardware=_HARDWARE,
        package="torch",
        extra="torch",
        default_for=_HARDWARE,
        precisions=("fp32", "fp16", "bf16", "amp-fp16", "amp-bf16", "int8"),
        isolation="fork",
        consumes="torch",
        # modeling_utils alone is 1.5 s and 100 MB of every model: imported once, before the fork.
        preload=(
            "torch",
            "transformers.modeling_utils",
            "accelbench.runtimes.pytorch.session",
        ),
        environment={
            # Each launch compiles for itself: a cache on disk would turn every second
            # compilation into a file read and call it the same thing.
            "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
            # A pool of compiler processes would outlive the step that needed it.
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            **CARDS_IN_ORDER,
            **MODULES_QUIET,
        },
        options=(
            RuntimeOption(
                COMPILE_MODE,
                "how torch.compile goes about it, beside --compile",
                choices=COMPILE_MODES,
                default=COMPILE_MODES[0],
            ),
        ),
        spills=True,
        distributes=True,
        several_machines=True,
        title="PyTorch",
        aliases=("torch",),
        engine_packages=("torch",),
        packages=("transformers", "safetensors", "triton", "torchao"),
        dashes=(1, 0),
        place=0,
        reasons={
            "no_cache": Belongs.CELL,
            "nothing_quantised": Belongs.CELL,
            "wrong_build": Belongs.MACHINE,
        },
    )

    def probe(self) -> list[Device | Absent]:
        """The devices torch itself sees; runs in a throw-away process."""
        from accelbench.runtimes.pytorch.probe import devices

        return devices()

    def supports(self, case: Case, device: Device) -> Support:
        name, trains = self.info.name, case.mode is Mode.TRAINING
        return (
            missing(name, ("torch",), "torch")
            or not_listed(name, case, self.info.precisions)
            or (_quantises(case) if case.precision == "int8" else None)
            or _casts(case)
            or not_an_option(
                name, case, MODULE_OPTIONS[case.mode] | {COMPILE_MODE} | _of_ranks(case)
            )
            or _compiles(case, device)
            or (not_trained(name, case) if trains else _generates(case))
            or (_shared_out(case, device) if case.world_size > 1 else None)
            or SUPPORTED
        )

    def clock(self) -> Clock:
        return MonotonicClock()

    def open(self, job: Job) -> Session:
        if job.case.world_size > 1:
            from accelbench.runtimes.pytorch.distributed.session import DistributedSession

            return DistributedSession(job)
        from accelbench.runtimes.pytorch.session import PytorchSession

        return PytorchSession(job, self.clock())


_STRATEGIES = ("ddp", "fsdp2", "tp")
#: What may be asked where several processes share a step; micro-batches of training alone.
_OF_RANKS = frozenset({"strategy", "accumulate"})
#: Losses of a whole batch: parts of it have others, whose mean is not the batch's.
_WHOLE_BATCH = frozenset({"contrastive"})


def _of_ranks(case: Case) -> frozenset[str]:
    if case.world_size == 1:
        return frozenset()
    return _OF_RANKS if case.mode is Mode.TRAINING else _OF_RANKS - {"accumulate"}


def _shared_out(case: Case, device: Device) -> Support | None:
    """What several processes cannot do together, of what one can."""
    if (refused := no_such_sharing("pytorch", case, _STRATEGIES)) is not None:
        return refused
    strategy = str(case.options.get("strategy", _STRATEGIES[0]))
    if device.hardware not in ("cpu", "cuda", "rocm"):
        return no(
            "distributed",
            f"torch's collectives have no backend on {device.hardware}",
            "Use --hardware cpu, cuda or rocm.",
        )
    if case.compiled:
        return no(
            "option",
            "a compiled step of several processes is not measured",
            "Leave out --compile.",
        )
    if case.mode is not Mode.TRAINING:
        return _shared_inference(case, strategy)
    if case.precision == "fp16" or case.options.get("pure"):
        return no(
            "precision",
            "each process would find a loss scale of its own, and half-precision weights are not"
            " shared out",
            "Use --precision fp32 or bf16, without --pure.",
        )
    loss = case.model.training.loss if case.model.training else ""
    parted = strategy != "tp" or int(case.options.get("accumulate", 1)) > 1
    if parted and loss in _WHOLE_BATCH:
        return no(
            "distributed",
            f"the {loss} loss of {case.model.id} is of the whole batch, which parts of it do not"
            " give",
            "Use --strategy tp without --accumulate, or one process.",
        )
    return _not_split(case) if strategy == "tp" else None


def _shared_inference(case: Case, strategy: str) -> Support | None:
    """What of a model that several processes have parts of cannot be asked for."""
    if strategy != "tp":
        return no(
            "distributed",
            "processes that each infer a part of the batch exchange nothing: they are as many"
            " independent runs",
            "Use --strategy tp, or measure one process with its part of the batch.",
        )
    if case.procedure not in ("forward", "generate"):
        return no(
            "distributed",
            f"a step of {case.model.id} is of several models or passes, which are not split",
            "Measure one process.",
        )
    if case.precision == "int8":
        return no(
            "precision",
            "products that torchao has quantised are not split over processes",
            "Use --precision fp32 or bf16.",
        )
    return _not_split(case)


def _not_split(case: Case) -> Support | None:
    """Why tensor parallelism is not possible, where class and config of the model tell."""
    trains = case.mode is Mode.TRAINING
    spec = case.model.trained if trains else case.model
    instead = "--strategy ddp or fsdp2" if trains else "one process"
    if nothing_says_how(spec):
        return no(
            "tensor_parallel",
            f"nothing says how the products of {spec.id} are split over processes",
            f"Use {instead}.",
        )
    uneven = uneven_heads(spec, case.world_size)
    if uneven is None:
        return None
    name, count = uneven
    return no(
        "tensor_parallel",
        f"{name} of {spec.id} is {count}, which {case.world_size} processes cannot share evenly",
        f"Use another number of processes, or {instead}.",
    )


def _quantises(case: Case) -> Support | None:
    if case.mode is Mode.TRAINING:
        return no(
            "precision",
            "a model quantised to int8 is not trained",
            "Use --mode inference, or --precision bf16.",
        )
    if case.compiled:
        return no(
            "option",
            "torch.compile of a model quantised by torchao did not come to an end here",
            "Leave out --compile.",
        )
    return missing("pytorch", ("torchao",), "int8")


def _casts(case: Case) -> Support | None:
    """A program whose nodes name a type is in that one: others would meet it in its midst."""
    file = case.model.file
    if file is None or file.casts or case.precision not in ("fp16", "bf16"):
        return None
    if case.precision == file.precision:
        return None
    return no(
        "precision",
        f"nodes of {case.model.id} name a floating-point type, so that it is not cast to"
        f" {case.precision}",
        f"Export it in {case.precision}, use amp-{case.precision}, or let an engine convert it:"
        " --framework onnxruntime,openvino.",
    )


def _compiles(case: Case, device: Device) -> Support | None:
    """A way of torch.compile's, where it compiles and has something to go by."""
    mode = case.options.get(COMPILE_MODE)
    if mode is None:
        return None
    if not case.compiled:
        return no("option", f"pytorch.{COMPILE_MODE}={mode} is of torch.compile", "Add --compile.")
    if mode == "reduce-overhead" and device.hardware not in ("cuda", "rocm"):
        return no(
            "option",
            f"{mode} records the launches of a GPU, and there are none on {device.hardware}",
            f"Leave it out, or use pytorch.{COMPILE_MODE}=max-autotune.",
        )
    return None


def _generates(case: Case) -> Support | None:
    if not case.generates:
        return None
    if case.compiled and case.model.generation is not None:
        # Static shapes, as everywhere here: token after token would be other code.
        return no(
            "generation_compiled",
            "each new token reads a longer cache, and would be compiled anew",
            "Leave out --compile, or measure a forward pass with --new-tokens 0.",
        )
    return writes_nothing(case)
