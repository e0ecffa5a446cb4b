"""A verdict that the reference's own rounding explains or leaves open, and those that stay."""

from types import SimpleNamespace

import pytest
from fixed_machine import CPU, models

from accelbench.core.abilities import RoundingReference
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.protocols import Job
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.models.inputs import settle
from accelbench.run.plan.request import Planned
from accelbench.run.verify import reference
from accelbench.run.verify.agreement import agree, pick
from accelbench.run.verify.reference import NoReferenceError
from accelbench.run.verify.verdicts import FAILED, NOT_DONE, OK
from accelbench.run.verify.verification import Verifications


def case_of(precision="fp32"):
    return Case(models("bert-tiny")[0], Target("jax", "cpu"), precision, Shapes(1, 16))


class Asked:
    """Verifications of one cell, whose reference is so far from itself in fp64.

    And in its output y by the last places of its inputs; in others it is not moved.
    """

    def __init__(self, monkeypatch, rounding, *drawn, last_places=None, narrow=None):
        self.rounding, self.drawn = rounding, drawn
        self.last_places, self.narrow = last_places, narrow
        self.asked = []
        self.held = Verifications()
        self.context = SimpleNamespace(
            observer=SimpleNamespace(progress=lambda _: None),
            worker_pool=SimpleNamespace(new_folder=lambda _: "folder"),
            settings=SimpleNamespace(verify="auto"),
            runtimes={},
        )
        monkeypatch.setattr(reference, "ask", self._ask)

    def _ask(self, *asked, wide=False):
        (request,) = asked[-1]
        if request["do"] == "outputs":
            return [{"rounded": self.narrow, "errors": {"y": self.narrow}}]
        if request["do"] == "drawn":
            return [{"drawn": list(self.drawn)}]
        assert wide == (request["do"] == "fp64")
        self.asked.append(request["do"])
        moved = self.rounding if wide else self.last_places
        if moved is None:
            raise NoReferenceError("it would not fit")
        return [{"error": moved, "errors": {"y": moved, "z": 1e-7}}]

    def verdict(self, error, tolerance=2e-4, precision="fp32", **errors):
        planned = Planned(case_of(precision), CPU)
        self.held.forget(planned)
        self.held.gather(self.context, planned, [1])
        answer = {
            "error": error, "tolerance": tolerance, "errors": {"y": error, **errors}, "wrong": "",
            "telling": True,
        }  # fmt: skip
        judged = self.held.judge(planned, answer)
        return self.held.reconsider(self.context, planned, judged)


def test_what_rounding_explains_is_neither_wrong_nor_asked_twice(monkeypatch):
    asked = Asked(monkeypatch, rounding=1e-4)
    verdict = asked.verdict(3e-4)
    assert (verdict.word, verdict.error, verdict.tolerance) == (OK, 3e-4, 4e-4)
    assert asked.held.known(asked.context, Planned(case_of(), CPU)) == verdict
    assert Asked(monkeypatch, rounding=1e-4).verdict(4e-4).word == OK
    assert Asked(monkeypatch, rounding=1e-4).verdict(4.1e-4).word == FAILED
    asked = Asked(monkeypatch, rounding=0.2)
    assert asked.verdict(9e-3).tolerance == pytest.approx(0.01)
    assert asked.verdict(1.1e-2).word == NOT_DONE

    asked = Asked(monkeypatch, rounding=1e-4)
    asked.verdict(3e-4)
    asked.verdict(9e-4)
    asked.verdict(0.3)
    assert asked.asked == ["fp64"]


@pytest.mark.parametrize("rounding", [1e-7, 0.7e-4, None])
def test_what_it_does_not_explain_stays_wrong(monkeypatch, rounding):
    verdict = Asked(monkeypatch, rounding).verdict(3e-4)
    assert (verdict.word, verdict.tolerance) == (FAILED, 2e-4)


@pytest.mark.parametrize(
    ("error", "tolerance", "precision"), [(1e-5, 2e-4, "fp32"), (0.7, 0.5, "bf16")]
)
def test_nobody_asks_where_rounding_would_change_nothing(monkeypatch, error, tolerance, precision):
    asked = Asked(monkeypatch, rounding=1.0)
    verdict = asked.verdict(error, tolerance, precision)
    assert verdict.word == (OK if error <= tolerance else FAILED)
    assert not asked.asked


