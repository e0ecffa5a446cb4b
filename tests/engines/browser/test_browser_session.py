"""One model in a tab of a real browser, as the runtime opens it."""

import contextlib
from functools import cache

import pytest
from browsers_here import needs_browser, program

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError, OutOfMemoryError, UnsupportedError
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Timing
from accelbench.engines.artifacts.make import make
from accelbench.engines.artifacts.recipe import Recipe
from accelbench.engines.browser import BrowserRuntime
from accelbench.models.find import find
from accelbench.models.inputs import settle
from kept_artefacts import kept_artefacts
from refusals import refusal

pytestmark = needs_browser

PLATFORMS = ("wasm", "webnn", "webgpu")


@pytest.fixture(scope="module")
def artefacts():
    return kept_artefacts()


@cache
def case_of(model, hardware, batch, precision, first_visit=True):
    spec = find(model)
    shapes = Shapes(batch, sequence=16 if spec.sequence else None, image=spec.image)
    options = {} if first_visit else {"first_visit": False}
    return Case(spec, Target("browser", hardware), precision, settle(spec, shapes), options=options)


class Visitor:
    """Opens one case after another, as a worker does."""

    def __init__(self, artefacts, hardware):
        self._artefacts, self._hardware = artefacts, hardware
        self._runtime = BrowserRuntime()
        self._device = Device(hardware, 0, hardware, details={"path": str(program())})
        self.session = None

    def open(self, model, batch=1, precision="fp32", first_visit=True):
        """A session; with a first visit the engine is compiled twice, and shaders for seconds."""
        case = case_of(model, self._hardware, batch, precision, first_visit)
        made = make(Recipe(case, self._runtime.wants(case), 0), self._artefacts)
        if self.session is not None:
            with contextlib.suppress(CaseError):
                self.session.leave()
        job = Job(case, self._device, JobSettings(seed=0, threads=1), artefact=str(made.folder))
        self.session = self._runtime.open(job)
        return self.session

    def close(self):
        if self.session is not None:
            self.session.close()


@contextlib.contextmanager
def visitor(artefacts, hardware):
    one = Visitor(artefacts, hardware)
    try:
        yield one
    finally:
        one.close()


def visits(session):
    return session.evidence().details["visits"]


@pytest.mark.parametrize("hardware", PLATFORMS)
def test_a_first_visit_fetches_all_and_a_repeat_visit_nothing(artefacts, hardware):
    with visitor(artefacts, hardware) as one:
        session = one.open("resnet-tiny")
        first, repeat = (visits(session)[name] for name in ("first", "repeat"))
        assert first["fetched"]["from_network"] >= first["fetched"]["bytes"] > 10**6
        assert repeat["fetched"]["from_network"] == 0
        assert repeat["fetched"]["bytes"] == first["fetched"]["bytes"]
        columns = session.visits(case_of("resnet-tiny", hardware, 1, "fp32"), 7.0)
    assert columns["repeat_visit_ms"] == repeat["script_ms"] + repeat["session_ms"] + 7.0
    assert columns["first_visit_ms"] > first["session_ms"] + first["first_inference_ms"]
    assert session.visits(case_of("resnet-tiny", hardware, 2, "fp32"), 7.0) == {}


def test_the_browser_stays_for_the_next_batch_and_one_that_ended_is_replaced(artefacts):
    with visitor(artefacts, "webnn") as one:
        before = one.open("resnet-tiny")
        browser = before._page.browser.processes()[0]
        address, baseline = before._page.server.address, before.host_memory
        after = one.open("resnet-tiny", batch=2)
        assert after._page.browser.processes()[0] == browser
        assert after._page.server.address != address
        assert after.host_memory is baseline
        # The visit is a first one all the same.
        fetched = visits(after)["first"]["fetched"]
        assert fetched["from_network"] >= fetched["bytes"] > 10**6
        inputs = after.prepare(case_of("resnet-tiny", "webnn", 2, "fp32"))
        assert [len(found) for found in after.outputs(inputs).values()] == [2]

        browser.kill()
        again = one.open("resnet-tiny", batch=2)
        assert again._page.browser.processes()[0] != browser
        inputs = again.prepare(case_of("resnet-tiny", "webnn", 2, "fp32"))
        assert again.sample(inputs, 2, Timing.WHOLE).phase_ns["step"][0] > 0


#: What is seen is the same whether a first visit came before, which `make test-full` makes: the
#: engine is then compiled twice, and a GPU's shaders for seconds.
visited = pytest.mark.parametrize(
    "first_visit",
    [pytest.param(False, id="opened"), pytest.param(True, id="visited", marks=pytest.mark.full)],
)


