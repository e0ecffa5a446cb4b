"""Plan-file keys, derived from the options of `accelbench run`; names of scripts."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import typer

from accelbench.cli.arguments import run_arguments
from accelbench.core.axes import AXES, numbered
from accelbench.core.case import ASKED_OF_ALL
from accelbench.core.free_dimensions import combinations
from accelbench.core.nouns import LARGEST
from accelbench.exchange.plans.document import PlanKey, PlanKeys, PlanSection
from accelbench.run.plan.request import AUTO
from accelbench.runtimes.shared.names import runtimes_named


@dataclass(frozen=True)
class CommandOption:
    """Option or argument of a command.

    Attributes:
        parameter: of the command's function.
        option: its first name, with dashes; empty of an argument.
        kind: of one value.
        several: whether it takes a list.
        least, most: of a number.
        default: where nothing is given.
        hidden: whether its help leaves it out.
        help: what it says of itself.
    """

    parameter: str
    option: str
    kind: Literal["text", "number", "truth", "fraction", "path"]
    several: bool
    least: int | None
    most: int | None
    default: Any
    hidden: bool
    help: str

    @property
    def key(self) -> str:
        """What it is called in files."""
        return self.option.lstrip("-").replace("-", "_") or self.parameter


def options_of(app: typer.Typer) -> list[CommandOption]:
    """Those of an application's one command, in the order of its help.

    By the declarations, which are typer's interface: its own parsers change between versions.
    """
    (registered,) = app.registered_commands
    assert registered.callback is not None
    parameters = inspect.signature(registered.callback).parameters.values()
    return [_option(one) for one in parameters if hasattr(one.default, "param_decls")]


def _option(parameter: inspect.Parameter) -> CommandOption:
    declared: Any = parameter.default
    annotation = str(parameter.annotation)
    names = [name for name in declared.param_decls or () if name.startswith("--")]
    kinds: dict[str, Literal["number", "truth", "fraction", "path"]] = {
        "bool": "truth", "int": "number", "float": "fraction", "Path": "path",
    }  # fmt: skip
    word = annotation.removesuffix(" | None")
    return CommandOption(
        parameter=parameter.name,
        option=names[0].partition("/")[0] if names else "",
        kind=kinds.get(word, "text"),
        several="list[" in annotation,
        least=None if declared.min is None else int(declared.min),
        most=None if declared.max is None else int(declared.max),
        default=declared.default,
        hidden=bool(declared.hidden),
        help=str(declared.help or ""),
    )


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
    """Values as cases have them: one name for each thing, and "both" written out."""
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


_SCRIPTS = {
    "benchmark_all_key_models": "run --set key",
    "benchmark_visualizer": "plot",
    "create_hardware_model_benchmark_database": "run",
    "enhanced_hardware_benchmark_runner": "run",
    "hardware_model_predictor": "predict",
    "hardware_selector": "recommend",
    "model_benchmark_runner": "run",
    "run_benchmark_suite": "run --set key",
    "run_hardware_benchmark": "run",
    "run_model_benchmarks": "run --set key",
    "runner": "run",
    "setup_benchmark_db": "db init",
    "visualize_benchmarks": "plot",
}
_OPTIONS = {
    "--analyze": "compare",
    "--compare-training-inference": "compare --by mode",
    "--init-db": "db init",
    "--recommendations": "recommend",
    "--status": "db status",
    "--visualize": "plot",
}


def command_for_script(word: str, more: Iterable[str] = ()) -> str | None:
    """Return the command that does a script's work; None if no document names the script.

    Args:
        more: the words after it, whose options may mean another command.
    """
    name = PurePosixPath(word.lower().replace("\\", "/")).name.removesuffix(".py")
    command = _SCRIPTS.get(name.replace("-", "_"))
    if command is None:
        return None
    by_option = (known for option in more if (known := command_for_option(option)))
    return f"accelbench {next(by_option, command).removeprefix('accelbench ')}"


def command_for_option(option: str) -> str | None:
    """Return the command that does what an option of a script did; None if it is not known."""
    command = _OPTIONS.get(option.partition("=")[0])
    return None if command is None else f"accelbench {command}"
