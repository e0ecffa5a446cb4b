"""The session of the onnxreference runtime: inputs bound, a step run, outputs read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelbench.core.protocols import Evidence
from accelbench.engines.shared.arrays import ArraySession


class OnnxReferenceSession(ArraySession):
    """A graph, evaluated operator by operator."""

    def _open(self) -> None:
        from onnx.reference import ReferenceEvaluator

        self._evaluator = ReferenceEvaluator(str(self.model_path))
        self._takes = set(self._evaluator.input_names)

    def _bind(self, arrays: Mapping[str, Any]) -> Any:
        return {name: value for name, value in arrays.items() if name in self._takes}

    def _run(self, bound: Any) -> Any:
        return self._evaluator.run(None, bound)

    def _read(self, result: Any) -> list[Any]:
        return list(result)

    def close(self) -> None:
        self._evaluator = None

    def evidence(self) -> Evidence:
        import numpy
        import onnx

        device = str(self._job.device)
        return Evidence(
            devices=(device,),  # NumPy has no other
            requested=device,
            engine=f"onnx {onnx.__version__} reference, numpy {numpy.__version__}",
            details=self.details(),
        )
