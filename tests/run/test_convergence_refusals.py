"""Convergence: when no curve is trained, and the reason that a case then has."""

from dataclasses import replace

import pytest
from convergence_makers import (
    Card,
    Workshop,
    case_of,
    context_of,
    falls,
    gathered,
    measured,
    why_not,
)
from fixed_machine import CPU, models

from accelbench.core.case import Shapes
from accelbench.core.errors import SurroundingsError
from accelbench.core.model import AnalyticCost
from accelbench.core.protocols import Support
from accelbench.core.run_options import RunSettings
from accelbench.run.plan.request import Planned
from accelbench.run.plan.run_forecast import Budget
from accelbench.run.process.wire import ClosedError
from accelbench.run.verify.convergence import STEPS


def flops(value):
    return lambda _: AnalyticCost(value, 0.0, 0.0, 0.0, 0.0)


class TestOwnPass:
    """When the worker that measured is asked for its losses, and when it need not be."""

    def test_it_is_asked_where_it_is_worth_its_time(self):
        curves, shop = gathered([case_of()])
        assert curves.known(context_of(shop), case_of(), measured()) is None
        curves, shop = gathered([case_of()])
        known = curves.known(context_of(shop), case_of(), {"latency_mean_ms": 1.0})
        assert known.why == "the runtime tells no losses"
        curves, shop = gathered([case_of()])
        known = curves.known(context_of(shop), case_of(), measured(seconds=7))
        assert "would take 70 s, and 60 s is the most" in known.why

        curves, shop = gathered([case_of()])
        known = curves.known(
            context_of(shop), case_of(compile=True), measured() | {"compile_ms": 60_000.0}
        )
        assert "would take 61 s, and 60 s is the most" in known.why

        curves, shop = gathered([case_of()])
        context = context_of(shop, budget=Budget(40.0, 1, now=lambda: 0.0))
        known = curves.known(context, case_of(), measured(seconds=1.1))
        assert "would take 11 s, and 10 s is the most" in known.why
        assert curves.known(context, case_of(), measured(seconds=0.9)) is None

        shop = Workshop(lambda request: {**falls(request), "losses": [0.0] * STEPS})
        assert "contrastive" in why_not([case_of(batch=1)], shop)


class TestWhyNot:
    def test_a_reference_that_cannot_be_trained_says_why(self):
        assert "pytorch is not installed" in why_not([case_of()], runtimes={})
        card = Card(Support(ok=False, reason="no_training", message="nobody trains this"))
        assert "nobody trains this" in why_not([case_of()], runtimes={"pytorch": card})

        shop = Workshop(falls)
        why = why_not([case_of()], shop, estimate=lambda _: 3 * 2**30)
        assert "3.0 GiB" in why
        assert "1.0 GiB is free" in why
        assert not shop.made

        why = why_not([case_of()], estimate=lambda _: None, free=lambda _: 2**20)
        assert "GiB is free" in why

        shop = Workshop(falls)
        # 10 steps of 2e11 operations at 2e10 a second.
        assert "100 s, and 60 s" in why_not([case_of()], shop, cost=flops(2e11))
        assert not shop.made
        gathered([case_of()], shop, cost=flops(1e11))
        assert shop.made

        budget = Budget(40.0, 1, now=lambda: 0.0)
        assert "20 s, and 10 s" in why_not([case_of()], cost=flops(4e10), budget=budget)
        large = replace(case_of(), model=models("bert-base")[0], shapes=Shapes(128, 512))
        assert "would take" in why_not([large])

    @pytest.mark.parametrize(
        ("answer", "part"),
        [
            ({"event": "error", "message": "the loss of step 3 is nan"}, "step 3 is nan"),
            (ClosedError("end of file"), "ended in the middle"),
            (TimeoutError(), "not finished after 240 s"),
        ],
    )
    @pytest.mark.parametrize("when", ["open", "losses"])
    def test_whatever_happens_to_its_worker(self, when, answer, part):
        shop = Workshop(lambda request: answer if request["do"] == when else falls(request))
        assert part in why_not([case_of()], shop)

    @pytest.mark.parametrize(
        "error", [SurroundingsError("no engine"), ClosedError(), TimeoutError()]
    )
    def test_its_worker_does_not_start(self, error):
        assert "did not start" in why_not([case_of()], Workshop(falls, fails=error))

    def test_a_reason_is_remembered_as_a_curve_is(self):
        shop = Workshop(lambda _: ClosedError("end of file"))
        context = context_of(shop)
        for _ in range(3):
            context.curves.gather(context, [Planned(case_of(), CPU)])
        assert len(shop.made) == 1


def test_a_run_that_verifies_nothing_trains_no_reference():
    """`--benchmark-only` is of training as well."""
    shop, settings = Workshop(falls), RunSettings(run_id="run", threads=1, verify="off")
    assert why_not([case_of("bf16")], shop, settings=settings) == "it was not asked for"
    assert shop.made == []