@visited
def test_so_is_one_that_ended_after_its_page_was_left(artefacts, first_visit):
    with visitor(artefacts, "wasm") as one:
        before = one.open("resnet-tiny", first_visit=first_visit)
        before.leave()
        browser = before._page.browser
        browser.processes()[0].kill()
        assert browser.ended_within(10)
        one.session = None  # it has been left
        assert one.open("resnet-tiny", first_visit=first_visit)._page.browser is not browser
        assert before._page.closed


def test_a_session_that_cannot_begin_leaves_no_browser(artefacts):
    with visitor(artefacts, "wasm") as one:
        device = Device("wasm", 0, "wasm", details={"path": str(program())})
        job = Job(case_of("resnet-tiny", "wasm", 1, "fp32"), device, JobSettings(seed=0, threads=1))
        with pytest.raises(CaseError):
            one._runtime.open(job)
        page = one._runtime._open_page
        assert page.closed
        assert page.browser.processes() == []


@visited
def test_all_batches_are_timed_in_a_session_that_says_nothing(artefacts, first_visit):
    with visitor(artefacts, "wasm") as one:
        session = one.open("resnet-tiny", first_visit=first_visit)
        asked = []
        ask = session._page.ask

        def listening(what, *more, **body):
            asked.append(what)
            return ask(what, *more, **body)

        session._page.ask = listening
        for batch in (1, 2):
            inputs = session.prepare(case_of("resnet-tiny", "wasm", batch, "fp32"))
            session.sample(inputs, 1, Timing.EACH)
            session.outputs(inputs)
            assert list(session.evidence().shares.values()) == [1.0]
    timed = [what for what in asked if what in ("steps", "traced", "open_again")]
    assert timed == ["steps", "traced", "open_again", "steps", "traced"]


@visited
def test_two_sessions_that_are_open_at_once_have_a_browser_each(artefacts, first_visit):
    with visitor(artefacts, "wasm") as one:
        first = one.open("resnet-tiny", first_visit=first_visit)
        one.session = None  # nobody leaves it
        second = one.open("resnet-tiny", first_visit=first_visit)
        assert first._page is not second._page
        first.close()
        assert second.sample(
            second.prepare(case_of("resnet-tiny", "wasm", 1, "fp32")), 1, Timing.EACH
        )


@visited
def test_a_gpu_process_that_ends_is_a_device_that_is_lost(artefacts, first_visit):
    with visitor(artefacts, "webgpu") as one:
        session = one.open("resnet-tiny", first_visit=first_visit)
        inputs = session.prepare(case_of("resnet-tiny", "webgpu", 1, "fp32"))
        session.sample(inputs, 1, Timing.EACH)
        for process in session._page.browser.processes():
            if "--type=gpu-process" in process.cmdline():
                process.kill()
        with refusal("device_lost"):
            session.sample(inputs, 100, Timing.EACH)


def test_a_batch_beyond_what_a_tab_can_address_is_out_of_memory(artefacts):
    """The logits alone would take 5 GB; the inputs are a few kilobytes."""
    with visitor(artefacts, "wasm") as one, pytest.raises(OutOfMemoryError):
        one.open("gpt2-tiny", batch=1600)  # a first visit is up to the first answer


def test_a_graph_of_which_something_is_left_over_has_a_cold_first_visit_too(artefacts):
    """DistilBERT's mask has an operator that WebGPU does not take."""
    with visitor(artefacts, "webgpu") as one:
        session = one.open("distilbert-tiny")
        details = session.evidence().details
    assert details["cpu_fallback"] == "watched"
    fetched = details["visits"]["first"]["fetched"]
    assert fetched["from_network"] >= fetched["bytes"] > 10**6


@visited
def test_the_adapter_computes_and_is_refused_halves_that_it_has_not(artefacts, first_visit):
    with visitor(artefacts, "webgpu") as one:
        session = one.open("resnet-tiny", first_visit=first_visit)
        adapter = session.evidence().details["adapter"]
        assert {"vendor", "architecture", "fallback", "features", "limits"} <= set(adapter)
        assert isinstance(adapter["fallback"], bool)
        if "shader-f16" in session.surroundings["adapter"]["features"]:
            return  # this machine's adapter computes in fp16
        with pytest.raises(UnsupportedError, match="shader-f16") as refused:
            one.open("resnet-tiny", precision="fp16", first_visit=first_visit)
    assert refused.value.reason == "precision"
