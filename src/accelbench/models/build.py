"""Building a model: seeded random weights, a local folder, or the hub. Imports torch on use."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import CaseError, MissingExtraError
from accelbench.core.model import SENTENCE_ENCODER, ModelCode, ModelFile, ModelSpec

if TYPE_CHECKING:
    import torch

RANDOM = "random"
HUB = "hub"


@dataclass(frozen=True)
class Built:
    """A model, and the digest of the fp32 weights that it was made from."""

    module: torch.nn.Module
    digest: str


def build(
    spec: ModelSpec, seed: int, weights: str = RANDOM, trust_remote_code: bool = False
) -> torch.nn.Module:
    """Build a model in fp32 on the CPU, in evaluation mode; arguments as `build_module`."""
    return build_module(spec, seed, weights, trust_remote_code).module


def build_module(
    spec: ModelSpec,
    seed: int,
    weights: str = RANDOM,
    trust_remote_code: bool = False,
    dtype: torch.dtype | None = None,
    spill: Path | None = None,
) -> Built:
    """Build a model on the CPU, in evaluation mode.

    `seed` decides random weights: the same bits for the same torch on the same kind of CPU.
    `weights` is "random", "hub" (the first hub id), or a folder with config.json and safetensors.
    The bits of `dtype` (None is fp32) are those of the fp32 model cast, but random weights never
    all exist in fp32: 7 billion take 13 GiB, not 27. `spill` is a folder on a disk: random weights
    are mapped to a file there and take no memory, so nothing of it may be timed.

    Raises MissingExtraError without torch or transformers, and CaseError if the weights are
    unavailable, unsafe, incomplete, or another model's.
    """
    if spec.user_source is not None and weights != RANDOM:
        what = "a file" if spec.code is None else "code"
        raise CaseError(
            "weights_unavailable",
            f"{spec.id} is {what}, which brings its weights.",
            "Leave out --weights.",
        )
    if spec.code is not None:
        return _build_from_code(spec, seed, dtype)
    if spec.file is not None:
        return _load_program(spec, dtype)
    if weights == RANDOM:
        construct = constructor(spec)
        from accelbench.models.initial import initialise

        module, digest = initialise(construct, seed, dtype, spill)
    else:
        from accelbench.models.narrow import Narrowing
        from accelbench.models.weights import from_folder, from_hub

        if spec.builder == SENTENCE_ENCODER:
            from accelbench.models.networks.sentence import load_sentence_encoder

            module = load_sentence_encoder(spec, weights, trust_remote_code, transformers_class)
        elif weights == HUB:
            module = from_hub(spec, transformers_class(spec), trust_remote_code)
        else:
            module = from_folder(spec, transformers_class(spec), weights, trust_remote_code)
        digest = Narrowing(module, dtype).finish()
    return Built(module.eval(), digest)


def _build_from_code(spec: ModelSpec, seed: int, dtype: torch.dtype | None) -> Built:
    assert spec.code is not None
    import torch

    from accelbench.models.code_models.loading import seed_all
    from accelbench.models.narrow import Narrowing, in_precision

    with torch.random.fork_rng(devices=[]):
        seed_all(seed)
        module = constructor(spec)()
    digest = hashlib.sha256((spec.code.digest + Narrowing(module, dtype).finish()).encode())
    if dtype is None:  # inputs are of fp32 then, whatever its owner stored
        module = in_precision(module, torch.float32)
    return Built(module.eval(), digest.hexdigest()[:16])


def _load_program(spec: ModelSpec, dtype: torch.dtype | None) -> Built:
    module = constructor(spec)()
    import torch

    from accelbench.models.narrow import Narrowing

    dtype = dtype or torch.float32
    digest = Narrowing(module, dtype).finish()
    return Built(module.to(dtype).eval(), digest)


def skeleton(spec: ModelSpec) -> torch.nn.Module:
    """Return the model on torch's meta device: every shape, no values, no memory."""
    construct = constructor(spec)
    import torch

    with torch.device("meta"):
        return construct().eval()


def parameter_count(module: torch.nn.Module) -> int:
    """Return the number of weights; a shared one counts once."""
    return sum(parameter.numel() for parameter in module.parameters())


def constructor(spec: ModelSpec) -> Callable[[], torch.nn.Module]:
    """Return a function that constructs the model from its config, with its imports done.

    A builder is "transformers:Class", or "package.module:function", called with the config.
    """
    if spec.builder.startswith("transformers:"):
        model_class = transformers_class(spec)
        return lambda: model_class(model_class.config_class(**spec.config))
    code = spec.code
    if code is not None:
        return partial(_load_user_module, code)
    if spec.file is not None:
        return partial(_program_of, spec.file)
    where, _, name = spec.builder.partition(":")
    try:
        function = getattr(import_module(where, "accelbench.models"), name)
    except (ImportError, AttributeError) as error:
        raise CaseError(
            "builder_missing",
            f"The builder {spec.builder} of {spec.id} cannot be loaded: {error}.",
            "Install the package that brings it.",
        ) from error
    return lambda: function(**spec.config)


def _program_of(file: ModelFile) -> torch.nn.Module:
    _require_torch(("torch",))
    from accelbench.models.file_models.exported_archive import open_archive
    from accelbench.models.file_models.exported_module import ExportedModule
    from accelbench.models.file_models.kinds import FileRefusedError
    from accelbench.models.file_models.unchanged import refuse_changed

    refuse_changed(file)
    try:
        return ExportedModule(open_archive(Path(file.path)))
    except FileRefusedError as error:
        raise CaseError("operator", error.message, error.advice) from error


def _load_user_module(code: ModelCode) -> torch.nn.Module:
    from accelbench.models.code_models.loading import load
    from accelbench.models.losses import bring

    loaded = load(code)
    module: torch.nn.Module = loaded.subject
    if loaded.loss is not None:
        bring(module, loaded.loss)
    return module


def transformers_class(spec: ModelSpec) -> Any:
    """Return the model's class of transformers, if it has one, and silence that package."""
    origin, _, name = spec.builder.partition(":")
    if origin != "transformers":
        raise CaseError(
            "weights_unavailable",
            f"{spec.id} is not a model of transformers: it has random weights only.",
            "Leave out --weights.",
        )
    _require_torch()
    # Where torchao is installed transformers imports it, and it tells of every kernel of a GPU
    # that this machine has not.
    for talkative in ("torchao", "torch.utils._pytree"):
        logging.getLogger(talkative).setLevel(logging.ERROR)
    import transformers

    # Its progress bars and hints would land between the lines of our own output.
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model_class = getattr(transformers, name, None)
    if model_class is None:
        raise CaseError(
            "builder_missing",
            f"transformers {transformers.__version__} has no {name}.",
            "Install a version within accelbench's bounds: accelbench setup torch",
        )
    return model_class


def _require_torch(packages: tuple[str, ...] = ("torch", "transformers")) -> None:
    for package in packages:
        try:
            import_module(package)
        except ModuleNotFoundError as error:
            raise MissingExtraError(package, "torch", "Building a model") from error
