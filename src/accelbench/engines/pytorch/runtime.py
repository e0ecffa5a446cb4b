"""The pytorch runtime's card: readable without importing torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accelbench.core.case import Case
from accelbench.core.model import ModelSpec
from accelbench.core.option_types import RuntimeOption
from accelbench.core.protocols import Absent, Device, Job, RuntimeInfo, Session, Support
from accelbench.core.vocabulary import Belongs, Mode
from accelbench.engines.shared.engine import Engine
from accelbench.engines.shared.names import CARDS_IN_ORDER, MODULES_QUIET
from accelbench.engines.shared.refusals import (
    MODULE_OPTIONS,
    missing,
    no_such_sharing,
    not_an_option,
    not_listed,
    not_trained,
    refuse,
    writes_nothing,
)

_HARDWARE = ("cpu", "cuda", "rocm", "mps")
#: Of torch.compile: what it is told by, and what it may be told.
COMPILE_MODE = "compile_mode"
COMPILE_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class PytorchRuntime(Engine):
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
        preload=("torch", "transformers.modeling_utils", "accelbench.engines.pytorch.session"),
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

    needs = ("torch",)

    def probe(self) -> list[Device | Absent]:
        from accelbench.engines.pytorch.places import devices

        return devices()

    def refusals(self, case: Case, device: Device) -> Iterator[Support | None]:
        name, trains = self.info.name, case.mode is Mode.TRAINING
        yield from super().refusals(case, device)
        yield not_listed(name, case, self.info.precisions)
        if case.precision == "int8":
            yield from _of_int8(case)
        yield _casts(case)
        own = {COMPILE_MODE, *(_OF_RANKS if case.world_size > 1 else ())}
        # Micro-batches are of training alone.
        own -= set() if trains else {"accumulate"}
        yield not_an_option(name, case, MODULE_OPTIONS[case.mode] | own)
        yield _compiles(case, device)
        if trains:
            yield not_trained(name, case)
        elif case.generates:
            if case.compiled and case.model.generation is not None:
                # Static shapes, as everywhere here: token after token would be other code.
                yield refuse("generation_compiled")
            yield writes_nothing(case)
        if case.world_size > 1:
            yield from _of_processes(case, device)

    def open(self, job: Job) -> Session:
        if job.case.world_size > 1:
            from accelbench.engines.pytorch.distributed.session import DistributedSession

            return DistributedSession(job)
        from accelbench.engines.pytorch.session import PytorchSession

        return PytorchSession(job, self.clock())


_STRATEGIES = ("ddp", "fsdp2", "tp")
#: What may be asked if several processes share a step.
_OF_RANKS = frozenset({"strategy", "accumulate"})
#: Losses of a whole batch: parts of it have others, whose mean is not the batch's.
_WHOLE_BATCH = frozenset({"contrastive"})


def _of_processes(case: Case, device: Device) -> Iterator[Support | None]:
    yield no_such_sharing("pytorch", case, _STRATEGIES)
    strategy = str(case.options.get("strategy", _STRATEGIES[0]))
    if device.hardware not in ("cpu", "cuda", "rocm"):
        yield refuse("distributed/no_backend", hardware=device.hardware)
    if case.compiled:
        yield refuse("option/compiled_ranks")
    if case.mode is Mode.TRAINING:
        if case.precision == "fp16" or case.options.get("pure"):
            yield refuse("precision/half_ranks")
        loss = case.model.training.loss if case.model.training else ""
        parted = strategy != "tp" or int(case.options.get("accumulate", 1)) > 1
        if parted and loss in _WHOLE_BATCH:
            yield refuse("distributed/whole_batch", loss=loss, model=case.model.id)
    else:
        if strategy != "tp":
            yield refuse("distributed/independent")
        if case.procedure not in ("forward", "generate"):
            yield refuse("distributed/several_passes", model=case.model.id)
        if case.precision == "int8":
            yield refuse("precision/int8_ranks")
    if strategy == "tp":
        yield _not_split(case)


def _not_split(case: Case) -> Support | None:
    trains = case.mode is Mode.TRAINING
    spec = case.model.training_variant if trains else case.model
    instead = "--strategy ddp or fsdp2" if trains else "one process"
    if nothing_says_how(spec):
        return refuse("tensor_parallel", model=spec.id, instead=instead)
    uneven = uneven_heads(spec, case.world_size)
    if uneven is None:
        return None
    facts = {"name": uneven[0], "count": uneven[1], "processes": case.world_size}
    return refuse("tensor_parallel/uneven", model=spec.id, instead=instead, **facts)


def _of_int8(case: Case) -> Iterator[Support | None]:
    if case.mode is Mode.TRAINING:
        yield refuse("precision/int8_training")
    if case.compiled:
        yield refuse("option/int8_compiled")
    yield missing("pytorch", ("torchao",), "int8")


def _casts(case: Case) -> Support | None:
    """Refuse another type of a program whose nodes name one: they would meet it in its midst."""
    file = case.model.file
    if file is None or file.casts or case.precision not in ("fp16", "bf16"):
        return None
    if case.precision == file.precision:
        return None
    return refuse("precision/named_types", model=case.model.id, precision=case.precision)


def _compiles(case: Case, device: Device) -> Support | None:
    mode = case.options.get(COMPILE_MODE)
    if mode is None:
        return None
    if not case.compiled:
        return refuse("option/compile_mode", option=COMPILE_MODE, mode=mode)
    if mode == "reduce-overhead" and device.hardware not in ("cuda", "rocm"):
        facts = {"option": COMPILE_MODE, "hardware": device.hardware}
        return refuse("option/no_gpu", mode=mode, **facts)
    return None


#: Beginnings of the names of classes of transformers that bring no plan of columns and rows, and
#: whose blocks are none of the layouts that ours knows. Clap's audio tower adds a bias for each
#: head, which would not be split.
_NOT_SPLIT = (
    "CLIP", "Clap", "Detr", "GPT2", "Mamba", "Mixtral", "ResNet", "T5", "ViT",
    "VisionEncoderDecoder", "Wav2Vec2", "Whisper", "XCLIP",
)  # fmt: skip
_NETWORKS = (".networks.detr:", ".networks.diffusion:")
_HEADS = ("num_attention_heads", "n_heads", "num_key_value_heads")


def nothing_says_how(spec: ModelSpec) -> bool:
    """Return whether no plan splits a model's products, by its class and config alone.

    It is asked while a run is planned, when no engine is imported: what is refused here is refused
    before its one-process baseline is measured. Of classes that are not named here the ranks say it
    (`parallel.tensor_parallel`), as only their modules tell.
    """
    if spec.builder.startswith(_NETWORKS):
        return True
    source, _, name = spec.builder.partition(":")
    return source == "transformers" and name.startswith(_NOT_SPLIT)


def uneven_heads(spec: ModelSpec, processes: int) -> tuple[str, int] | None:
    """Return the count of heads that processes cannot share evenly, with its name."""
    text: Any = spec.config.get("text_config")
    for config in (spec.config, text if isinstance(text, dict) else {}):
        for name in _HEADS:
            count = config.get(name)
            if isinstance(count, int) and count % processes:
                return name, count
    return None
