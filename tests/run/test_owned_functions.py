"""Functions of one's own that are remembered, late or honest, and what becomes of them.

Time is a script's: what is found does not depend on the machine.
"""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from lying import CPU, WORLD, ask_bench, bench_of

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError
from accelbench.core.serial import case_to_json, device_to_json
from accelbench.engines.python import PythonRuntime, session
from accelbench.engines.python.session import PythonSession
from accelbench.models.code_models import loading
from accelbench.models.file_models.given_inputs import parse_inputs
from accelbench.models.inputs import settle
from accelbench.models.selection import choose
from code_looked_at import look_here

FUNCTIONS = Path(__file__).with_name("owned_functions.py")
X = ("x=float32[batch,4]",)


@pytest.fixture(scope="module")
def measured_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("owned") / "functions.py"
    shutil.copy(FUNCTIONS, file)
    return file


@pytest.fixture
def measure(measured_file, monkeypatch):
    look_here(monkeypatch)
    # What goes on after a call is asked in `engines/test_python_answers.py`; it takes a second.
    monkeypatch.setattr(session, "left_running", lambda: "")
    # Resolving the paths of two thousand imported modules took half of a measurement.
    monkeypatch.setattr(loading, "imported_below", lambda top: [measured_file.resolve()])

    def measured(name, inputs=()):
        WORLD.__init__()
        given = parse_inputs(list(inputs)) if inputs else None
        (spec,) = choose([f"{measured_file}:{name}"], None, (), (), all_models=False, inputs=given)
        case = Case(spec, Target("python", "cpu"), "fp32", settle(spec, Shapes(1)))
        runtime = SimpleNamespace(
            info=PythonRuntime.info,
            clock=lambda: WORLD.clock,
            open=lambda job: PythonSession(job, WORLD.clock),
        )
        bench = bench_of(runtime)
        asked = {"case": case_to_json(case)}
        job = {**asked, "device": device_to_json(CPU), "seed": 0, "threads": None}
        more = {"weights": "random", "trust_remote_code": False}
        ask_bench(bench, {"do": "open", "job": {**job, **more}})
        rules = {"iterations": 40, "warmup": 5, "seconds": 10}
        return ask_bench(bench, {"do": "measure", **asked, "rules": rules, "alone": True})

    return measured


def refused(measure, *words):
    with pytest.raises(CaseError) as error:
        measure(*words)
    return error.value.reason


@pytest.mark.parametrize(
    "name",
    ["found_in_lru", "found_in_dict", "array_in_dict", "in_closure", "on_itself", "Remembers"],
)
def test_an_answer_that_is_handed_out_again_is_refused(measure, name):
    assert refused(measure, name) == "cached"


@pytest.mark.parametrize("name", ["copied_by_content", "copied_by_first_element"])
def test_copies_of_what_is_kept_are_refused_with_an_example(measure, name):
    assert refused(measure, name) == "cached"


def test_steps_that_leave_other_outputs_than_calls_are_refused(measure):
    assert refused(measure, "computed_outside_of_blocks") == "wrong_steps"


@pytest.mark.parametrize("name", ["copied_whatever_the_input", "copied_after_seven_calls"])
def test_an_answer_that_ignores_other_numbers_is_named(measure, name):
    assert measure(name)["evidence"]["details"]["same_for_similar_inputs"]


@pytest.mark.parametrize("name", ["by_content", "of_the_latest", "by_content_after_20_uses"])
def test_a_cache_by_inputs_is_not_filled_before_it_is_looked_for(measure, name):
    assert refused(measure, name, X) == "cached"


@pytest.mark.parametrize(
    "name",
    [
        "as_array",
        "within",
        "once",
        "frame",
        "iterable",
        "fields",
        "late_array",
        "late_float",
        "late_error",
    ],
)
def test_late_values_are_evaluated_in_the_step(measure, name):
    found = measure(name)
    assert found["metrics"]["latency_mean_ms"] == pytest.approx(0.602)
    assert found["evidence"]["details"]["evaluated"]


@pytest.mark.parametrize(
    "name",
    ["cached_attribute", "any_name", "hidden_future", "late_from_the_fourth_call_on", "forked"],
)
def test_what_is_not_finished_and_cannot_be_evaluated_is_refused(measure, name):
    assert refused(measure, name) == "unfinished"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("handle", "Handle"),
        ("handle_by_number", "Handle"),
        ("described", "Described"),
        ("called", "Called"),
        ("intercepted", "Intercepted"),
    ],
)
def test_an_object_whose_methods_may_compute_is_named(measure, name, kind):
    assert measure(name)["evidence"]["details"]["holds_only_inputs"] == [kind]


def test_a_default_that_is_computed_is_named(measure):
    details = measure("by_default")["evidence"]["details"]
    assert details["computed_when_read"] == ["defaultdict.default_factory"]


def test_a_cache_that_is_only_a_part_of_a_call_is_named(measure):
    details = measure("copied_from_lru")["evidence"]["details"]
    assert details["found_in_caches"] == ["lru"]


@pytest.mark.parametrize(
    "name",
    [
        "result",
        "order",
        "into_a_buffer",
        "into_a_cached_buffer",
        "into_a_list",
        "constant",
        "longest",
        "with_a_cached_helper",
        "in_place",
        "of_nothing",
        "looked_up",
        "slower_with_other_numbers",
        "only_its_example",
        "largest",
    ],
)
def test_an_honest_function_is_measured(measure, name):
    details = measure(name)["evidence"]["details"]
    named = {key: details[key] for key in NAMED if details.get(key)}
    assert named == EXPECTED.get(name, {})


def test_an_honest_function_with_drawn_inputs_is_measured(measure):
    assert measure("product", X)["metrics"]["latency_mean_ms"] == pytest.approx(0.6)


#: What a reader is warned of, by the name of the detail.
NAMED = (
    "evaluated", "computed_when_read", "holds_only_inputs", "same_answer", "found_in_caches",
    "same_for_similar_inputs",
)  # fmt: skip
EXPECTED = {
    "result": {"computed_when_read": ["Result.report"]},
    "order": {"holds_only_inputs": ["Order"]},
    "into_a_cached_buffer": {"found_in_caches": ["buffer"]},
    "looked_up": {"same_answer": True},
}
