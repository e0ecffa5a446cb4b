"""The options of `accelbench run` as a request and settings; contradictions are refused."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import typer

from accelbench.cli.arguments import run_arguments
from accelbench.cli.arguments.distributed_options import distributed_run
from accelbench.core.axes import AXES, Axis, numbered
from accelbench.core.errors import UsageError
from accelbench.core.free_dimensions import combinations
from accelbench.core.model import ModelSpec
from accelbench.core.nouns import numbers, seconds, words
from accelbench.core.run_spec import DEFAULT_TIMEOUT, JobSettings, RunSettings
from accelbench.query.filters import model_words
from accelbench.run.plan.request import Request
from accelbench.runtimes.shared.names import runtimes_named

#: The lists that were typed, by the fields of a request.
Sizes = Mapping[str, "list[str] | None"]
#: Stands in a command's parameters where its options of sizes stand in its help.
OPTIONS: Sizes = {}


def with_size_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each axis in place of its parameter `sizes`."""
    return _with_options_of(AXES, command)


def with_numbered_sizes(command: Callable[..., None]) -> Callable[..., None]:
    """The same, without those whose sizes are a file's own: of commands that measure nothing."""
    return _with_options_of(numbered(), command)


def _with_options_of(axes: Sequence[Axis], command: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(command)
    parameters = [
        option
        for parameter in signature.parameters.values()
        for option in (map(_option, axes) if parameter.name == "sizes" else (parameter,))
    ]

    @wraps(command)
    def wrapper(**typed: Any) -> None:
        command(sizes={axis.asked: typed.pop(axis.asked) for axis in axes}, **typed)

    hints = {name: hint for name, hint in command.__annotations__.items() if name != "sizes"}
    wrapper.__annotations__ = hints | {axis.asked: list[str] | None for axis in axes}
    wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return wrapper


def sizes_of(typed: Sizes) -> dict[str, Any]:
    """The sizes in those lists, as a request takes them."""
    return {
        axis.asked: combinations(typed[axis.asked])
        if axis.text
        else numbers(typed[axis.asked], axis.option, least=axis.least)
        for axis in AXES
        if axis.asked in typed
    }


def _option(axis: Axis) -> inspect.Parameter:
    return inspect.Parameter(
        axis.asked,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=typer.Option(None, axis.option, help=axis.help),
        annotation=list[str] | None,
    )


#: Of the command's parameters their values.
Typed = Mapping[str, Any]
#: The documents' spellings of lists, and what they are spellings of.
_SPELLINGS = {
    "batch_size": "batch_sizes",
    "device": "hardware",
    "model_families": "category",
    "model_id": "models",
    "training": "mode",
    "small_models": "set_name",
}


def in_one_spelling(typed: Typed, given: frozenset[str]) -> tuple[dict[str, Any], frozenset[str]]:
    """The same by the options of the help page, and which of those were typed.

    What was typed goes before a default of the project's, whichever spelling it was typed in.
    """
    whole = dict(typed)
    for spelling, name in _SPELLINGS.items():
        value = whole.pop(spelling)
        if spelling not in given:
            continue
        before = whole[name] if name in given else None
        if spelling == "model_id":
            value = run_arguments.models_named(model_words(value))
        if spelling == "training":
            value = ["training"]
        if spelling == "small_models":
            value = "small"
        whole[name] = [*(before or ()), *value] if isinstance(value, (list, tuple)) else value
    return whole, frozenset(_SPELLINGS.get(name, name) for name in given)


def means_training(typed: Typed) -> bool:
    """Return whether --distributed means training: no mode is named, nor tokens to generate."""
    named = any(typed[name] for name in ("mode", "new_tokens", "prompt_tokens") if name in typed)
    return bool(typed.get("distributed")) and not named


def request_of(typed: Typed, models: tuple[ModelSpec, ...]) -> Request:
    """What is asked for."""
    precisions = words(typed["precision"])
    run_arguments.refuse_pure_autocast(typed["pure"], precisions)
    named = words(typed["hardware"])
    modes = run_arguments.modes(words(typed["mode"]), training=means_training(typed))
    together = distributed_run(typed, bool(named))
    return Request(
        models=models,
        hardware=run_arguments.platforms(named or together.hardware),
        runtimes=runtimes_named(words(typed["framework"])),
        batch_sizes=numbers(typed["batch_sizes"], "--batch-sizes"),
        **sizes_of({axis.asked: typed[axis.asked] for axis in AXES}),
        precisions=run_arguments.precisions(precisions),
        modes=modes,
        options=run_arguments.options(typed["compiled"], typed["threads"]),
        runtime_options=run_arguments.runtime_options(typed["runtime_options"]),
        training_options=run_arguments.training_options(
            typed["optimizer"], typed["checkpointing"], typed["pure"]
        ),
        distribution=together.how,
        simulate=typed["simulate"],
    )


def settings_of(typed: Typed) -> RunSettings:
    """How the run goes about it."""
    only, never = typed["verify_only"], typed["benchmark_only"]
    own = {name: typed[name] for name in JobSettings.names()}
    own["weights"] = run_arguments.weights(typed["weights"])
    own["data"] = run_arguments.data_folder(typed["data"])
    own["accuracy"] = run_arguments.accuracy_metric(typed["accuracy"])
    own["preprocessing"] = run_arguments.preparation(typed["preprocessing"])
    if typed["input_file"] is not None:
        own["accuracy"] = "off"  # its arrays are fed as they are
        own["data"] = str(typed["input_file"].expanduser().absolute())
    return RunSettings(
        **own,
        launches=run_arguments.launches(
            typed["launches"], words(typed["framework"]), typed["against"]
        ),
        iterations=typed["iterations"],
        warmup=typed["warmup"],
        timeout=seconds(typed["timeout"], "--timeout") or DEFAULT_TIMEOUT,
        budget=seconds(typed["budget"], "--budget"),
        fix=not typed["no_fix"],
        verify=run_arguments.verification(typed["verify"], only, never),
        profile=typed["profile"],
    )


#: What may stand beside --resume: everything else was settled when the run began.
_BESIDE_RESUME = frozenset(
    {"resume", "db", "no_database", "output_dir", "output_ci", "as_json", "quiet"}
    | {"save", "compare", "create_report", "prices", "threshold"}
)


def refuse_contradictions(given: Mapping[str, str], typed: Typed) -> None:
    """Refuse what contradicts itself.

    Args:
        given: the parameters that were given, and how each is named to people.
    """
    settled = [option for name, option in given.items() if name not in _BESIDE_RESUME]
    if "resume" in given and settled:
        raise UsageError(
            f"A resumed run keeps what it began with: {settled[0]} cannot be given anew.",
            "Leave it out, or start a new run.",
        )
    if "profile" in given and "verify_only" in given:
        raise UsageError(
            "--profile and --verify-only contradict each other: what is not timed has no profile.",
            "Leave one out.",
        )
    _refuse_unlike_fed(given)
    if "energy" in given and "verify_only" in given:
        raise UsageError(
            "--energy and --verify-only contradict each other: what does not step takes no energy.",
            "Leave one out.",
        )
    if "against" in given and (beside := given.keys() & {"profile", "verify_only", "simulate"}):
        word = given[min(beside)]
        raise UsageError(
            f"--against and {word} contradict each other: it compares times with each other.",
            "Leave one out.",
        )
    if "threshold" in given and not given.keys() & {"against", "resume"}:
        raise UsageError(
            "--threshold is of --against: a run alone is compared with nothing.",
            "Name what it is compared with, or check it afterwards with `accelbench check`.",
        )
    if "prices" in given and not given.keys() & {"compare", "create_report"}:
        raise UsageError("--prices shows in --compare and --create-report.", "Add one of them.")
    if "simulate" in given:
        _refuse_unlike_simulating(given, typed)
    if "no_database" in given and "db" in given:
        raise UsageError("--no-database and --db contradict each other.", "Leave one out.")


def _refuse_unlike_fed(given: Mapping[str, str]) -> None:
    """What is fed comes from one place, and labels come with it."""
    if "input_file" in given and "data" in given:
        raise UsageError(
            "--input-file and --data contradict each other: both are what is fed.", "Leave one out."
        )
    beside = given.keys() & {"accuracy", "accuracy_samples", "preprocessing"}
    if beside and "data" not in given:
        raise UsageError(
            f"{given[min(beside)]} is of labelled data, and none is named.", "Name it with --data."
        )


def _refuse_unlike_simulating(given: Mapping[str, str], typed: Typed) -> None:
    if "verify_only" in given or typed["verify"] == "require":
        word = "--verify-only" if "verify_only" in given else "--verify require"
        raise UsageError(
            f"--simulate and {word} contradict each other: what is not run has no outputs.",
            "Leave one out.",
        )


def refuse_simulating_all(simulate: bool, hardware: list[str] | None) -> None:
    """Only what is named can be missed, and is then simulated."""
    named = [name.lower() for name in words(hardware)]
    if simulate and (not named or named in (["all"], ["auto"])):
        raise UsageError(
            "--simulate needs --hardware: only what is named, and is not here, is simulated.",
            "Name it, such as --hardware cuda:a100-80gb.",
        )


def refuse_beside(given: Mapping[str, object], sentence: str, remedy: str) -> None:
    """Refuse options of which any has a value.

    Args:
        sentence: what is wrong; `{}` stands for those that were given.
    """
    options = ", ".join(option for option, value in given.items() if value)
    if options:
        raise UsageError(sentence.format(options), remedy)
