"""One model in a browser's page: opened, stepped and timed there, its evidence read from it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.core.protocols import Block, Evidence, Job, most_steps
from accelbench.core.vocabulary import Timing
from accelbench.engines.browser.assets import ENGINE
from accelbench.engines.browser.page_link import START_SECONDS, Page
from accelbench.engines.onnxruntime import profile
from accelbench.engines.shared.arrays import Arrays, ArtefactSession
from accelbench.engines.shared.sketches import Glance, Sketch
from accelbench.models.short_steps import SHORT_PASSES

#: What each platform's provider calls itself. WebAssembly is ONNX Runtime's own CPU code.
PROVIDERS = {
    "wasm": "CPUExecutionProvider",
    "webgpu": "WebGpuExecutionProvider",
    "webnn": "WebNNExecutionProvider",
}
_PARTITIONS = re.compile(
    r"number of partitions supported by WebNN: (\d+) number of nodes in the graph: (\d+)"
    r" number of nodes supported by WebNN: (\d+)"
)


@dataclass(frozen=True)
class Proof:
    """The record of what ran where."""

    provider: str
    time_share: Mapping[str, float]
    details: Mapping[str, Any]

    def shares(self, device: str) -> dict[str, float]:
        """Return shares of the time by device, the CPU's if another provider ran than asked."""
        totals: dict[str, float] = {}
        for name, share in self.time_share.items():
            place = device if name == PROVIDERS[self.provider] else "cpu:0"
            totals[place] = totals.get(place, 0.0) + share
        return totals


def understood(lines: Sequence[str], provider: str) -> Proof:
    """Read what a traced session printed: which provider ran which nodes."""
    ort_profile = profile.understood(list(events(lines)))
    details = {**ort_profile.as_details(), **partitions(lines)}
    return Proof(provider, ort_profile.time_share, details)


def events(lines: Sequence[str]) -> list[dict[str, Any]]:
    """Return the profile's events, each of which is printed as a line of JSON."""
    records = []
    for line in lines:
        text = line.strip().rstrip(",")
        if text.startswith('{"cat"'):
            records.append(json.loads(text))
    return records


def partitions(lines: Sequence[str]) -> dict[str, Any]:
    """Return how much of the graph WebNN took, and in how many pieces."""
    for line in lines:
        if match := _PARTITIONS.search(line):
            pieces, nodes, taken = map(int, match.groups())
            return {"webnn_partitions": pieces, "graph_nodes": nodes, "webnn_nodes": taken}
    return {}


_RUNS = 2  # of the session that says what it does; the first warms up
_NS = 1e6  # in a millisecond
_HALVES = "shader-f16"  # what WebGPU calls it
#: What ONNX Runtime says where a provider does not take all and the CPU may take nothing.
_LEFT_OVER = "fallback to CPU EP has been explicitly disabled"


