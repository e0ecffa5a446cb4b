"""A TensorFlow Lite model opened in LiteRT, run, and asked who computed what.

Inputs are written before every step: an input's place may be used again for what is made of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from accelbench.core.clock import Clock
from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.core.precision import weight_types
from accelbench.core.protocols import Evidence, Job
from accelbench.engines.shared.arrays import ArraySession
from accelbench.engines.shared.engine import engine_error
from accelbench.engines.shared.local import listed
from accelbench.models.file_models.tflite_file import PRODUCTS

_DEFAULT = "xnnpack"
_RESOLVERS = {
    _DEFAULT: OpResolverType.BUILTIN,
    "builtin": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "reference": OpResolverType.BUILTIN_REF,
}
_DELEGATE = "DELEGATE"
_NO_OPERATOR = ("Encountered unresolved custom op", "Didn't find op for builtin opcode")

Places = Mapping[str, int]


class LitertSession(ArraySession):
    """One model by one set of kernels."""

    def __init__(self, job: Job, clock: Clock) -> None:
        self._kernels = str(job.case.options.get("kernels", _DEFAULT))
        self._interpreter: Any = None
        self._sizes: tuple[tuple[int, ...], ...] = ()
        super().__init__(job, clock)

    def _open(self) -> None:
        threads = self._job.settings.threads
        try:
            self._interpreter = Interpreter(
                model_path=str(self.model_path),
                num_threads=threads,
                experimental_op_resolver_type=_RESOLVERS[self._kernels],
            )
            self._allocate()
        except Exception as error:
            raise understood(error, "session_failed") from error

    def _allocate(self) -> None:
        self._interpreter.allocate_tensors()
        self._inputs_at: Places = _places(self._interpreter.get_input_details())
        self._outputs_at: Places = _places(self._interpreter.get_output_details())

    def _bind(self, arrays: Mapping[str, Any]) -> dict[int, Any]:
        sizes = tuple(array.shape for array in arrays.values())
        try:
            if sizes != self._sizes:
                for name, array in arrays.items():
                    self._interpreter.resize_tensor_input(self._inputs_at[name], array.shape)
                self._allocate()
                self._sizes = sizes
        except Exception as error:
            raise understood(error, "session_failed") from error
        return {self._inputs_at[name]: array for name, array in arrays.items()}

    def _run(self, bound: Mapping[int, Any]) -> Any:
        try:
            for place, array in bound.items():
                self._interpreter.set_tensor(place, array)
            self._interpreter.invoke()
        except Exception as error:
            raise understood(error, "run_failed") from error
        return self._interpreter

    def _read(self, result: Any) -> list[Any]:
        return [
            np.asarray(result.get_tensor(self._outputs_at[output.file_name]))
            for output in self.manifest.outputs
        ]

    def evidence(self) -> Evidence:
        entries = self._interpreter._get_ops_details()
        operators = Counter(entry["op_name"] for entry in entries)
        delegated = operators.pop(_DELEGATE, 0)
        return self._evidence(
            f"ai-edge-litert {version('ai-edge-litert')}",
            {
                "kernels": self._kernels,
                "xnnpack_parts": delegated,
                # Those that XNNPACK took are listed beside the part that stands for them.
                "operators": listed(operators),
                **weight_types(self._weights(entries)),
                "threads": self._job.settings.threads or 1,
                "inputs": "written before each step",
            },
        )

    def _weights(self, operators: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, int]]:
        made = {index for entry in operators for index in entry["outputs"]}
        made |= set(self._inputs_at.values())
        sizes = {
            entry["index"]: math.prod(map(int, entry["shape"]))
            for entry in self._interpreter.get_tensor_details()
        }
        for entry in operators:
            if entry["op_name"] in PRODUCTS:
                for index, dtype in zip(entry["inputs"], entry["operand_types"], strict=True):
                    if index in sizes and index not in made:
                        yield np.dtype(dtype).name, sizes[index]

    def close(self) -> None:
        self._interpreter = None


def _places(details: list[dict[str, Any]]) -> Places:
    return {entry["name"]: int(entry["index"]) for entry in details}


def understood(error: Exception, reason: str) -> CaseError:
    """Return what the engine says as an error of the case."""
    if any(words in str(error) for words in _NO_OPERATOR):
        return UnsupportedError(
            "operator",
            f"LiteRT has no operator that the model uses: {' '.join(str(error).split())[:400]}",
            "Convert the model without it, or name an engine that has it.",
        )
    return engine_error(error, reason, "LiteRT")