class TestUndetermined:
    """What rounding alone moves further than is allowed."""

    @pytest.mark.parametrize(("moved", "error"), [(0.28, 0.31), (0.005, 0.019), (0.7, 1.3)])
    def test_an_engine_that_is_off_by_roundings_is_neither_wrong_nor_right(
        self, monkeypatch, moved, error
    ):
        verdict = Asked(monkeypatch, moved).verdict(error, z=1e-6)
        assert (verdict.word, verdict.error) == (NOT_DONE, None)
        assert f"rounding to fp32 alone moves the reference's output y by {moved:.2g}" in (
            verdict.why
        )
        assert f"{error:.2g} off shows neither" in verdict.why

    @pytest.mark.parametrize(
        ("moved", "error"), [(0.28, 0.7), (0.005, 0.021), (0.2, 0.51), (0.7, 1.5), (1e-4, 0.011)]
    )
    def test_one_that_is_off_by_more_is_wrong_however_badly_conditioned_the_model(
        self, monkeypatch, moved, error
    ):
        verdict = Asked(monkeypatch, moved).verdict(error)
        assert (verdict.word, verdict.error) == (FAILED, error)

    def test_what_fp64_says_of_outputs(self, monkeypatch):
        assert Asked(monkeypatch, 0.28).verdict(0.3, z=0.01).word == FAILED
        assert Asked(monkeypatch, 0.28).verdict(0.3, unknown=0.01).word == FAILED

        asked = Asked(monkeypatch, None, last_places=0.3)
        verdict = asked.verdict(0.31)
        assert asked.asked == ["fp64", "last_places"]
        assert verdict.word == NOT_DONE
        assert verdict.why.startswith("one unit in the last place of its inputs alone moves")
        assert Asked(monkeypatch, None).verdict(0.31).word == FAILED

    def test_a_narrow_type_is_held_against_its_own_rounding(self, monkeypatch):
        asked = Asked(monkeypatch, None, narrow=0.8)
        verdict = asked.verdict(0.9, tolerance=0.5, precision="bf16")
        assert verdict.word == NOT_DONE
        assert verdict.why.startswith(
            "rounding to bf16 alone moves the reference's output y by 0.8"
        )
        assert asked.verdict(1.7, tolerance=0.5, precision="bf16").word == FAILED
        assert not asked.asked
        assert Asked(monkeypatch, None, narrow=0.3).verdict(0.7, 0.5, "bf16").word == FAILED

    def test_what_is_no_number_is_wrong(self, monkeypatch):
        nan = None
        assert Asked(monkeypatch, 0.28).verdict(nan).word == FAILED


@pytest.mark.parametrize("name", ["bert-tiny", "mamba-tiny", "resnet-tiny", "t5-tiny"])
def test_the_reference_in_fp64_is_the_same_model_and_not_the_same_bits(name):
    (spec,) = models(name)
    case = Case(spec, Target("pytorch", "cpu"), "fp32", Shapes(1, 16))
    session = PytorchRuntime().open(Job(case, CPU))
    assert isinstance(session, RoundingReference)
    right = pick(session.outputs(session.prepare(case)), 0)
    other = pick(session.outputs(session.prepare(case, 5)), 0)
    exact = session.exact(session.prepare(case))
    # Mamba's own code ends with a cast to fp32.
    wide = {str(one.dtype) for one in exact.values() if one.dtype.kind == "f"}
    assert wide == ({"float32"} if name == "mamba-tiny" else {"float64"})
    assert 0 < agree(exact, right, other, "fp32").error < 2e-5


@pytest.mark.parametrize("name", ["bert-tiny", "resnet-tiny", "gpt2-tiny", "clip-tiny"])
def test_what_rounding_costs_grows_with_what_it_takes_away(name):
    (spec,) = models(name)
    case = Case(spec, Target("pytorch", "cpu"), "fp32", settle(spec, Shapes(1)))
    session = PytorchRuntime().open(Job(case, CPU))
    right = pick(session.outputs(session.prepare(case)), 0)
    other = pick(session.outputs(session.prepare(case, 5)), 0)
    off = {
        precision: agree(session.rounded(session.prepare(case), precision), right, other,
                         precision).error
        for precision in ("fp16", "bf16", "int8")
    }  # fmt: skip
    assert 0 < off["fp16"] < 0.02
    assert 3 * off["fp16"] < off["bf16"] < 0.2
    assert 1e-3 < off["int8"] < 0.4
    again = session.outputs(session.prepare(case))
    assert agree(again, right, other, "fp32").error == 0.0


def test_outputs_that_the_reference_draws_anew_each_time_say_nothing(monkeypatch):
    """Dropout that is left on, or a second output that is noise."""
    verdict = Asked(monkeypatch, 0.0, "y").verdict(0.7)
    assert verdict.word == NOT_DONE
    assert "differ from run to run" in verdict.why
    rest = Asked(monkeypatch, 0.0, "y").verdict(0.7, z=1e-5)
    assert (rest.word, rest.error, dict(rest.errors)) == (OK, 1e-5, {"z": 1e-5})
    for other in ({"z": 0.7}, {"z": 0.1, "x": 1e-5}):
        assert Asked(monkeypatch, 0.0, "y").verdict(0.7, **other).word == FAILED
    assert Asked(monkeypatch, 0.0).verdict(0.7).word == FAILED
    # What it draws is no rounding, and excuses nothing else.
    mixed = Asked(monkeypatch, 0.7, "y").verdict(0.7, z=0.7)
    assert (mixed.word, mixed.error) == (FAILED, 0.7)
