"""The pytorch runtime's card: readable without importing torch."""

from __future__ import annotations

from importlib.util import find_spec

from accelbench.core.case import Case
from accelbench.core.clock import Clock, MonotonicClock
from accelbench.core.protocols import (
    SUPPORTED,
    Absent,
    Device,
    Job,
    RuntimeInfo,
    Session,
    Support,
)
from accelbench.core.words import Mode

_HARDWARE = ("cpu", "cuda", "rocm", "mps")
_OPTIONS = frozenset({"compile", "threads"})
_TRAINING_OPTIONS = frozenset({"optimizer", "gradient_checkpointing", "pure"})
_OPTIMIZERS = ("adamw", "sgd")


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
            # NVML counts devices in this order; CUDA's own default puts the fastest first,
            # and cuda:1 would then be another card than the one that was named.
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "TRANSFORMERS_VERBOSITY": "error",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "TOKENIZERS_PARALLELISM": "false",
        },
        spills=True,
    )

    def probe(self) -> list[Device | Absent]:
        """The devices torch itself sees; runs in a throw-away process."""
        from accelbench.runtimes.pytorch.probe import devices

        return devices()

    def supports(self, case: Case, device: Device) -> Support:
        if find_spec("torch") is None:
            return Support(
                ok=False,
                reason="package_missing",
                message="the pytorch runtime needs the package torch, which is not installed",
                advice="Install it with: pip install 'accelbench[torch]'",
            )
        if case.precision not in self.info.precisions:
            return Support(
                ok=False,
                reason="precision",
                message=f"the pytorch runtime does not run {case.precision}",
                advice=f"It runs {', '.join(self.info.precisions)}.",
            )
        if case.precision == "int8":
            refused = _quantises(case)
            if refused is not None:
                return refused
        trains = case.mode is Mode.TRAINING
        options = _OPTIONS | _TRAINING_OPTIONS if trains else _OPTIONS
        unknown = set(case.options) - options
        if unknown:
            return Support(
                ok=False,
                reason="option",
                message=f"the pytorch runtime has no option {', '.join(sorted(unknown))}"
                f" in {case.mode.value}",
                advice=f"It has {', '.join(sorted(options))}.",
            )
        if trains:
            return _trains(case)
        return _generates(case) if case.generates else SUPPORTED

    def clock(self) -> Clock:
        return MonotonicClock()

    def open(self, job: Job) -> Session:
        from accelbench.runtimes.pytorch.session import PytorchSession

        return PytorchSession(job, self.clock())


def _quantises(case: Case) -> Support | None:
    if case.mode is Mode.TRAINING:
        return Support(
            ok=False,
            reason="precision",
            message="a model quantised to int8 is not trained",
            advice="Use --mode inference, or --precision bf16.",
        )
    if case.compiled:
        return Support(
            ok=False,
            reason="option",
            message="torch.compile of a model quantised by torchao did not come to an end here",
            advice="Leave out --compile.",
        )
    if find_spec("torchao") is None:
        return Support(
            ok=False,
            reason="package_missing",
            message="int8 in PyTorch needs the package torchao, which is not installed",
            advice="Install it with: pip install 'accelbench[int8]'",
        )
    return None


def _trains(case: Case) -> Support:
    if case.model.training is None:
        return Support(
            ok=False,
            reason="no_training",
            message=f"the catalogue does not say how {case.model.id} is trained",
            advice="Use --mode inference.",
        )
    optimizer = case.options.get("optimizer", "adamw")
    if optimizer not in _OPTIMIZERS:
        return Support(
            ok=False,
            reason="option",
            message=f"the pytorch runtime does not train with the optimizer {optimizer}",
            advice=f"It trains with {' or '.join(_OPTIMIZERS)}.",
        )
    if case.options.get("pure") and case.precision not in ("fp16", "bf16"):
        return Support(
            ok=False,
            reason="option",
            message=f"pure training is of half-precision weights, and {case.precision} has none",
            advice="Use --precision bf16 or fp16, or leave out --pure.",
        )
    return SUPPORTED


def _generates(case: Case) -> Support:
    if case.model.generation is None:
        return Support(
            ok=False,
            reason="no_generation",
            message=f"{case.model.id} does not generate text",
            advice="Leave out --new-tokens.",
        )
    if case.compiled:
        # Static shapes, as everywhere here: token after token would be other code.
        return Support(
            ok=False,
            reason="generation_compiled",
            message="each new token reads a longer cache, and would be compiled anew",
            advice="Leave out --compile, or measure a forward pass with --new-tokens 0.",
        )
    return SUPPORTED
