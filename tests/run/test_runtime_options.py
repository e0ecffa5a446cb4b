"""Options of one runtime's own, in the plan: another question, where they are set alone."""

from fixed_machine import FOUND, models

from accelbench.run.plan import expand
from accelbench.run.plan.request import Request


def planned(scripted, options):
    request = Request(
        models("bert-tiny"),
        hardware=("cpu",),
        runtimes=("scripted", "second"),
        batch_sizes=(1,),
        options={"threads": 1},
        runtime_options=options,
    )
    plan = expand.plan_for(request, FOUND, scripted.runtimes)
    return [one.case for one in plan.cases], plan.notes


def test_an_option_is_a_question_of_the_runtime_it_was_set_for(scripted):
    (first, second), notes = planned(scripted, {"scripted": {"pace": "fast"}})
    assert first.options == {"threads": 1, "pace": "fast"}
    assert second.options == {"threads": 1}
    assert "pace=fast" in str(first)
    assert not notes

    plain, fast, slow = (
        planned(scripted, options)[0][0].case_id
        for options in ({}, {"scripted": {"pace": "fast"}}, {"scripted": {"pace": "slow"}})
    )
    assert plain == slow != fast

    _, notes = planned(scripted, {"elsewhere": {"pace": "fast"}})
    assert notes == ("The options for elsewhere change nothing: it is no runtime of this run.",)
