"""Which items a reference computes, and when it is asked for others."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from fixed_machine import CPU, models

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.run_options import RunSettings
from accelbench.run.plan.request import Planned
from accelbench.run.verify import reference
from accelbench.run.verify.reference import ITEMS, NoReferenceError
from accelbench.run.verify.verdicts import FAILED, NOT_DONE, OK
from accelbench.run.verify.verification import Verifications

RIGHT = {"error": 1e-7, "tolerance": 2e-4, "errors": {"y": 1e-7}, "wrong": "", "telling": True}
WRONG = {**RIGHT, "error": 1.0, "errors": {"y": 1.0}}


def planned_of(batch, precision="fp32"):
    return Planned(
        Case(models("bert-tiny")[0], Target("jax", "cpu"), precision, Shapes(batch)), CPU
    )


class Conducted:
    """Verifications whose reference keeps what it was asked."""

    def __init__(self, monkeypatch, item_seconds=None):
        self.asked = []
        self.refuses = False
        self.held = Verifications()
        flops = None if item_seconds is None else SimpleNamespace(flops=2e10 * item_seconds / 2)
        self.context = SimpleNamespace(
            observer=SimpleNamespace(progress=lambda _: None),
            worker_pool=SimpleNamespace(new_folder=lambda _: f"folder {len(self.asked)}"),
            settings=RunSettings.from_dict({"run_id": "x", "threads": 1}),
            cost=lambda planned: flops,
            runtimes={},
        )
        monkeypatch.setattr(reference, "ask", self._ask)

    def _ask(self, context, case, steps, requests, **_):
        (request,) = requests
        if self.refuses:
            raise NoReferenceError("there is no room")
        assert case.shapes.batch == len(request["items"])
        self.asked.append(request["items"])
        return [{"rounded": 0.01, "errors": {}}]

    def items(self, *batches, precision="fp32"):
        self.held.gather(self.context, planned_of(batches[0], precision), batches)
        return list(self.held.request(self.context, planned_of(batches[0], precision))["items"])

    def settled(self, answer, then):
        planned = planned_of(64)
        self.held.gather(self.context, planned, [64])
        decisive = self.held.settle_doubts(self.context, planned, answer, then)
        return self.held.judge(planned, decisive)


@pytest.mark.parametrize(
    ("item_seconds", "batches", "items"),
    [
        (None, (1,), 1),
        (None, (1, 2), 2),
        (None, (1, 8, 64), ITEMS),
        (1.0, (1, 8, 64), ITEMS),
        (0.0025, (1, 8, 64), 10),
        (0.0025, (1, 8), 8),
        (1e-5, (64,), 64),
    ],
)
def test_a_reference_computes_a_few_items_or_all_that_are_cheap(
    monkeypatch, item_seconds, batches, items
):
    conducted = Conducted(monkeypatch, item_seconds)
    assert conducted.items(*batches) == list(range(items))
    assert conducted.asked == [list(range(items))]


@pytest.mark.parametrize(("all_seconds", "spare_ms"), [(0.001, 5), (0.2, 10), (10.0, 50)])
def test_a_second_run_may_take_a_part_of_what_the_reference_takes(
    all_seconds, spare_ms, monkeypatch
):
    conducted = Conducted(monkeypatch)
    conducted.items(64)
    counted = SimpleNamespace(flops=2e10 * all_seconds / 2)
    conducted.context.cost = lambda _: counted
    request = conducted.held.request(conducted.context, planned_of(64))
    assert request["spare_ns"] == pytest.approx(spare_ms * 1e6)


def test_a_larger_batch_that_comes_later_has_enough_items(monkeypatch):
    conducted = Conducted(monkeypatch)
    assert len(conducted.items(1)) == 1
    assert len(conducted.items(64)) == ITEMS
    assert len(conducted.items(2)) == ITEMS
    assert len(conducted.asked) == 2
    assert len(conducted.items(8, precision="bf16")) == ITEMS  # only what rounding costs


@pytest.mark.parametrize(
    ("closer", "word"), [({**WRONG, "doubted": []}, FAILED), ({**RIGHT, "doubted": []}, OK)]
)
def test_items_in_doubt_are_settled_by_the_reference(closer, word, monkeypatch):
    conducted, asked = Conducted(monkeypatch), list[Mapping[str, Any]]()

    def ask(request):
        asked.append(request)
        return closer

    verdict = conducted.settled({**RIGHT, "doubted": [7, 41]}, ask)
    assert verdict.word == word
    assert conducted.asked == [[0, 1, 2], [7, 41]]
    ((items, doubted, folder),) = [(r["items"], r["doubted"], r["folder"]) for r in asked]
    assert (items, doubted, folder) == ([7, 41], True, "folder 1")
    later = conducted.held.request(conducted.context, planned_of(64))
    assert (later["items"], later["doubted"], later["folder"]) == ([0, 1, 2], False, "folder 0")


def test_doubts_that_the_reference_cannot_settle_leave_a_case_unverified(monkeypatch):
    conducted = Conducted(monkeypatch)
    conducted.held.gather(conducted.context, planned_of(64), [64])
    conducted.refuses = True
    verdict = conducted.settled({**RIGHT, "doubted": [7]}, lambda _: pytest.fail("nothing to ask"))
    assert verdict.word == NOT_DONE
    assert set(verdict.reasons) == {"verification_error", "verification_tolerance"}


def test_without_doubt_nothing_more_is_asked(monkeypatch):
    conducted = Conducted(monkeypatch)
    verdict = conducted.settled({**RIGHT, "doubted": []}, lambda _: pytest.fail("asked"))
    assert verdict.word == OK
    assert len(conducted.asked) == 1
