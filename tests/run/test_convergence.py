"""Convergence: what a case's falling loss is compared with, and what comes of it."""

from dataclasses import replace

import pytest
from convergence_makers import FALLING, Workshop, case_of, context_of, falls, gathered, measured
from fixed_machine import CPU, models
from scripted_runs import Watcher

from accelbench.core.run_options import JobSettings, RunSettings
from accelbench.core.serial import case_from_json
from accelbench.core.vocabulary import Mode, Status
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.run.plan.request import Planned, Refusal
from accelbench.run.verify.convergence import (
    STEPS,
    ConvergenceResult,
    Curve,
    convergence,
    judge_fp32,
    losses_request,
)
from accelbench.run.verify.reference import is_own, reference_of
from accelbench.run.verify.verdicts import FAILED, ITSELF, NOT_DONE, OK
from accelbench.run.worker.worker import loss_curve


class TestFigure:
    def test_a_figure_is_how_far_the_first_steps_fell(self):
        reference = Curve(FALLING)
        half = [2.0 - 0.05 * i for i in range(STEPS)]
        assert convergence(reference, reference) == (1.0, "")
        assert convergence(Curve(half), reference)[0] == pytest.approx(0.5)
        assert convergence(Curve(FALLING[::-1]), reference)[0] == pytest.approx(-1.0)

        assert convergence(Curve([*FALLING, 99.0]), Curve([*FALLING, -99.0])) == (1.0, "")
        reference = Curve([2.0] * (STEPS - 1) + [1.979])
        assert convergence(reference, reference) == (1.0, "")

    @pytest.mark.parametrize(
        ("curve", "reference", "part"),
        [
            (Curve(why="it snowed"), Curve(FALLING), "it snowed"),
            (Curve(FALLING[:-1]), Curve(FALLING), "told 9 losses of 10"),
            (Curve(FALLING), Curve(why="it rained"), "it rained"),
            (Curve(FALLING), Curve([0.0] * STEPS), "0 from the start, as a contrastive loss"),
            (Curve(FALLING), Curve(FALLING[::-1]), "does not fall by 1%"),
            (Curve(FALLING), Curve([2.0] * (STEPS - 1) + [1.981]), "(2 to 1.981)"),
        ],
    )
    def test_without_a_figure_there_is_a_reason(self, curve, reference, part):
        found, why = convergence(curve, reference)
        assert found is None
        assert part in why


class TestWhatIsCompared:
    @pytest.mark.parametrize("options", [{}, {"threads": 2}, {"optimizer": "sgd"}])
    def test_fp32_on_the_cpu_is_its_own_reference(self, options):
        case = case_of("fp32", **options)
        assert is_own(case)
        curves, shop = gathered([case])
        # Its timed losses, of few steps and with dropout, have no part in it.
        known = curves.known(context_of(shop), case, measured([1.0, 2.0]))
        assert known == ConvergenceResult(ITSELF, 1.0)
        assert known.columns == {"convergence": 1.0, "convergence_steps": STEPS}
        assert not known.reasons
        assert not shop.made

    def test_another_question_has_another_reference_and_inference_has_none(self):
        case = case_of("fp32", batch=1)
        curves, shop = gathered([case])
        known = curves.known(context_of(shop), case, measured([0.0] * STEPS))
        assert "contrastive" in known.why
        others = [case_of(), case_of(optimizer="sgd"), case_of(batch=4)]
        others.append(replace(case_of(), model=models("distilbert-tiny")[0]))
        assert len({reference_of(case).case_id for case in others}) == 4
        _, shop = gathered([case_of(mode=Mode.INFERENCE)])
        assert not shop.made

    @pytest.mark.parametrize(
        "case",
        [
            case_of("bf16"),
            case_of("fp32", hardware="cuda"),
            case_of("fp32", runtime="jax"),
            case_of("fp32", compile=True),
            case_of("fp32", gradient_checkpointing=True),
        ],
        ids=str,
    )
    def test_everything_else_is_held_against_it(self, case):
        assert not is_own(case)
        assert reference_of(case).case_id == case_of("fp32").case_id
        assert is_own(reference_of(case))


