"""An ncnn network opened, run, and asked what its results were stored in.

Inputs are copied into matrices of ncnn's own before steps are timed: a layer that works in place
crashes on memory that is NumPy's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import ncnn
import numpy as np

from accelbench.core.clock import Clock
from accelbench.core.errors import CaseError, OutOfMemoryError
from accelbench.core.protocols import Evidence, Job
from accelbench.engines.shared.arrays import ArraySession
from accelbench.engines.shared.engine import SEE_LOG
from accelbench_ncnn.layers import PRODUCTS, is_quantised, layers_of

_OPTIMIZED, _PLAIN = "optimized", "plain"
#: What a layer answers that was given no memory for its result.
_NO_MEMORY = -100
#: Extracted so, a result keeps the type that it is stored in.
_AS_IT_IS = 1

#: By input; one for each item where those are computed alone.
Fed = Sequence[Mapping[str, Any]]


class NcnnSession(ArraySession):
    """One network by one way of computing it."""

    def __init__(self, job: Job, clock: Clock) -> None:
        self._plain = job.case.options.get("kernels", _OPTIMIZED) == _PLAIN
        self._net: Any = None
        self._computed_in: dict[str, float] | None = None
        super().__init__(job, clock)

    def _open(self) -> None:
        net = ncnn.Net()
        self._set(net.opt)
        path = self.model_path
        for code, what in (
            (net.load_param(str(path)), "layers"),
            (net.load_model(str(path.with_suffix(".bin"))), "weights"),
        ):
            if code == _NO_MEMORY:
                raise OutOfMemoryError(f"ncnn had no memory for the {what} of {path.name}")
            if code != 0:
                raise CaseError(
                    "session_failed", f"ncnn cannot read the {what} of {path.name}", SEE_LOG
                )
        self._net = net

    def _set(self, options: Any) -> None:
        """Say what is computed in, and how; before anything is loaded, as layers keep it."""
        half, quantised = self._case.precision == "fp16", self._case.precision == "int8"
        options.use_vulkan_compute = False
        options.use_fp16_packed = options.use_fp16_storage = options.use_fp16_arithmetic = half
        options.use_bf16_packed = options.use_bf16_storage = self._case.precision == "bf16"
        options.use_int8_inference = quantised
        if self._job.settings.threads is not None:
            options.num_threads = self._job.settings.threads
        if self._plain:
            options.num_threads = 1
            options.use_packing_layout = options.use_sgemm_convolution = False
            options.use_winograd_convolution = options.use_winograd23_convolution = False
            options.use_winograd43_convolution = options.use_winograd63_convolution = False

    def _bind(self, arrays: Mapping[str, Any]) -> Fed:
        items = len(next(iter(arrays.values())))
        if items > 1 and not self._plain:
            # It copies; the first axis is ncnn's own batch.
            return [{name: ncnn.Mat(array, 0) for name, array in arrays.items()}]
        return [
            {name: ncnn.Mat(array[place]).clone() for name, array in arrays.items()}
            for place in range(items)
        ]

    def _run(self, bound: Fed) -> list[list[Any]]:
        return [self._pass(fed) for fed in bound]

    def _pass(self, fed: Mapping[str, Any]) -> list[Any]:
        extractor = self._net.create_extractor()
        for name, matrix in fed.items():
            _refuse(extractor.input(name, matrix), name)
        made = []
        for output in self.manifest.outputs:
            code, matrix = extractor.extract(output.file_name)
            _refuse(code, output.file_name)
            made.append(matrix)
        return made

    def _read(self, result: list[list[Any]]) -> list[Any]:
        return [
            np.concatenate([matrix.numpy(batch_index=0) for matrix in of_items])
            for of_items in zip(*result, strict=True)
        ]

    def evidence(self) -> Evidence:
        if self._computed_in is None and self._looked_with is not None:
            self._computed_in = self._stored_in(self._looked_with[0])
        options = self._net.opt
        return self._evidence(
            f"ncnn {ncnn.__version__}",
            {
                "kernels": _PLAIN if self._plain else _OPTIMIZED,
                "computed_in": self._computed_in or {},
                "packing": options.use_packing_layout,
                "winograd": options.use_winograd_convolution,
                "sgemm": options.use_sgemm_convolution,
                "vulkan": options.use_vulkan_compute,
                "threads": options.num_threads,
                "inputs": "copied to ncnn's memory before the steps",
            },
        )

    def _stored_in(self, fed: Mapping[str, Any]) -> dict[str, float]:
        """Of the products, the share whose results are stored in each type; of quantised, int8."""
        extractor = self._net.create_extractor()
        extractor.set_light_mode(False)
        for name, matrix in fed.items():
            extractor.input(name, matrix)
        wide = self._case.precision if self._case.precision in ("fp16", "bf16") else "fp16"
        counted: Counter[str] = Counter()
        for layer in layers_of(self.model_path.read_bytes()):
            if layer.type in PRODUCTS:
                if is_quantised(layer) and self._net.opt.use_int8_inference:
                    counted["int8"] += 1
                    continue
                code, matrix = extractor.extract(layer.makes[0], _AS_IT_IS)
                _refuse(code, layer.makes[0])
                counted["fp32" if matrix.elembits() > 16 else wide] += 1
        return {name: round(count / counted.total(), 4) for name, count in counted.items()}

    def close(self) -> None:
        self._net = self._looked_with = None


def _refuse(code: int, name: str) -> None:
    """Refuse what ncnn answers with anything but zero, its only word of a failure."""
    if code == _NO_MEMORY:
        raise OutOfMemoryError(f"ncnn had no memory for what {name} needs")
    if code != 0:
        raise CaseError("run_failed", f"ncnn answered {code} when it was asked for {name}", SEE_LOG)
