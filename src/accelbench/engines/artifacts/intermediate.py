"""ONNX → OpenVINO IR, in fp32 or quantised by nncf."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.core.processes import keep_signal_stack
from accelbench.engines.artifacts.quantising import CALIBRATION_BATCHES, calibration, described
from accelbench.engines.artifacts.recipe import Manifest, Recipe
from accelbench.hardware.openvino import disable_telemetry

IR = "model.xml"
_LONGEST = 400
_NO_RULE = re.compile(r"No conversion rule found for operations: (.*)")
#: From so many bytes on, a graph is read as it is. Converting holds its weights up to twice
#: (4.2 GiB for 2.0), reading leaves them in their file (0.15 GiB); transposes then move into
#: products when the engine compiles.
_READ_FROM = 8 * 2**30


def told(error: Exception) -> str:
    """Return what an error of OpenVINO's says, without the places in its source."""
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [line for line in lines if line.strip(":") and not line.startswith("Exception from")]
    return " ".join(telling)[:_LONGEST] or type(error).__name__


@contextmanager
def _without_bars() -> Iterator[None]:
    # nncf draws progress bars, and has no switch for them. What a process printed last is shown as
    # its last words if it is killed. Errors are raised, not printed.
    with redirect_stdout(io.StringIO()):
        yield


@keep_signal_stack()
def convert(base: Path, manifest: Manifest, folder: Path) -> dict[str, Any]:
    """Write model.xml and model.bin, weights as they are: fp32."""
    disable_telemetry()
    import openvino

    graph = str(base / manifest.file)
    weights = sum(file.stat().st_size for file in base.iterdir())
    model = _converted(graph) if weights < _READ_FROM else openvino.Core().read_model(graph)
    _refuse_lost(model, manifest)
    openvino.save_model(model, str(folder / IR), compress_to_fp16=False)
    return {"file": IR}


def _converted(graph: str) -> Any:
    import openvino

    try:
        return openvino.convert_model(graph)
    except Exception as error:
        absent = _NO_RULE.search(str(error))
        if absent is None:
            raise
        raise UnsupportedError(
            "operator",
            f"OpenVINO has no operator {absent[1].strip()}",
            "Leave it out of the graph, or use another engine.",
        ) from error


def _refuse_lost(model: Any, manifest: Manifest) -> None:
    # Outputs that are sequences of tensors are lost by the conversion.
    names = {name for port in model.outputs for name in port.get_names()}
    for output in manifest.outputs:
        if output.file_name not in names:
            raise CaseError(
                "conversion_failed",
                f"OpenVINO's conversion has no output {output.file_name}: it is {output.dtype}"
                if output.dtype == "sequence"
                else f"OpenVINO's conversion has no output {output.file_name}",
                "Export the model with tensors as outputs, or use another engine.",
            )


def _opened(graph: Path) -> Any:
    import openvino

    if graph.suffix.lower() == ".xml":
        return openvino.Core().read_model(str(graph))
    return openvino.convert_model(str(graph))


def refuse_unquantised(model_id: str, operators: Iterable[str]) -> None:
    """Raise CaseError if nothing of a graph was quantised: it would be called int8, and is none."""
    if "FakeQuantize" not in operators:
        raise CaseError(
            "conversion_failed",
            f"nncf quantised nothing of {model_id}: it looks into no loop and no branch, and finds"
            " no product outside of them",
            "Measure it as it is stored, or quantise it before it is exported.",
        )


@keep_signal_stack()
def quantise(recipe: Recipe, base: Path, manifest: Manifest, folder: Path) -> dict[str, Any]:
    """Write a model whose products are int8, calibrated with seeded inputs."""
    disable_telemetry()
    import logging

    import nncf
    import openvino

    logging.getLogger("nncf").setLevel(logging.ERROR)
    batches = list(calibration(recipe, manifest))
    # Softmax and layer norms of transformers want care that convolutions do not.
    transformer = recipe.case.model.architecture.value != "vision" or bool(
        recipe.case.model.config.get("num_attention_heads")
    )

    def quantised(correct: bool) -> Any:
        return nncf.quantize(
            # Converted, not read: in a graph as it was exported most weights are behind a
            # transpose, where nncf does not see them. BERT's products then ran in fp32.
            _opened(base / manifest.file),
            nncf.Dataset(batches),
            subset_size=CALIBRATION_BATCHES,
            model_type=nncf.ModelType.TRANSFORMER if transformer else None,
            advanced_parameters=nncf.AdvancedQuantizationParameters(
                disable_bias_correction=not correct
            ),
        )

    corrected = True
    try:
        with _without_bars():
            model = quantised(correct=True)
    except ValueError:
        # nncf's correction of biases stumbles over convolutions of one channel each along time,
        # such as Mamba's; ranges and weights do not need it.
        corrected = False
        with _without_bars():
            model = quantised(correct=False)
    except RuntimeError as error:
        raise CaseError(
            "conversion_failed",
            f"{recipe.case.model.id} cannot be quantised by nncf: {told(error)}",
            "Other workarounds were tried, or --no-fix kept them from it.",
        ) from error
    refuse_unquantised(recipe.case.model.id, (op.get_type_name() for op in model.get_ops()))
    openvino.save_model(model, str(folder / IR), compress_to_fp16=False)
    items = next(iter(batches[0].values())).shape[0]
    return {
        "file": IR,
        "quantiser": described(
            "nncf post-training quantisation",
            len(batches),
            items,
            model_type="transformer" if transformer else "plain",
            bias_correction=corrected,
        ),
    }
