"""The jax runtime's card: readable without importing jax or torch."""

from __future__ import annotations

from collections.abc import Iterator

from accelbench.core.case import Case
from accelbench.core.protocols import Absent, Device, Job, RuntimeInfo, Session, Support
from accelbench.core.vocabulary import Belongs, Mode
from accelbench.engines.shared.engine import Engine
from accelbench.engines.shared.names import CARDS_IN_ORDER, MODULES_QUIET
from accelbench.engines.shared.refusals import (
    MODULE_OPTIONS,
    no_such_sharing,
    not_an_option,
    not_listed,
    not_trained,
    refuse,
    writes_nothing,
)

#: Losses that a compiled step cannot hold, and why.
_NOT_COMPILED = {
    "detection": "its loss matches predictions to objects on the host, by SciPy, in every step",
    "ctc": "its loss takes the labels' lengths, which are values, as sizes",
}


class JaxRuntime(Engine):
    """Compiles torch modules through XLA, ahead of the first step.

    The option `compile` changes nothing: what runs is compiled with it and without it.
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
        preload=("torch", "transformers.modeling_utils", "jax", "accelbench.engines.jax.session"),
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

    needs = ("jax", "torch")

    def probe(self) -> list[Device | Absent]:
        from accelbench.engines.jax.platforms import devices

        return devices()

    def refusals(self, case: Case, device: Device) -> Iterator[Support | None]:
        name = self.info.name
        yield from super().refusals(case, device)
        yield not_listed(name, case, self.info.precisions)
        shared = case.world_size > 1
        if shared:
            yield from _of_devices(case, device)
        own = {"strategy"} if shared else set()
        yield not_an_option(name, case, MODULE_OPTIONS[case.mode] | own)
        if "compile" in case.options and not case.compiled:
            yield refuse("option/always_compiled")
        if case.mode is Mode.TRAINING:
            yield not_trained(name, case)
            yield from _of_training(case)
        elif case.generates:
            # Shapes are settled here: each new token reads a longer cache, and would be compiled
            # anew.
            yield writes_nothing(case) or refuse("generation/compiled")

    def open(self, job: Job) -> Session:
        from accelbench.engines.jax.session import JaxSession, ShardedSession

        session = ShardedSession if job.case.world_size > 1 else JaxSession
        return session(job, self.clock())


#: How several devices may share a step.
_STRATEGIES = ("ddp", "fsdp")
#: Platforms of which one process has several devices; a processor is shown as several.
_SEVERAL = ("cpu", "cuda", "rocm", "tpu")


def _of_devices(case: Case, device: Device) -> Iterator[Support | None]:
    if case.mode is not Mode.TRAINING:
        yield refuse("distributed/training_only")
    if device.hardware not in _SEVERAL:
        known = ", ".join(_SEVERAL)
        yield refuse("distributed/one_device", hardware=device.hardware, known=known)
    yield no_such_sharing("jax", case, _STRATEGIES)
    if int(case.options.get("accumulate", 1)) > 1:
        yield refuse("distributed/accumulate")


def _of_training(case: Case) -> Iterator[Support | None]:
    loss = case.model.training.loss if case.model.training else ""
    if loss in _NOT_COMPILED:
        yield refuse("loss", model=case.model.id, why=_NOT_COMPILED[loss])
    if case.options.get("gradient_checkpointing"):
        # jax.checkpoint around the whole pass would save nothing: its parts are what counts.
        yield refuse("gradient_checkpointing")
    # Half precision in training means autocast, unless it is pure.
    if case.precision != "fp32" and not case.options.get("pure"):
        yield refuse("autocast", precision=case.precision)
