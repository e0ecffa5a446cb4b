"""Convergence: asking the worker that measured, and what it answers."""

import pytest
from convergence_makers import FALLING, Workshop, case_of, context_of, falls, measured
from fixed_machine import CPU

from accelbench.core.errors import UnsupportedError
from accelbench.core.protocols import Evidence
from accelbench.core.vocabulary import Outcome, Quality, Status
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.measure.loop import Measurement
from accelbench.run.conduct.launch import GroupLaunch
from accelbench.run.conduct.results import LaunchFacts
from accelbench.run.plan.request import Planned
from accelbench.run.process.wire import ClosedError
from accelbench.run.verify.convergence import STEPS
from accelbench.run.worker.worker import CaseBench, skipped

NEARLY = pytest.approx(0.01)


class TestAskingItsWorker:
    """Whatever becomes of the pass, what was measured before stands."""

    def compared(self, shop):
        context = context_of(shop)
        planned = Planned(case_of(), CPU)
        context.curves.gather(context, [planned])
        launch = GroupLaunch(context, LaunchFacts("run", 1), [planned], 1, 1)
        shop.answer = self.answer
        launch._talk._worker = shop.worker(PytorchRuntime(), None)
        outcome = Outcome(Status.OK, measurement={"metrics": measured()})
        return launch._compared(planned.case, outcome), launch

    def answer(self, _):
        return {"losses": [2.0 - 0.099 * i for i in range(STEPS)], "cpu_seconds": 3.0}

    def test_its_losses_without_dropout_are_what_is_compared(self):
        outcome, launch = self.compared(Workshop(falls))
        metrics = outcome.measurement["metrics"]
        assert metrics["convergence"] == pytest.approx(0.99)
        assert (metrics["verification"], metrics["verification_error"]) == ("ok", NEARLY)
        assert metrics["loss_per_step"] == FALLING  # of the timed steps, as they were
        assert launch._talk._worker is not None

    def test_losses_of_another_training_are_no_result(self, monkeypatch):
        wrong = {"losses": FALLING[::-1], "cpu_seconds": 3.0}
        # Asked for its own noise, the reference falls as before.
        monkeypatch.setattr(self, "answer", lambda r: falls(r) if r.get("nudge") else wrong)
        outcome, _ = self.compared(Workshop(falls))
        assert (outcome.status, outcome.reason) == (Status.FAILED, "wrong_outputs")
        assert "latency_mean_ms" not in outcome.measurement["metrics"]

    @pytest.mark.parametrize(
        ("answer", "part"),
        [
            (
                {"event": "error", "status": "failed", "reason": "loss_not_finite", "advice": ""}
                | {"message": "the loss of training step 3 is nan"},
                "step 3 is nan",
            ),
            (ClosedError("end of file"), "goodbye"),
            (TimeoutError(), "not finished after 600 s"),
        ],
    )
    def test_a_failure_is_a_reason_and_the_next_case_has_a_fresh_worker(
        self, answer, part, monkeypatch
    ):
        monkeypatch.setattr(self, "answer", lambda _: answer)
        outcome, launch = self.compared(Workshop(falls))
        assert outcome.status is Status.OK
        assert outcome.measurement["metrics"]["latency_mean_ms"] == 100
        assert part in outcome.null_reasons["convergence"]
        assert launch._talk._worker is None


class TestWorker:
    def test_a_session_that_cannot_do_without_dropout_says_so(self):
        bench = CaseBench(PytorchRuntime(), None)
        bench._session = object()
        with pytest.raises(UnsupportedError, match="pytorch cannot train without dropout"):
            bench.answer({"do": "losses", "case": {}, "steps": STEPS})

    @pytest.mark.parametrize(
        ("training", "said"),
        [
            ({}, []),
            ({"skipped_steps": None}, []),
            ({"skipped_steps": 0}, []),
            ({"skipped_steps": 1}, ["1 training step overflowed"]),
            ({"skipped_steps": 3}, ["3 training steps overflowed"]),
        ],
    )
    def test_steps_that_were_timed_and_skipped_are_told(self, training, said):
        evidence = Evidence(("cpu:0",), details={"training": training} if training else {})
        warnings = skipped(Measurement({}, {}, {}, Quality.CONVERGED, [], evidence))
        assert [text[: len(part)] for text, part in zip(warnings, said, strict=True)] == said
