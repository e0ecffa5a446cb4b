"""The jax runtime's card: readable without importing jax or torch."""

from __future__ import annotations

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
from accelbench.runtimes.refusals import missing, no

_OPTIONS = frozenset({"compile", "threads"})
_TRAINING_OPTIONS = frozenset({"optimizer", "gradient_checkpointing", "pure"})
_OPTIMIZERS = ("adamw", "sgd")

#: Losses that a compiled step cannot hold, and why.
_NOT_COMPILED = {
    "detection": "its loss matches predictions to objects on the host, by SciPy, in every step",
    "ctc": "its loss takes the labels' lengths, which are values, as sizes",
}
_ELSEWHERE = "Use --framework pytorch."


class JaxRuntime:
    """Compiles torch modules through XLA, ahead of the first step.

    The option `compile` is accepted, and changes nothing: what runs is compiled with
    it and without it. Asked not to compile, it says that it cannot.
    """

    info = RuntimeInfo(
        name="jax",
        hardware=("cpu", "cuda", "rocm", "tpu", "mps"),
        package="jax",
        extra="jax",
        default_for=("tpu",),
        precisions=("fp32", "fp16", "bf16"),
        compiles=True,
        isolation="fork",
        consumes="torch",
        # Imported, and nothing asked of them: `jax.devices` here would start XLA's threads.
        preload=(
            "torch",
            "transformers.modeling_utils",
            "jax",
            "accelbench.runtimes.jax.session",
        ),
        environment={
            # Three quarters of a GPU's memory would be taken at once, and be nobody's need.
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            # Each launch compiles for itself: a cache on disk would turn every second
            # compilation into a file read and call it the same thing.
            "JAX_ENABLE_COMPILATION_CACHE": "false",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            # NVML counts devices in this order; CUDA's own default puts the fastest first,
            # and cuda:1 would then be another card than the one that was named.
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "TRANSFORMERS_VERBOSITY": "error",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "TOKENIZERS_PARALLELISM": "false",
        },
    )

    def probe(self) -> list[Device | Absent]:
        """The devices jax itself sees; runs in a throw-away process."""
        from accelbench.runtimes.jax.probe import devices

        return devices()

    def supports(self, case: Case, device: Device) -> Support:
        absent = missing(self.info.name, ("jax", "torch"), "jax")
        if absent is not None:
            return absent
        if case.precision not in self.info.precisions:
            return no(
                "precision",
                f"the jax runtime does not run {case.precision}",
                f"It runs {', '.join(self.info.precisions)}.",
            )
        trains = case.mode is Mode.TRAINING
        options = _OPTIONS | _TRAINING_OPTIONS if trains else _OPTIONS
        unknown = set(case.options) - options
        if unknown:
            return no(
                "option",
                f"the jax runtime has no option {', '.join(sorted(unknown))} in {case.mode.value}",
                f"It has {', '.join(sorted(options))}.",
            )
        if "compile" in case.options and not case.compiled:
            return no("option", "the jax runtime always compiles", "Leave out the option compile.")
        if trains:
            return _trains(case)
        return _generates(case) if case.generates else SUPPORTED

    def clock(self) -> Clock:
        return MonotonicClock()

    def open(self, job: Job) -> Session:
        from accelbench.runtimes.jax.session import JaxSession

        return JaxSession(job, self.clock())


def _generates(case: Case) -> Support:
    if case.model.generation is None:
        return no(
            "no_generation", f"{case.model.id} does not generate text", "Leave out --new-tokens."
        )
    # Shapes are settled here: each new token reads a longer cache, and would be compiled anew.
    return no(
        "generation",
        "the jax runtime does not generate token by token",
        "Measure a forward pass with --new-tokens 0, or use --framework pytorch.",
    )


def _trains(case: Case) -> Support:
    how = case.model.training
    if how is None:
        return no(
            "no_training",
            f"the catalogue does not say how {case.model.id} is trained",
            "Use --mode inference.",
        )
    if how.loss in _NOT_COMPILED:
        return no(
            "loss",
            f"the jax runtime does not train {case.model.id}: {_NOT_COMPILED[how.loss]}",
            _ELSEWHERE,
        )
    optimizer = case.options.get("optimizer", "adamw")
    if optimizer not in _OPTIMIZERS:
        return no(
            "option",
            f"the jax runtime does not train with the optimizer {optimizer}",
            f"It trains with {' or '.join(_OPTIMIZERS)}.",
        )
    if case.options.get("gradient_checkpointing"):
        # jax.checkpoint around the whole pass would save nothing: its parts are what counts.
        return no(
            "gradient_checkpointing",
            "the jax runtime has no gradient checkpointing: the graph that it is handed"
            " no longer knows the model's layers",
            "Leave out --gradient-checkpointing, or use a smaller batch.",
        )
    return _narrow(case)


def _narrow(case: Case) -> Support:
    """Half precision in training means autocast, unless it is pure."""
    narrow = case.precision != "fp32"
    if narrow and not case.options.get("pure"):
        return no(
            "autocast",
            f"training in {case.precision} means autocast, which JAX does not have",
            "Use --precision fp32, or --pure to train half-precision weights.",
        )
    if case.options.get("pure") and not narrow:
        return no(
            "option",
            f"pure training is of half-precision weights, and {case.precision} has none",
            "Use --precision bf16 or fp16, or leave out --pure.",
        )
    return SUPPORTED
