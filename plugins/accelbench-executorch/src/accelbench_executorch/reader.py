"""What an ExecuTorch program is: its inputs and outputs, and what it computes in.

The engine checks a program's tables before it reads them. Imports torch and executorch: import this
module only in the process that looks at a file.
"""

from __future__ import annotations

import math
import struct
from importlib import import_module
from pathlib import Path
from typing import Any

import torch  # noqa: F401

from accelbench.models.file_models.given_inputs import values_of_type
from accelbench.models.file_models.kinds import FileRefusedError
from accelbench_executorch.program import MalformedProgramError, plan_of

# Loaded after torch, which it links to.
engine: Any = import_module("executorch.extension.pybindings._C")

METHOD = "forward"
#: Types by the numbers that torch has for them.
_TYPES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32",
    7: "float64", 11: "bool", 15: "bfloat16",
}  # fmt: skip
_FLOATS = {"float16": "fp16", "bfloat16": "bf16", "float64": "fp64"}
_AGAIN = "Lower the model again."


def look(path: Path) -> dict[str, Any]:
    """Describe a file; raise FileRefusedError if it is no whole program, or cannot be fed."""
    content = path.read_bytes()
    try:
        plan = plan_of(content)
        program = engine._load_program(
            str(path), program_verification=engine.Verification.InternalConsistency
        )
        named = [program.get_method_name(place) for place in range(program.num_methods())]
        if METHOD not in named:
            raise FileRefusedError(f"It has no method {METHOD}, but {', '.join(named)}.", _AGAIN)
        method = program.load_method(METHOD)
        meta = program.method_meta(METHOD)
        places = range(meta.num_inputs()), range(meta.num_outputs())
        inputs = [_tensor("in", place, meta.input_tensor_meta(place)) for place in places[0]]
        outputs = [_tensor("out", place, meta.output_tensor_meta(place)) for place in places[1]]
    except FileRefusedError:
        raise
    except (MalformedProgramError, struct.error) as error:
        raise FileRefusedError(f"It contradicts itself: {error}.", _AGAIN) from error
    except Exception as error:  # the engine's own, by version
        words = " ".join(str(error).split())
        raise FileRefusedError(
            f"ExecuTorch cannot read it: {words[:200].rstrip('.') or type(error).__name__}.",
            "Lower it again for the backends that are here.",
        ) from error
    del method
    if not plan.delegated and not plan.kernels:
        raise FileRefusedError("There is no operator in it: nothing would be measured.")
    floats = [entry["dtype"] for entry in (*inputs, *outputs) if "float" in entry["dtype"]]
    return {
        "inputs": [entry | values_of_type(entry["name"], entry["dtype"], None) for entry in inputs],
        "outputs": outputs,
        "weights": plan.weights,
        "precision": "int8" if plan.quantised else _FLOATS.get((floats or [""])[0], "fp32"),
        "operators": plan.inside + sum(plan.kernels.values()),
        "beside": [],
    }


def _tensor(prefix: str, place: int, info: Any) -> dict[str, Any]:
    """A tensor by its place, as programs name none."""
    dtype = _TYPES.get(int(info.dtype()), "")
    if not dtype or dtype == "bfloat16" or not math.prod(info.sizes()):
        raise FileRefusedError(
            f"What it takes and gives as {prefix}{place} is of a type that NumPy has not, or empty."
        )
    return {"name": f"{prefix}{place}", "dtype": dtype, "shape": list(map(int, info.sizes()))}