class BrowserSession(ArtefactSession):
    """One model in one tab.

    It is opened twice: as a first visit, with nothing fetched and nothing compiled, and as a
    repeat visit in the same browser, in which everything is measured.
    """

    def __init__(self, job: Job, clock: Clock, page: Page) -> None:
        self._provider = job.case.target.hardware
        self._device_type = str(job.case.options.get("device_type", "cpu"))
        self._strict = self._provider != "wasm"  # there is no other place for it to run
        self._fed: tuple[int, int | None] | None = None
        self._inputs_kept: Any = None  # as long as their identity names them
        self._proof: Proof | None = None
        self._proved: Case | None = None  # what the proof is of
        self._plain = True  # whether the session in the page is the one that is timed
        self._visits: dict[str, Mapping[str, Any]] = {}
        self._page = page
        try:
            super().__init__(job, clock)
            self._open()
        except BaseException:
            page.close()
            raise

    # -- opening

    def _open(self) -> None:
        self._arrive()
        self.host_memory = self._page.memory()
        if self._job.case.options.get("first_visit", True):
            self._visits["first"] = self._first_visit()
            self._page.come_again()
            self._fed = None
            self.surroundings = self._there()  # of the page in which it is measured
        visit = self._visits["repeat" if self._visits else "first"] = self._visited()
        self.timings["load"] = round(_opening(visit) * _NS)

    def _first_visit(self) -> dict[str, Any]:
        visit = self._visited()
        inputs = self.prepare(self._job.case)
        (first_ns,) = self.sample(inputs, 1, Timing.EACH).phase_ns["step"]
        return {**visit, "first_inference_ms": first_ns / _NS}

    def _arrive(self) -> None:
        self.surroundings = self._there()
        self._page.give_model(self._folder)

    def _there(self) -> dict[str, Any]:
        """Return what the page says of if it is; refuse what this browser does not have."""
        surroundings, _ = self._page.ask(
            "surroundings", seconds=START_SECONDS, device_type=self._device_type
        )
        if not surroundings["isolated"]:
            raise CaseError(
                "not_isolated",
                "the browser does not isolate the page: its clock is coarse, and it has no threads",
                "Use another browser: --browser PATH",
            )
        if self._case.precision == "fp16" and self._provider == "webgpu":
            _hold_halves(surroundings["adapter"])
        door = {"webgpu": "adapter", "webnn": "webnn"}.get(self._provider)
        why = surroundings[door].get("why") if door else None
        if why:
            raise UnsupportedError(
                "engine_sees_no_device",
                f"{why}: {_short(surroundings['agent'])}",
                "Use another browser: --browser PATH, or what accelbench setup browser fetches.",
            )
        return surroundings

    def _visited(self) -> dict[str, Any]:
        try:
            body = self._opened()
        except CaseError as error:
            if not self._strict or _LEFT_OVER not in error.message:
                raise
            # Some is left to the CPU: how much of the time that takes is what decides. What was
            # fetched in vain is forgotten, or this would be no first visit.
            self._strict = False
            self._page.come_anew()
            self._arrive()
            body = self._opened()
        self._threads = body["threads"]
        self._takes = set(body["inputs"])
        adapter = {**self.surroundings["adapter"], **body["adapter"]}
        self.surroundings = {**self.surroundings, "adapter": adapter}
        return {key: body[key] for key in ("script_ms", "session_ms", "fetched")}

    def _opened(self) -> dict[str, Any]:
        around = {self.manifest.file, "manifest.json"}
        request = {
            "provider": self._provider,
            "model": self.manifest.file,
            "external": sorted(p.name for p in self._folder.iterdir() if p.name not in around),
            "device_type": self._device_type,
            "threads": self._job.settings.threads,
            "strict": self._strict,
        }
        body, _ = self._page.ask("open", asked=request)
        return body

    def visits(self, case: Case, first_inference_ms: float) -> Mapping[str, float]:
        if case.shapes != self._job.case.shapes:
            return {}
        # The visit in which it was measured has no first inference of its own yet.
        return {
            f"{name}_visit_ms": _opening(visit)
            + visit.get("first_inference_ms", first_inference_ms)
            for name, visit in self._visits.items()
        }

    # -- running

    def _bind(self, arrays: Arrays) -> Arrays:
        return {name: array for name, array in arrays.items() if name in self._takes}

    def _feed(self, inputs: Arrays, passes: int | None = None) -> None:
        if not self._plain:
            self._page.ask("open_again")
            self._plain, self._fed = True, None
        if self._fed == (id(inputs), passes):
            return
        self._page.ask("feed", self._bind(inputs), denoising=self._denoising(passes))
        self._fed, self._inputs_kept = (id(inputs), passes), inputs

    def _feed_short(self, inputs: Arrays) -> None:
        self._feed(inputs, None if self._schedule is None else SHORT_PASSES)

    def _denoising(self, passes: int | None) -> dict[str, Any] | None:
        if self._schedule is None:
            return None
        names = {input_.name: input_.file_name for input_ in self.manifest.inputs}
        return {
            "sample": names["sample"],
            "times": names["timestep"],
            "passes": [
                {"time": time, "kept": kept, "added": added}
                for time, kept, added in self._schedule.factors(passes)
            ],
        }

    def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
        if timing not in (Timing.EACH, Timing.WHOLE):
            raise ValueError(f"a page does not time {timing}")
        if timing is Timing.WHOLE:
            return self.unbroken_blocks(inputs, n, 1)[0]
        self._feed(inputs)
        n = most_steps(n)
        body, _ = self._page.ask("steps", n=n)
        return Block(n, timing, {"step": [round(ms * _NS) for ms in body["ms"]]})

    def unbroken_blocks(self, inputs: Any, steps: int, samples: int) -> list[Block]:
        self._feed(inputs)
        body, _ = self._page.ask("blocks", steps=steps, samples=samples)
        return [Block(steps, Timing.WHOLE, {"step": [round(ms * _NS)]}) for ms in body["ms"]]

    def stepped(self, most: int) -> Mapping[str, Sketch]:
        body, arrays = self._page.ask("left", most=most)
        shapes = {name: tuple(shape) for name, shape in body["shapes"].items()}
        if self._schedule is not None or not shapes:
            return {name: Sketch(shapes[name], arrays[name]) for name in shapes}
        return {
            output.name: Sketch(shapes[output.file_name], arrays[output.file_name])
            for output in self.manifest.outputs
        }

    def glance(self, inputs: Any, most: int) -> Glance:
        # A language model's outputs are 26 MB an item: they stay in the page.
        self._looked_with = inputs
        self._feed_short(inputs)
        names = {output.file_name: output.name for output in self.manifest.outputs}
        if self._schedule is not None:
            names = {"sample": "sample"}
        body, arrays = self._page.ask("glance", most=most, names=names)
        self._output_facts = {
            "outputs_finite": bool(body["finite"]),
            "output_dtypes": sorted({str(value.dtype) for value in arrays.values()}),
        }
        shapes = {name: tuple(shape) for name, shape in body["shapes"].items()}
        return Glance(body["digest"], {name: Sketch(shapes[name], arrays[name]) for name in shapes})

    def inspect(self, inputs: Any) -> None:
        self.glance(inputs, 1)

    def _seen(self, inputs: Any) -> dict[str, Any]:
        self._looked_with = inputs
        self._feed_short(inputs)
        _, arrays = self._page.ask("outputs")
        if self._schedule is not None:
            return arrays
        return {output.name: arrays[output.file_name] for output in self.manifest.outputs}

    # -- evidence

    def evidence(self) -> Evidence:
        if self._looked_with is not None and self._proved != self._case:
            self._proof = self._traced(self._looked_with)
            self._proved = self._case
        adapter = self.surroundings["adapter"]
        software = self._provider == "webgpu" and bool(adapter.get("fallback"))
        details: dict[str, Any] = {
            "browser": {
                "agent": self.surroundings["agent"],
                "switches": list(self._page.browser.started.switches),
                "sandboxed": self._page.browser.started.sandboxed,
            },
            "clock_tick_us": round(self.surroundings["tick_ms"] * 1e3, 3),
            "isolated": self.surroundings["isolated"],
            "threads": self._threads,
            "cpu_fallback": "refused" if self._strict else "watched",
            "visits": self._visits,
        }
        if without := self._page.browser.started.without:
            details["notes"] = [without]
        if self._provider == "webgpu":
            details["adapter"] = adapter
        if self._provider == "webnn":
            # A type that is asked for is given whatever there is: it is no evidence of anything.
            details["device_type_asked"] = self._device_type
        shares: dict[str, float] = {}
        if self._proof is not None:
            details |= self._proof.details
            shares = self._proof.shares(str(self._job.device))
            if not (shares or self._strict):
                raise CaseError(
                    "no_proof",
                    "some of the graph may run on the CPU, and the engine does not say how much",
                    f"Use the engine that is tested: {ENGINE}.",
                )
        return self._evidence(
            f"{ENGINE.name} {ENGINE.version} in {_short(self.surroundings['agent'])}",
            details,
            tuple(shares) or None,
            emulated=software,
            shares=shares,
        )

    def _traced(self, inputs: Any) -> Proof:
        self._feed_short(inputs)
        self._plain = False
        body, _ = self._page.ask("traced", runs=_RUNS)
        return understood(body["lines"], self._provider)

    @property
    def tick_ns(self) -> float:
        return float(self.surroundings["tick_ms"]) * _NS

    def cpu_seconds(self) -> float:
        return self._page.browser.cpu_seconds()

    def leave(self) -> None:
        self._page.come_anew()

    def close(self) -> None:
        self._page.close()


def _hold_halves(adapter: Mapping[str, Any]) -> None:
    features = adapter.get("features")
    if features is not None and _HALVES not in features:
        raise UnsupportedError(
            "precision",
            f"the browser's adapter ({adapter.get('description') or adapter.get('vendor')})"
            f" computes nothing in fp16: it lacks {_HALVES}",
            "Use fp32, or a browser and a GPU that have it: --browser PATH.",
        )


def _opening(visit: Mapping[str, Any]) -> float:
    return float(visit["script_ms"]) + float(visit["session_ms"])


def _short(agent: str) -> str:
    return next((word for word in agent.split() if "Chrome/" in word or "Firefox/" in word), agent)
