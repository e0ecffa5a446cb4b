"""onnxruntime as the session sees it on a machine with cards: written from its documented API.

Names are ONNX Runtime 1.31's. A session adds one to its input, so that what goes in and
comes out can be told apart; every call that binds or copies is noted.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np


class Options:
    def __init__(self) -> None:
        self.log_severity_level = 2
        self.intra_op_num_threads = 0
        self.enable_profiling = False
        self.profile_file_prefix = ""
        self.graph_optimization_level = "GraphOptimizationLevel.ORT_ENABLE_ALL"
        self.execution_mode = "ExecutionMode.ORT_SEQUENTIAL"


class OrtValue:
    def __init__(self, value: Any, kind: str, ordinal: int) -> None:
        self.value, self.place = value, (kind, ordinal)

    @classmethod
    def ortvalue_from_numpy(cls, value: Any, kind: str = "cpu", ordinal: int = 0) -> OrtValue:
        return cls(np.array(value), kind, ordinal)


class Binding:
    def __init__(self) -> None:
        self.inputs: dict[str, OrtValue] = {}
        self.outputs: dict[str, tuple[str, int]] = {}
        self.results: list[Any] = []
        self.waited = 0

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        self.inputs[name] = value

    def bind_output(self, name: str, kind: str = "cpu", ordinal: int = 0) -> None:
        self.outputs[name] = (kind, ordinal)

    def synchronize_outputs(self) -> None:
        self.waited += 1

    def copy_outputs_to_cpu(self) -> list[Any]:
        return list(self.results)


class Sessions:
    """Makes sessions, and has what they were made with and did."""

    def __init__(self, engine: str, types: str, elsewhere_us: int) -> None:
        self.made: list[Session] = []
        self.engine, self.types, self.elsewhere_us = engine, types, elsewhere_us
        self.refuse: Exception | None = None

    def __call__(self, path: str, options: Any, providers: list[Any], **more: Any) -> Session:
        if self.refuse is not None:
            raise self.refuse
        self.made.append(Session(self, options, providers))
        return self.made[-1]


class Session:
    def __init__(self, maker: Sessions, options: Options, providers: list[Any]) -> None:
        self.options, self.providers = options, providers
        self.copied = 0
        self.bound: list[Binding] = []
        self._maker = maker

    def get_session_options(self) -> Options:
        return self.options

    def get_providers(self) -> list[str]:
        return [self._maker.engine, "CPUExecutionProvider"]

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name="pixel_values")]

    def io_binding(self) -> Binding:
        self.bound.append(Binding())
        return self.bound[-1]

    def run(self, names: list[str], fed: dict[str, Any]) -> list[Any]:
        self.copied += 1
        return [fed["pixel_values"] + 1 for _ in names]

    def run_with_iobinding(self, binding: Binding) -> None:
        value = binding.inputs["pixel_values"].value
        binding.results = [value + 1 for _ in binding.outputs]

    def end_profiling(self) -> str:
        """Three runs of a product on the card, and of a gather on the CPU."""
        events: list[dict[str, Any]] = []
        for run in range(3):
            start = 1000 * (run + 1)
            events.append({"cat": "Session", "name": "model_run", "ts": start, "dur": 900})
            for index, (name, provider, took) in enumerate(
                [
                    ("MatMul", self._maker.engine, 90),
                    ("Gather", "CPUExecutionProvider", self._maker.elsewhere_us),
                ]
            ):
                args = {
                    "op_name": name,
                    "provider": provider,
                    "node_index": str(index),
                    "input_type_shape": [{self._maker.types: [2, 2]}],
                }
                events.append(
                    {
                        "cat": "Node",
                        "name": f"{name}_kernel_time",
                        "ts": start + 100 * index,
                        "dur": took,
                        "args": args,
                    }
                )
        path = Path(f"{self.options.profile_file_prefix}_fake.json")
        path.write_text(json.dumps(events))
        return str(path)


def fake_onnxruntime(
    engine: str = "CUDAExecutionProvider", types: str = "float", elsewhere_us: int = 0
) -> Any:
    """An onnxruntime built for a platform, and its sessions."""
    return SimpleNamespace(
        __version__="1.31.0",
        SessionOptions=Options,
        OrtValue=OrtValue,
        InferenceSession=Sessions(engine, types, elsewhere_us),
        get_available_providers=lambda: [engine, "CPUExecutionProvider"],
    )
