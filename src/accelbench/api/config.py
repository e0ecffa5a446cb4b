"""`BenchmarkConfig`: the guide's parameters and defaults, checked, and what they mean here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelbench.core.case import Shapes
from accelbench.core.errors import AccelbenchError, UsageError
from accelbench.core.model import ModelSpec
from accelbench.core.precision import parse_precision
from accelbench.core.run_options import run_fields
from accelbench.core.safe_text import in_quotes
from accelbench.engines.shared.names import runtime_named
from accelbench.hardware.detect import parse_platform, refuse_unknown_platform
from accelbench.models.find import find
from accelbench.models.inputs import settle
from accelbench.run.plan.request import DEFAULT_BATCH_SIZES

SYNTHETIC = "synthetic"
#: The guide: "Minimum: 50 iterations".
FEWEST_ITERATIONS = 50


@dataclass
class BenchmarkConfig:
    """What to measure: the guide's parameters, its defaults included.

    Attributes:
        framework: 'pytorch', 'jax' or any other runtime, as --framework takes it: 'onnx', 'torch' …
        model_name: A name of the catalogue: 'resnet50', 'vit_b_16', 'bert' …
        device_prefer: 'cuda', 'gpu', 'cpu', 'tpu' …; None takes the best one present. A
            device that is named and absent gives unsupported results, never another device.
        batch_sizes: Items in one step, a result each.
        warmup_iterations: Steps before the measured ones.
        measurement_iterations: Measured steps; fewer than 50 are warned of in the results.
        input_shape: (C, H, W) for images, (sequence,) for text, with the batch before it
            or without; None takes the model's own.
        dtype: 'float32', 'float16' or 'bfloat16'; pure, not autocast.
        data_source: 'synthetic', or the path of real inputs, such as ImageNet-100.
        csv_output_dir: Where the CSV goes; made where it is missing.
        verbose: Whether progress is printed.
    """

    framework: str = "pytorch"
    model_name: str = "resnet50"
    device_prefer: str | None = None
    batch_sizes: Sequence[int] = field(default_factory=lambda: list(DEFAULT_BATCH_SIZES))
    warmup_iterations: int = 10
    measurement_iterations: int = 50
    input_shape: Sequence[int] | None = None
    dtype: str = "float32"
    data_source: str | os.PathLike[str] = SYNTHETIC
    csv_output_dir: str | os.PathLike[str] = "results/raw"
    verbose: bool = True

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse what cannot be meant.

        Said once when the config is made and again when it is run, since a
        field can be set in between. Whether `data_source` is there is only
        asked when it runs: a config may be written before the data is.
        """
        runtime_named(_text("framework", self.framework), "framework")
        spec = self.spec
        if self.device_prefer is not None:
            refuse_unknown_platform(_text("device_prefer", self.device_prefer))
        check_counts("batch_sizes", self.batch_sizes, least=1)
        check_count("warmup_iterations", self.warmup_iterations, least=0)
        check_count("measurement_iterations", self.measurement_iterations, least=1)
        parse_precision(_text("dtype", self.dtype))
        _text("data_source", self.data_source)
        _text("csv_output_dir", self.csv_output_dir)
        if self.input_shape is not None:
            _check_fits(spec, self)

    @property
    def runtime(self) -> str:
        """The runtime behind the framework's name, of which some have several."""
        return runtime_named(self.framework, "framework")

    @property
    def platform(self) -> str | None:
        """The platform that is asked for; of gpu the one that is here."""
        return None if self.device_prefer is None else parse_platform(str(self.device_prefer))

    @property
    def spec(self) -> ModelSpec:
        """The catalogue's model behind the name."""
        return find(_text("model_name", self.model_name))

    @property
    def precision(self) -> str:
        """The dtype as it is stored: fp32, fp16, bf16."""
        return parse_precision(self.dtype)

    @property
    def shapes(self) -> Shapes:
        """The sizes that `input_shape` says, without the batch."""
        return _shapes(self.spec, self.input_shape, self.batch_sizes)

    @property
    def data(self) -> str | None:
        """The full path of real inputs that are there; None for synthetic ones."""
        if str(self.data_source) == SYNTHETIC:
            return None
        path = Path(self.data_source).expanduser().absolute()
        if not path.exists():
            raise UsageError(
                f"There is no data at {os.fspath(self.data_source)}.",
                "Set data_source to a path that is there, or to 'synthetic'.",
            )
        return str(path)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)) or not str(value):
        raise UsageError(f"{name} takes a name, not {in_quotes(value)}.")
    return str(value)


def check_count(name: str, value: Any, least: int) -> None:
    """Refuse what is no whole number, or a smaller one."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UsageError(
            f"{name} takes a whole number of at least {least}, not {in_quotes(value)}."
        )


def check_settings(values: Mapping[str, Any]) -> None:
    """Refuse settings of a run that are not whole numbers in their range; None is a default."""
    for known in run_fields():
        value = values.get(known.name)
        if known.kind != "number" or known.several or value is None:
            continue
        check_count(known.name, value, known.least or 0)
        if known.most is not None and value > known.most:
            raise UsageError(f"{known.name} takes a whole number up to {known.most}, not {value}.")


def check_counts(name: str, values: Any, least: int) -> None:
    """Refuse what is no list of such numbers."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise UsageError(f"{name} takes a list of whole numbers, not {in_quotes(values)}.")
    if not list(values):
        raise UsageError(f"{name} is empty.", "Name at least one.")
    for value in values:
        check_count(name, value, least)


def _shapes(spec: ModelSpec, wanted: Sequence[int] | None, batches: Sequence[int]) -> Shapes:
    """What a shape means for a model: an image's side, or a sequence's length."""
    if wanted is None:
        return Shapes(batch=1)
    check_counts("input_shape", wanted, least=1)
    *before, last = sizes = tuple(wanted)
    if len(sizes) in (3, 4):
        channels, height = before[-2:]
        fed = next((i.shape for i in spec.inputs if i.shape[-2:] == ("image", "image")), None)
        if fed is None or spec.image is None:
            raise _unfit(spec, sizes, "takes no images")
        if fed[-3] != channels:
            raise _unfit(spec, sizes, f"takes images of {fed[-3]} channels")
        if height != last:
            raise _unfit(spec, sizes, "takes square images")
        _check_batch(sizes[:-3], sizes, batches)
        return Shapes(batch=1, image=last)
    if len(sizes) in (1, 2):
        if spec.sequence is None:
            raise _unfit(spec, sizes, "takes no sequences")
        _check_batch(before, sizes, batches)
        return Shapes(batch=1, sequence=last)
    raise _unfit(spec, sizes, "takes (C, H, W) or (sequence,), with the batch before it or without")


def _check_batch(given: Sequence[int], sizes: tuple[int, ...], batches: Sequence[int]) -> None:
    if given and given[0] not in batches:
        raise UsageError(
            f"input_shape {sizes} begins with a batch of {given[0]}, which batch_sizes has not.",
            "Leave the batch out of input_shape: batch_sizes says it.",
        )


def _unfit(spec: ModelSpec, sizes: tuple[int, ...], why: str) -> UsageError:
    return UsageError(
        f"input_shape {sizes} does not fit: {spec.id} {why}.",
        "Leave it out to use the model's own.",
    )


def _check_fits(spec: ModelSpec, config: BenchmarkConfig) -> None:
    shapes = config.shapes
    try:
        settle(spec, shapes)
    except UsageError:
        raise
    except AccelbenchError as error:
        raise UsageError(
            f"input_shape {tuple(config.input_shape or ())} does not fit: {error.message}",
            "Leave it out to use the model's own.",
        ) from error
