"""A graph opened in ONNX Runtime, run, and asked if it ran."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnxruntime
import psutil

from accelbench.core.clock import Clock
from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.core.profile import Profile as Profiled
from accelbench.core.profile import build_profile
from accelbench.core.protocols import Evidence, Job
from accelbench.engines.onnxruntime.profile import NAME, REMARK, Profile, read, spent
from accelbench.engines.onnxruntime.providers import CPU, Provider, chain, place_of, serving
from accelbench.engines.shared.arrays import ArraySession
from accelbench.engines.shared.engine import engine_error
from accelbench.engines.shared.local import walls
from accelbench.store.files import create_temporary_folder

_QUIET = 3  # errors alone: a provider's hints would land in crash reports
_PROFILED_RUNS = 3
_LEVELS = {
    "disabled": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
#: What is asked for to have a graph of older operators opened, and the first version of newer ones.
_CONVERTED, _OPSET = "converted", 7
_TRACE = "trace.json"
#: An operator that the provider has not, or that nobody has, with the version that is asked for.
_NO_OPERATOR = re.compile(
    r"(?:implementation for |Fatal error: )(?P<name>[\w.:]+?)\((?P<opset>-?\d+)\)"
    r"(?= node with name| is not a registered)"
)


class OnnxruntimeSession(ArraySession):
    """One graph on one provider."""

    def __init__(self, job: Job, clock: Clock) -> None:
        named = job.case.options.get("provider")
        provider = serving(job.device.hardware, None if named is None else str(named))
        if provider is None or provider.engine not in onnxruntime.get_available_providers():
            package = provider.package if provider else "onnxruntime"
            raise UnsupportedError(
                "provider_missing",
                f"this build of ONNX Runtime has no provider for {job.device.hardware}",
                f"Install it in place of onnxruntime: pip install {package}",
            )
        self._provider: Provider = provider
        self._profile: Profile | None = None
        self._session: Any = None
        super().__init__(job, clock)

    def _options(self) -> Any:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = _QUIET
        if self._job.settings.threads:
            options.intra_op_num_threads = self._job.settings.threads
        level = self._job.case.options.get("optimization")
        if level is not None:
            options.graph_optimization_level = _LEVELS[str(level)]
        if self._job.spill:
            # Weights packed for products would be a second copy of them, in memory.
            options.add_session_config_entry("session.disable_prepacking", "1")
            # One block for all of them is asked for though nothing is put there; the kernel refuses
            # one that is larger than the memory.
            options.enable_mem_pattern = False
        return options

    def _new(self, options: Any) -> Any:
        try:
            return onnxruntime.InferenceSession(
                self._source,
                options,
                providers=chain(
                    self._provider,
                    self._job.device.ordinal,
                    self._case.precision,
                    onnxruntime.get_available_providers(),
                ),
                # A transposed weight that is computed once is a copy, too.
                disabled_optimizers=["ConstantFolding"] if self._job.spill else None,
            )
        except Exception as error:
            raise understood(error, "session_failed") from error

    def _open(self) -> None:
        before = psutil.Process().num_threads()
        self._source: str | bytes = str(self.model_path)
        self._conversion: dict[str, str] = {}
        if self._job.case.options.get("opset") == _CONVERTED:
            from accelbench.engines.onnxruntime.rounded_graph import converted

            self._source = converted(self.model_path).SerializeToString()
            self._conversion = {"opset": f"converted to {_OPSET} by onnx {version('onnx')}"}
        self._session = self._new(self._options())
        self._threads = self._job.settings.threads or self._chosen_threads(before)
        self._names = [output.file_name for output in self.manifest.outputs]
        # What the graph itself takes: an input that a trace did not need is not among it.
        self._takes = {node_arg.name for node_arg in self._session.get_inputs()}
        self._memory = self._provider.binds

    def _chosen_threads(self, before: int) -> int | None:
        """Return how many threads the engine took: it says 0, and has the caller and a pool.

        None on devices, whose drivers start threads of their own.
        """
        if self._provider.engine != CPU:
            return None
        return psutil.Process().num_threads() - before + 1

    def _bind(self, arrays: Mapping[str, Any]) -> Any:
        fed = {name: value for name, value in arrays.items() if name in self._takes}
        if not self._memory:
            return fed
        # On a device inputs and outputs stay there: a step is the graph, not the copies.
        binding = self._session.io_binding()
        kind, ordinal = self._memory, self._job.device.ordinal
        for name, value in fed.items():
            ort_value = onnxruntime.OrtValue.ortvalue_from_numpy(value, kind, ordinal)
            binding.bind_ortvalue_input(name, ort_value)
        for name in self._names:
            binding.bind_output(name, kind, ordinal)
        return binding

    def _run(self, bound: Any) -> Any:
        try:
            if not self._memory:
                return self._session.run(self._names, bound)
            self._session.run_with_iobinding(bound)
            bound.synchronize_outputs()
            return bound
        except Exception as error:
            raise understood(error, "run_failed") from error

    def _read(self, result: Any) -> list[Any]:
        outputs: list[Any] = result.copy_outputs_to_cpu() if self._memory else result
        return outputs

    def evidence(self) -> Evidence:
        device = str(self._job.device)
        if self._profile is None and self._looked_with is not None:
            self._profile = self._profiled(self._looked_with)
        options = self._session.get_session_options()
        details = {
            "providers": self._session.get_providers(),
            "inputs": f"bound in {self._memory} memory" if self._memory else "fed from the host",
            "threads": self._threads,
            **self._conversion,
            "graph_optimization_level": str(options.graph_optimization_level).rpartition(".")[2],
            "execution_mode": str(options.execution_mode).rpartition(".")[2],
        }
        shares: dict[str, float] = {}
        devices: tuple[str, ...] = (device,)  # before anything was looked at
        if self._profile is not None:
            details |= self._profile.as_details()
            for engine, share in self._profile.time_share.items():
                place = place_of(engine, device)
                shares[place] = shares.get(place, 0.0) + share
            # Of the nodes that ran, whatever time they took; of none, there is no proof.
            named = filter(None, self._profile.nodes)
            devices = tuple(dict.fromkeys(place_of(name, device) for name in named))
            if shares:
                shares = {place: shares.get(place, 0.0) for place in devices}
        return self._evidence(
            f"onnxruntime {onnxruntime.__version__}", details, devices, shares=shares
        )

    def _profiled(self, inputs: Any) -> Profile:
        with self._recording() as ended:
            fed = inputs
            if self._schedule is not None:
                fed = self._bind(inputs)
            elif self._memory:
                fed = self._bind(dict(self._inputs.arrays(self._case)))
            for _ in range(_PROFILED_RUNS):
                self._run(fed)
            return read(ended())

    @contextmanager
    def _recording(self) -> Iterator[Callable[[], Path]]:
        """Put a second session in the place of the first; yield what ends its profile file."""
        with create_temporary_folder() as folder:
            options = self._options()
            options.enable_profiling = True
            options.profile_file_prefix = str(folder / "profile")
            measured, self._session = self._session, self._new(options)
            try:
                yield lambda: Path(self._session.end_profiling())
            finally:
                self._session = measured

    def profile(self, inputs: Any, steps: int, traces: Path | None) -> Profiled:
        with self._recording() as ended:
            # What lies on a device is bound to the session that reads it.
            fed = self.prepare(self._case) if self._memory else inputs
            self._step(fed)
            times = walls(self._clock, steps, lambda: self._step(fed))
            path = ended()
            nodes = spent(
                json.loads(path.read_text(encoding="utf-8")),
                steps,
                steps + 1,
                str(self._job.device),
            )
            report = build_profile(NAME, nodes, times, REMARK)
            if traces is None:
                return report
            shutil.copyfile(path, traces / _TRACE)
            return replace(report, trace=_TRACE)

    def rounded(self, inputs: Any, precision: str) -> dict[str, Any]:
        from accelbench.engines.onnxruntime.rounded_graph import rounded

        model = rounded(self._source, precision)
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), self._options(), providers=[CPU]
        )
        return self._named(session.run(self._names, inputs))

    def exact(self, inputs: Any) -> dict[str, Any]:
        from accelbench.engines.onnxruntime.rounded_graph import in_fp64

        found = in_fp64(self._source, inputs)
        return {output.name: found[output.file_name] for output in self.manifest.outputs}

    def close(self) -> None:
        self._session = self._looked_with = None


def understood(error: Exception, reason: str) -> CaseError:
    """Return what the engine says as an error of the case."""
    text = str(error).strip().partition("\n")[0]
    if not isinstance(error, CaseError) and (absent := _NO_OPERATOR.search(text)) is not None:
        known = not absent["opset"].startswith("-")
        of = f" of opset {absent['opset']}" if known else ""
        advice = "Leave it out of the graph, or use an engine that has it."
        if known:
            advice = "Convert the file to a newer opset, as onnx.version_converter does."
        if known and int(absent["opset"]) < _OPSET:
            advice = (
                f"--option onnxruntime.opset={_CONVERTED} has it converted to opset {_OPSET}"
                " before it is opened."
            )
        return UnsupportedError(
            "operator", f"ONNX Runtime has no operator {absent['name']}{of}", advice
        )
    return engine_error(error, reason, "ONNX Runtime", text)
