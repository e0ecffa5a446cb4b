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
from accelbench.core.vocabulary import Belongs, Mode
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

#: Losses that a compiled step cannot hold, and why.
_NOT_COMPILED = {
    "detection": "its loss matches predictions to objects on the host, by SciPy, in every step",
    "ctc": "its loss takes the labels' lengths, which are values, as sizes",
}


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
        distributes=True,
        ranks="devices",
        isolation="fork",
        consumes="torch",
        generates=False,  # shapes are settled: each new token would be compiled anew
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
            **CARDS_IN_ORDER,
            **MODULES_QUIET,
        },
        title="JAX",
        engine_packages=("jax", "jaxlib"),
        packages=("flax", "keras"),
        dashes=(2, 3),
        place=3,
        reasons={"host_random": Belongs.CELL},
    )

    def probe(self) -> list[Device | Absent]:
        """The devices jax itself sees; runs in a throw-away process."""
        from accelbench.runtimes.jax.platforms import devices

        return devices()

    def supports(self, case: Case, device: Device) -> Support:
        name, trains = self.info.name, case.mode is Mode.TRAINING
        return (
            missing(name, ("jax", "torch"), "jax")
            or not_listed(name, case, self.info.precisions)
            or (_of_devices(case, device) if case.world_size > 1 else None)
            or not_an_option(name, case, MODULE_OPTIONS[case.mode] | _own_options(case))
            or _uncompiled(case)
            or (_trains(case) if trains else _generates(case))
            or SUPPORTED
        )

    def clock(self) -> Clock:
        return MonotonicClock()

    def open(self, job: Job) -> Session:
        from accelbench.runtimes.jax.session import JaxSession, ShardedSession

        session = ShardedSession if job.case.world_size > 1 else JaxSession
        return session(job, self.clock())


#: How several devices may share a step.
_STRATEGIES = ("ddp", "fsdp")
#: Platforms of which one process has several devices; a processor is shown as several.
_SEVERAL = ("cpu", "cuda", "rocm", "tpu")


def _own_options(case: Case) -> frozenset[str]:
    return frozenset({"strategy"}) if case.world_size > 1 else frozenset()


def _of_devices(case: Case, device: Device) -> Support | None:
    """What several devices cannot do together, of what one can."""
    if case.mode is not Mode.TRAINING:
        return no(
            "distributed",
            "the jax runtime shares out training alone",
            "Use --mode training, or --framework pytorch with --strategy tp.",
        )
    if device.hardware not in _SEVERAL:
        return no(
            "distributed",
            f"one process of JAX has one device of {device.hardware}",
            f"Use --hardware {', '.join(_SEVERAL)}.",
        )
    if (refused := no_such_sharing("jax", case, _STRATEGIES)) is not None:
        return refused
    if int(case.options.get("accumulate", 1)) > 1:
        return no(
            "distributed",
            "the jax runtime takes the whole of a batch at once",
            "Leave out --accumulate, or use a smaller batch.",
        )
    return None


def _uncompiled(case: Case) -> Support | None:
    if "compile" not in case.options or case.compiled:
        return None
    return no("option", "the jax runtime always compiles", "Leave out the option compile.")


def _generates(case: Case) -> Support | None:
    if not case.generates:
        return None
    # Shapes are settled here: each new token reads a longer cache, and would be compiled anew.
    return writes_nothing(case) or no(
        "generation",
        "the jax runtime does not generate token by token",
        "Measure a forward pass with --new-tokens 0, or use --framework pytorch.",
    )


def _trains(case: Case) -> Support | None:
    return not_trained("jax", case) or _not_compiled(case) or _half(case)


def _not_compiled(case: Case) -> Support | None:
    """What of a training step XLA cannot be given."""
    loss = case.model.training.loss if case.model.training else ""
    if loss in _NOT_COMPILED:
        return no(
            "loss",
            f"the jax runtime does not train {case.model.id}: {_NOT_COMPILED[loss]}",
            "Use --framework pytorch.",
        )
    if case.options.get("gradient_checkpointing"):
        # jax.checkpoint around the whole pass would save nothing: its parts are what counts.
        return no(
            "gradient_checkpointing",
            "the jax runtime has no gradient checkpointing: the graph that it is handed"
            " no longer knows the model's layers",
            "Leave out --gradient-checkpointing, or use a smaller batch.",
        )
    return None


def _half(case: Case) -> Support | None:
    """Half precision in training means autocast, unless it is pure."""
    if case.precision == "fp32" or case.options.get("pure"):
        return None
    return no(
        "autocast",
        f"training in {case.precision} means autocast, which JAX does not have",
        "Use --precision fp32, or --pure to train half-precision weights.",
    )