class TestCurve:
    def test_it_is_trained_with_the_settings_of_the_run(self):
        case = case_of("bf16", hardware="cuda", optimizer="sgd", gradient_checkpointing=True)
        curves, shop = gathered([case])
        opened, trained = shop.asked
        job = opened["job"]
        assert opened["do"] == "open"
        assert job["device"]["hardware"] == "cpu"
        assert (job["seed"], job["threads"], job["weights"]) == (5, 1, "random")
        assert job["data"] == "pictures"
        assert (trained["do"], trained["steps"]) == ("losses", STEPS)
        for said in (job["case"], trained["case"]):
            assert case_from_json(said).case_id == case_of("fp32", optimizer="sgd").case_id
        half = Curve([2.0 - 0.05 * i for i in range(STEPS)])
        found = curves.judge(context_of(shop), case, half)
        assert found.columns == {"convergence": pytest.approx(0.5), "convergence_steps": STEPS}
        assert not found.reasons
        # The last loss is off by half of all that the reference falls.
        assert found.verdict.word == FAILED
        assert found.verdict.error == pytest.approx(0.5)

    def test_a_curve_is_trained_once_a_question(self):
        shop = Workshop(falls)
        context = context_of(shop)
        cases = [case_of("bf16"), case_of("fp16"), case_of("fp32", hardware="cuda")]
        for _ in range(2):
            context.curves.gather(context, [Planned(case, CPU) for case in cases])
        assert len(shop.made) == 1

        _, shop = gathered([case_of(batch=1), case_of(batch=4)])
        assert len(shop.made) == 2

        shop = Workshop(falls)
        context = context_of(shop)
        refusal = Refusal(Status.UNSUPPORTED, "precision", "no", "")
        context.curves.gather(context, [Planned(case_of(), CPU, refusal)])
        assert not shop.made


class TestOwnNoise:
    """Training that is chaotic from its start takes itself elsewhere, and blames nobody."""

    OFF = Curve([2.0 - 0.07 * i for i in range(STEPS)])  # by 0.3 of the fall

    @staticmethod
    def chaotic(request):
        """Narrow products show from the first step on, which no chaos explains."""
        slope = 0.08 if request.get("nudge") else 0.1
        off = 0.01 if request.get("narrow") else 0.0
        return {"losses": [2.0 + off - slope * i for i in range(STEPS)]}

    def judged(self, shop, curve, precision="fp32"):
        case = case_of(precision, runtime="jax")
        curves, _ = gathered([case], shop)
        return curves.judge(context_of(shop), case, curve).verdict

    def test_what_a_nudge_does_to_the_reference_is_allowed_four_times(self):
        verdict = self.judged(Workshop(self.chaotic), self.OFF)
        assert verdict.word == OK
        assert verdict.error < verdict.tolerance <= 4 * 0.2

    def test_chaos_is_no_excuse_for_narrow_products(self):
        """The first loss is of a forward pass alone."""
        narrow = Curve([2.01, *self.OFF.losses[1:]])
        assert self.judged(Workshop(self.chaotic), narrow).word == NOT_DONE

    def test_without_such_noise_it_is_wrong(self):
        verdict = self.judged(Workshop(falls), self.OFF)
        assert verdict.word == FAILED
        assert verdict.tolerance == pytest.approx(0.01)

    def test_what_is_right_costs_no_second_curve(self):
        shop = Workshop(falls)
        for precision, off in (("fp32", 1e-5), ("bf16", 0.05)):
            near = Curve([FALLING[0], *(loss + off * 0.9 for loss in FALLING[1:])])
            assert self.judged(shop, near, precision).word == OK
        assert len(shop.made) == 2

    def test_a_nudge_is_of_weights_too(self):
        """Ids of words cannot be a little larger."""
        from accelbench.core.protocols import Job
        from accelbench.engines.pytorch.session import PytorchSession

        case = case_of("fp32")
        session = PytorchSession(Job(case, CPU, JobSettings(threads=1)), PytorchRuntime().clock())
        request = losses_request(case)
        same, nudged, narrow = (
            loss_curve(session, request | more, PytorchRuntime().clock(), None, None)["losses"]
            for more in ({}, {"nudge": 1e-3}, {"narrow": True})
        )
        assert same[0] != nudged[0]
        assert abs(same[0] - narrow[0]) < abs(same[0] - nudged[0])
        assert same != narrow


#: Errors in parts of the fall, measured: of the reference with narrow products, of silent fp16,
#: and of JAX in fp32.
NARROW = {
    "bert-tiny": (2e-5, 5e-5, 9.7e-5), "vit-tiny": (2e-5, 1e-5, 4.5e-5),
    "resnet-tiny": (2e-4, 1e-3, 2.9e-3), "clip-tiny": (4e-4, 1e-3, 2e-3),
}  # fmt: skip
FP16 = {
    "bert-tiny": (3e-5, 3e-4, 3.1e-4), "vit-tiny": (4e-5, 1e-4, 2.1e-4),
    "resnet-tiny": (2e-4, 9e-4, 1.7e-3), "clip-tiny": (2e-4, 6e-4, 1.6e-3),
}  # fmt: skip


