"""`accelbench check --noise`: what a check sees between two runs of one thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accelbench.cli.arguments.resolved_values import platforms, precisions
from accelbench.cli.services.measuring import measured
from accelbench.cli.services.opening import typed_command
from accelbench.core.errors import EXIT_INCONCLUSIVE, EXIT_OK, UsageError
from accelbench.core.facts import new_run_id
from accelbench.core.result_statistics import FEWEST_LAUNCHES
from accelbench.core.run_options import RunSettings
from accelbench.core.vocabulary import Mode
from accelbench.engines.shared.names import runtimes_named
from accelbench.exchange.titles import format_title
from accelbench.judge.baselines import rows_of_runs
from accelbench.judge.filters import Filters, by_word, words_of
from accelbench.judge.older_runs import NOISE
from accelbench.judge.run_noise import NoiseFloor, floors
from accelbench.judge.suggestions import NothingMeasuredError
from accelbench.judge.verdicts import Judgement
from accelbench.models.find import find
from accelbench.present.terminal.terminal import print_document
from accelbench.run.conduct.lifecycle import PlannedRun
from accelbench.run.plan import expand
from accelbench.run.plan.request import Request

if TYPE_CHECKING:
    from accelbench.core.protocols import Inventory, Runtime
    from accelbench.store.database import Database


_DEFAULT_MODEL = "bert-tiny"


def noise_floor(database: Database, filters: Filters, launches: int, as_json: bool) -> int:
    """Measure the same `launches` times a side, print the differences, and return the exit code."""
    if launches < FEWEST_LAUNCHES:
        raise UsageError(f"{launches} launches a side say little.", "Take five or more.")
    run = _measured(database, filters, 2 * launches)
    noise_floors = floors(rows_of_runs(database, [run]))
    if not noise_floors:
        raise NothingMeasuredError(f"No launch of run {run} came to a figure.")
    if as_json:
        document = {
            "run_id": run,
            "launches": launches,
            "floors": [_told(floor) for floor in noise_floors],
        }
        print_document(document)
    else:
        from accelbench.present.terminal.documents import show
        from accelbench.present.terminal.hardware import noise_document

        show(noise_document(noise_floors))
    steady = all(floor.against_itself.answer is Judgement.STEADY for floor in noise_floors)
    return EXIT_OK if steady else EXIT_INCONCLUSIVE


def _measured(database: Database, filters: Filters, launches: int) -> str:
    request = Request(
        models=tuple(find(name) for name in _models(filters)),
        hardware=platforms(words_of(filters, "hardware") or ("cpu",)),
        runtimes=runtimes_named(words_of(filters, "runtime")),
        precisions=precisions(tuple(by_word("precision", words_of(filters, "precision")))),
        batch_sizes=tuple(map(int, filters.get("batch_size", (1,)))),
        modes=tuple(Mode(mode) for mode in words_of(filters, "mode") or (Mode.INFERENCE,)),
    )
    settings = RunSettings(run_id=new_run_id(), launches=launches)
    about = {"command": typed_command(), "label": NOISE}

    def planner(inventory: Inventory, runtimes: Mapping[str, Runtime]) -> list[PlannedRun]:
        plan = expand.plan_for(request, inventory, runtimes)
        return [PlannedRun(plan, settings, runtimes, about)]

    (run,) = measured(database, planner)
    return run


def _models(filters: Filters) -> Sequence[str]:
    """Named ones by the catalogue's names: beside each stands the word that was typed."""
    return tuple(
        dict.fromkeys(find(name).id for name in words_of(filters, "model") or (_DEFAULT_MODEL,))
    )


def _told(floor: NoiseFloor) -> dict[str, Any]:
    return {
        "what": format_title(floor.row),
        "metric": floor.metric.name,
        "noise": floor.noise,
        "values": list(floor.values),
        "against_itself": floor.against_itself.answer.value,
        "launches_for_the_least_change": floor.launches_for_the_least,
        "finds": [
            {"launches": k, "has_to_exceed": least, "found": shown}
            for k, least, shown in floor.finds()
        ],
    }
