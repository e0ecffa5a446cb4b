"""A graph on the NPU or its emulation: all of it, or a failure that says what was left over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnxruntime

from accelbench.core.clock import Clock
from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.core.precision import FEW_VALUES
from accelbench.core.profile import Profile, build_profile
from accelbench.core.protocols import Evidence, Job
from accelbench.engines.onnxruntime.session import understood
from accelbench.engines.qnn import backend, profile
from accelbench.engines.qnn.profile import Composed, read_composed
from accelbench.engines.shared.arrays import ArraySession
from accelbench.engines.shared.local import rounded_shares, walls
from accelbench.store.files import create_temporary_folder

_QUIET = 3  # errors alone
_TRACE = "trace.csv"

#: How far outputs may be from the CPU provider's of the same file, in parts of their own spread.
#: Seen were 0.0008 to 0.26. At more than one item, the emulation (onnxruntime-qnn 2.7.0) gives
#: wrong numbers for all but the first where a float layer norm follows an embedding's sum: BERT,
#: GPT-2 and CLIP's text are then 0.4 to 1.9 off, and right for a batch of one, or with the layer
#: norm written out (a workaround).
_MOST_APART = 0.35
_ROUNDING = 4 * 2.0**-10

#: What a provider's shares are said as.
_CPU = "cpu:0"


class QnnSession(ArraySession):
    """One graph on the NPU."""

    def __init__(self, job: Job, clock: Clock) -> None:
        self._npu = (backend.devices() or [None])[0]
        if self._npu is None:
            raise UnsupportedError(
                "engine_sees_no_device",
                "ONNX Runtime's QNN provider offers no device",
                "Update the NPU's driver, or: pip install -U onnxruntime onnxruntime-qnn",
            )
        self._composed: Composed | None = None
        self._against_cpu: dict[str, float] = {}
        self._session: Any = None
        super().__init__(job, clock)

    def _options(
        self,
        fallback: bool = False,
        dump: Path | None = None,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> Any:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = _QUIET
        if self._job.settings.threads:
            options.intra_op_num_threads = self._job.settings.threads
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        # Else ONNX Runtime prints that it falls back to the CPU, and goes on.
        options.add_session_config_entry("session.disable_cpu_ep_fallback", str(int(not fallback)))
        options.add_provider_for_devices(
            [self._npu], {**backend.options(self._job.device.emulated, dump), **more}
        )
        return options

    def _open(self) -> None:
        path = str(self.model_path)
        try:
            self._session = onnxruntime.InferenceSession(path, self._options())
        except Exception as error:
            if backend.LEFT_OVER in str(error):
                raise self._fallback() from error
            raise understood(error, "session_failed") from error
        self._names = [output.file_name for output in self.manifest.outputs]
        self._takes = {node_arg.name for node_arg in self._session.get_inputs()}
        self._nodes = backend.assigned(self._session)

    def _fallback(self) -> CaseError:
        try:
            session = onnxruntime.InferenceSession(
                str(self.model_path), self._options(fallback=True)
            )
            detail = backend.left_over(backend.assigned(session))
        except Exception as error:
            detail = f"which ones is not known: {understood(error, 'session_failed').message}"
        return CaseError(
            "fallback",
            f"the NPU does not take all of {self._case.model.id}: {detail}",
            "What the CPU would do is no result of the NPU; use --framework onnxruntime for it.",
        )

    def _bind(self, arrays: Mapping[str, Any]) -> Any:
        return {name: value for name, value in arrays.items() if name in self._takes}

    def _run(self, bound: Any) -> Any:
        try:
            return self._session.run(self._names, bound)
        except Exception as error:
            raise understood(error, "run_failed") from error

    def _read(self, result: Any) -> list[Any]:
        return list(result)

    def profile(self, inputs: Any, steps: int, traces: Path | None) -> Profile:
        # A second session of the same file has QNN write down what its nodes take.
        with create_temporary_folder() as folder:
            graphs = folder / "graphs"
            graphs.mkdir()
            path = (traces or folder) / _TRACE
            measured = self._session
            try:
                options = self._options(dump=graphs, more=profile.options(path))
                self._session = onnxruntime.InferenceSession(str(self.model_path), options)
                self._step(inputs)
                times = walls(self._clock, steps, lambda: self._step(inputs))
            except Exception as error:
                raise understood(error, "profile_failed") from error
            finally:
                self._session = measured
            emulated = profile.EMULATED if self._job.device.emulated else ""
            types = profile.types_of(graphs)
            nodes = profile.read(path, types, steps, str(self._job.device))
            report = build_profile(profile.NAME, nodes, times, profile.REMARK + emulated)
            return report if traces is None else replace(report, trace=_TRACE)

    def evidence(self) -> Evidence:
        device = str(self._job.device)
        if self._composed is None and self._looked_with is not None:
            self._composed = self._composed_graphs()
            self._against_cpu = self._distance(self._bind(self._looked_with))
        details: dict[str, Any] = {
            "providers": self._session.get_providers(),
            "backend": Path(backend.options(emulated=False)["backend_path"]).name,
            "soc": backend.EMULATED if self._job.device.emulated else "the device's own",
            "threads": self._session.get_session_options().intra_op_num_threads or None,
            "provider_nodes": {name: sum(counts.values()) for name, counts in self._nodes.items()},
        }
        if self._composed is not None:
            computed_in = self._composed.computed_in
            details["computed_in"] = rounded_shares(computed_in)
            details["npu_operators"] = dict(self._composed.operators)
            details["against_cpu"] = self._against_cpu
            if not computed_in:
                details["computed_in_unknown"] = "QNN's graphs hold no product"
            self._hold_to_cpu()
        took = {device if name == backend.NAME else _CPU for name in self._nodes}
        return self._evidence(
            f"onnxruntime {onnxruntime.__version__}, QNN {backend.version()}",
            details,
            tuple(sorted(took, key=lambda name: name != device)) or None,
            emulated=self._job.device.emulated,
        )

    def _hold_to_cpu(self) -> None:
        far = {name: np.nan_to_num(gap, nan=np.inf) for name, gap in self._against_cpu.items()}
        worst = max(far, key=lambda name: far[name], default=None)  # NaN would win no comparison
        if worst is not None and not far[worst] <= _MOST_APART:
            raise CaseError(
                "unlike_the_cpu",
                f"the output {worst} of {self._case.model.id} at a batch of"
                f" {self._case.shapes.batch} is {self._against_cpu[worst]:.2g} of its spread from"
                " what the CPU provider makes of the same file",
                "The NPU's compiler is at fault, or its emulation. Try a batch of 1.",
            )

    def _composed_graphs(self) -> Composed:
        with create_temporary_folder() as folder:
            try:
                onnxruntime.InferenceSession(str(self.model_path), self._options(dump=folder))
            except Exception as error:
                raise understood(error, "session_failed") from error
            return read_composed(folder)

    def _distance(self, fed: Any) -> dict[str, float]:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = _QUIET
        try:
            cpu = onnxruntime.InferenceSession(
                str(self.model_path), options, providers=["CPUExecutionProvider"]
            )
            right = cpu.run(self._names, fed)
        except Exception as error:
            raise understood(error, "no_cpu_to_hold_against") from error
        return distances(self._named(zip(self._run(fed), right, strict=True)))

    def close(self) -> None:
        self._session = self._looked_with = None


def distances(pairs: Mapping[str, tuple[Any, Any]]) -> dict[str, float]:
    """Return how far outputs are from others, each in its own spread.

    A few values have no spread that says anything: CLIP's one logit may lie near nought. They
    are judged where the model is verified, and here only if there is nothing else.
    """
    floats = {name: pair for name, pair in pairs.items() if pair[1].dtype.kind == "f"}
    many = {name: pair for name, pair in floats.items() if pair[1].size >= FEW_VALUES}
    return {name: round(_apart(*pair), 6) for name, pair in (many or floats).items()}


def _apart(here: Any, reference: Any) -> float:
    apart = float(np.sqrt(np.mean(np.square(here - reference, dtype=np.float64))))
    size = float(np.sqrt(np.mean(np.square(reference, dtype=np.float64))))
    # Rounding alone moves values that are nearly all the same, such as the boxes of an untrained
    # detector: four last places of fp16 are to be within what is allowed.
    spread = float(np.std(reference, dtype=np.float64)) if reference.size >= FEW_VALUES else size
    return apart / ((spread + _ROUNDING / _MOST_APART * size) or 1.0)