class TestNarrowProducts:
    """In fp32 a training whose products are silently narrow is not verified."""

    @pytest.mark.parametrize("model", NARROW)
    def test_fp16_is_not_verified_as_fp32(self, model):
        noise = (5e-7, 1e-6, 4e-4 if model == "resnet-tiny" else 1e-6)
        assert judge_fp32(FP16[model], noise, NARROW[model]).word == NOT_DONE
        bf16 = [8 * error for error in FP16[model]]
        assert judge_fp32(bf16, noise, NARROW[model]).word == NOT_DONE

    @pytest.mark.parametrize("model", [model for model in NARROW if model != "vit-tiny"])
    def test_fp32_of_another_engine_is(self, model):
        noise = (5e-7, 1e-6, 4e-4 if model == "resnet-tiny" else 1e-6)
        assert judge_fp32((1e-7, 4e-6, 2.2e-5), noise, NARROW[model]).word == OK

    def test_what_cannot_be_told_apart_is_not_verified(self):
        assert judge_fp32((1e-3,) * 3, (1e-2,) * 3, (1e-2,) * 3).word == NOT_DONE
        assert judge_fp32((1e-3,) * 3, (0.0,) * 3, (0.0,) * 3).word == NOT_DONE


class TestWeights:
    """What the reference trains has to be trained, and in the steps that are timed."""

    @staticmethod
    def trains(request):
        return {**falls(request), "moved": [f"w{i}" for i in range(10)], "still": ["idle"]}

    def word(self, case, **weights):
        shop = Workshop(self.trains)
        curves, _ = gathered([case], shop)
        return str(curves.judge(context_of(shop), case, Curve(FALLING, "", **weights)).verdict.word)

    def test_weights_tell_what_was_trained(self):
        case = case_of("fp32", runtime="jax")
        moved = [f"w{i}" for i in range(9)]
        assert self.word(case, moved=moved, still=["w9", "idle"]) == FAILED
        assert self.word(case, moved=[*moved, "w9"], still=["idle"]) == OK
        moved = [f"w{i}" for i in range(9)]
        assert self.word(case_of("fp16"), moved=moved, still=["w9"]) == OK
        assert self.word(case_of("fp16"), moved=moved[:5], still=["w5", "w6", "w7", "w8"]) == FAILED
        names = [f"w{i}" for i in range(10)]
        assert self.word(case_of("bf16"), moved=names, idle=names[:4]) == FAILED
        assert self.word(case_of("fp32", runtime="jax"), moved=["a"], still=["b"]) == OK


def test_a_run_on_another_runtime_says_why_it_has_no_convergence(scripted):
    """The scripted runtime tells no losses, and no pytorch is among this run's runtimes."""
    planned = scripted.journey(batches=[1])
    cases = tuple(
        replace(one, case=replace(one.case, mode=Mode.TRAINING)) for one in planned.plan.cases
    )
    planned = replace(planned, plan=replace(planned.plan, cases=cases))
    (row,) = scripted.start(planned, Watcher()).rows
    assert row["status"] == "ok"
    assert row.get("convergence") is None
    assert row["nulls"]["convergence"] == "the runtime tells no losses"


def test_a_real_case_is_held_against_a_real_reference(tmp_path):
    """Two workers of the engine: fp32 trains unmeasured, then bf16 is measured."""
    from accelbench.core.facts import new_run_id
    from accelbench.run.conduct import lifecycle
    from accelbench.run.conduct.lifecycle import PlannedRun
    from accelbench.run.plan.request import Plan

    plan = Plan((Planned(case_of("bf16"), CPU),))
    settings = RunSettings(run_id=new_run_id(), threads=1, iterations=3, warmup=2)
    runtimes = {"pytorch": PytorchRuntime()}
    phases = []
    watcher = Watcher(lambda progress: phases.append(progress.phase))
    (row,) = lifecycle.start(PlannedRun(plan, settings, runtimes), tmp_path, watcher, {}).rows
    assert row["status"] == "ok", row["message"]
    assert phases[0] == "reference"
    assert phases[-1] == "convergence"
    assert row["convergence_steps"] == STEPS
    # The same bits but for the rounding: not exactly as far, and nearly. Both without
    # dropout: with it, other draws alone were seen to make 1.3 to 2.6 of it.
    assert 0.98 < row["convergence"] < 1.02
    assert row["convergence"] != 1.0
    assert row["verification"] == "ok"
    assert row["verification_error"] < row["verification_tolerance"]
    assert row["loss_first"] == row["loss_per_step"][0]
    assert len(row["loss_per_step"]) >= 6
    for phase in ("forward", "loss", "backward", "optimizer"):
        assert row[f"{phase}_ms"] > 0
