"""The keys of plan files, made of the options of `accelbench run`: an option there is a key here.

Options that take a list, and those that are part of a case, are of the matrix; the others are said
once for a run. Where results go, and what starts a program, is said on the command line alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from accelbench.cli.arguments import run_arguments
from accelbench.cli.arguments.command_options import CommandOption
from accelbench.core.axes import AXES, numbered
from accelbench.core.case import ASKED_OF_ALL
from accelbench.core.free_dimensions import combinations
from accelbench.core.word_lists import LARGEST
from accelbench.exchange.plans.keys import PlanKey, PlanKeys, PlanSection
from accelbench.run.plan.request import AUTO
from accelbench.runtimes.shared.names import runtimes_named

#: What a file cannot say: where results go, how a run is begun, and which programs it starts.
COMMAND_LINE_ALONE = frozenset(
    {"db", "no_database", "output_dir", "output_ci", "compare", "create_report", "prices"}
    | {"as_json", "quiet", "dry_run", "resume", "save_plan", "plan_schema"}
    | {"browser", "trust_remote_code", "against", "threshold", "node_rank", "inputs", "input_file"}
    | {"reference"}
)
#: Which models, at the top of a plan.
_SELECTION = frozenset({"models", "set_name", "models_file", "category", "specific", "every"})
#: Names of the columns of results, where they are others.
_COLUMNS = {"models": "model", "batch_sizes": "batch_size", "framework": "runtime"} | {
    axis.asked: axis.column for axis in AXES if axis.column != axis.asked
}
_LEAST = {"batch_sizes": 1} | {axis.asked: axis.least for axis in numbered()}
#: What is written where a path may stand, and is none.
_WORDS = {"weights": ("random", "hub"), "data": ("synthetic",)}
#: Of sizes by names.
DIMENSIONS = "dim"
#: Values of hardware that stand for several, and beside no other.
ALONE = (AUTO, "all")


def plan_keys(options: Iterable[CommandOption]) -> PlanKeys:
    """The keys, by the options of the command."""
    return PlanKeys(
        [
            _key(option)
            for option in options
            if option.parameter not in COMMAND_LINE_ALONE and not option.hidden
        ]
    )


def _key(option: CommandOption) -> PlanKey:
    name, words = option.key, _WORDS.get(option.parameter, ())
    if option.parameter in _SELECTION:
        section = PlanSection.SELECTION
    elif option.several or name in ASKED_OF_ALL:
        section = PlanSection.MATRIX
    else:
        section = PlanSection.RUN
    kind: Literal["text", "number", "truth"] = "text"
    if option.kind == "number" or name in _LEAST:
        kind = "number"
    elif option.kind == "truth":
        kind = "truth"
    return PlanKey(
        name=name,
        parameter=option.parameter,
        section=section,
        kind=kind,
        several=option.several,
        least=_LEAST.get(name, option.least),
        most=option.most or (LARGEST if kind == "number" else None),
        help=option.help,
        path=bool(words) or option.kind == "path",
        aliases=(_COLUMNS[name],) if name in _COLUMNS else (),
        words=words,
    )


def settled(key: PlanKey, texts: Sequence[str]) -> tuple[str, ...]:
    """Values as cases have them: one name for each thing, and "both" written out.

    Raises:
        UsageError: one means nothing.
    """
    if key.name == "hardware":
        return run_arguments.platforms(texts) or ("all",)
    if key.name == "framework":
        return runtimes_named(texts)
    if key.name == "precision":
        return run_arguments.precisions(texts)
    if key.name == "mode":
        return tuple(mode.value for mode in run_arguments.modes(texts, training=False))
    if key.name == DIMENSIONS:
        # Each value of a list is sizes that belong together; a value may say several of a name.
        return tuple(dict.fromkeys(one for text in texts for one in combinations([text])))
    for text in texts:
        if key.name == "optimizer":
            run_arguments.training_options(text, checkpointing=False, pure=False)
        elif key.name == "option":
            run_arguments.runtime_options([text])
    return tuple(texts)


def value_of(key: PlanKey, texts: Sequence[str], folder: Path) -> Any:
    """What the command is given for the values of a key; paths are taken from the plan's folder."""
    if key.several:
        return list(texts)
    (text,) = texts
    if key.kind == "truth":
        return text == "true"
    if key.kind == "number":
        return int(text)
    if key.path and text not in key.words:
        path = folder / Path(text).expanduser()
        return path if not key.words or key.name == "data" else str(path)
    return text
