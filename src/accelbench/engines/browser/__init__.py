"""The browser runtime's card: readable without starting a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.case import Case
from accelbench.core.clock import Clock, MonotonicClock
from accelbench.core.errors import SurroundingsError
from accelbench.core.model import FileFormat
from accelbench.core.option_types import RuntimeOption
from accelbench.core.protocols import (
    SUPPORTED,
    Absent,
    ArtifactFormat,
    Device,
    Job,
    RuntimeInfo,
    Session,
    Support,
)
from accelbench.core.vocabulary import Belongs
from accelbench.engines.browser.assets import COMMAND, engine_folder
from accelbench.engines.browser.process import SWITCHES
from accelbench.engines.shared.engine import ForwardEngine
from accelbench.engines.shared.refusals import not_listed, refuse

if TYPE_CHECKING:
    from accelbench.engines.browser.page_link import Page

_OWN = (
    RuntimeOption(
        "device_type", "what WebNN is asked for", choices=("cpu", "gpu", "npu"), default="cpu"
    ),
    RuntimeOption(
        "first_visit",
        "also measure a first visit, with nothing fetched and compiled",
        kind="truth",
        default=True,
    ),
    RuntimeOption("switches", "more switches for the browser"),
)
_FORMATS = {"fp32": "onnx", "fp16": "onnx-fp16", "int8": "onnx-int8"}


class PageClock(MonotonicClock):
    """The clock of blocks that a page times, which is coarser than the worker's own."""

    def __init__(self, tick_ns: float) -> None:
        super().__init__()
        self._tick_ns = tick_ns

    def tick_ns(self) -> float:
        return self._tick_ns


class BrowserRuntime(ForwardEngine):
    """Runs ONNX graphs by onnxruntime-web in a page of a real browser."""

    info = RuntimeInfo(
        name="browser",
        hardware=tuple(SWITCHES),
        default_for=tuple(SWITCHES),
        package="accelbench",  # what it needs beside is no Python package: accelbench setup browser
        extra="browser",
        precisions=("fp32", "fp16", "int8"),
        isolation="fork",
        consumes="onnx",
        files=(FileFormat.ONNX,),
        preload=("accelbench.engines.browser.session",),
        options=_OWN,
        generates=False,
        reopens=True,
        dashes=(4, 4),
        place=4,
        reasons={
            "browser_ended": Belongs.MACHINE,
            "browser_hung": Belongs.MACHINE,
            "browser_kind": Belongs.MACHINE,
            "no_sandbox": Belongs.MACHINE,
            "tab_crashed": Belongs.CELL,
        },
    )

    needs = ("onnx",)
    remark = "its graphs are optimised anyway"

    def __init__(self) -> None:
        # As coarse as isolated pages are shown time; a page that is open says what it sees.
        self._tick_ns = 5_000.0
        self._open_page: Page | None = None

    def probe(self) -> list[Device | Absent]:
        """Return what could be started; only a page can tell whether it has WebGPU or WebNN."""
        from accelbench.hardware.browsers import WasmDetector, WebgpuDetector, WebnnDetector

        lists = (finder.detect() for finder in (WasmDetector(), WebgpuDetector(), WebnnDetector()))
        return [device for devices in lists for device in devices]

    def refusals(self, case: Case, device: Device) -> Iterator[Support | None]:
        yield from super().refusals(case, device)
        yield not_listed(self.info.name, case, self.info.precisions)
        ready = self.ready()
        yield None if ready.ok else ready
        # Others are started, and told what to do, in other ways.
        if device.details.get("engine", "chromium") != "chromium":
            yield refuse("browser_kind", browser=device.name)

    def ready(self) -> Support:
        return SUPPORTED if engine_folder() is not None else refuse("not_set_up", command=COMMAND)

    def wants(self, case: Case) -> ArtifactFormat:
        if case.is_run_as_stored:
            return ArtifactFormat("onnx-folded", static=True)
        format = _FORMATS[case.precision]  # noqa: A001 - the manifest's word
        if case.target.hardware == "wasm":
            return ArtifactFormat(format)
        # Sizes that may vary are computed on the CPU, which is not what was asked for.
        return ArtifactFormat("onnx-folded" if format == "onnx" else format, static=True)

    def clock(self) -> Clock:
        return PageClock(self._tick_ns)

    def open(self, job: Job) -> Session:
        from accelbench.engines.browser.session import BrowserSession

        session = BrowserSession(job, self.clock(), self._page(job))
        self._tick_ns = session.tick_ns
        return session

    def _page(self, job: Job) -> Page:
        """Return the browser that the case before has left, if it will do; or a new one.

        Starting one takes longer than a small model's whole case, and web users, too, come
        to a first visit with their browser open.
        """
        from accelbench.engines.browser.page_link import Page

        engine = engine_folder()
        if engine is None:
            raise SurroundingsError("onnxruntime-web is not here.", f"Fetch it with: {COMMAND}")
        program = Path(str(job.device.details["path"]))
        switches = str(job.case.options.get("switches", ""))
        kind = (program, engine, job.case.target.hardware, switches)
        left = self._open_page
        if left is not None and left.empty and not left.closed:
            if left.kind == kind and left.browser.ended is None:
                return left
            left.close()
        self._open_page = Page(*kind)
        return self._open_page
