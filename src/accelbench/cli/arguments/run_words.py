"""The words of `accelbench run`, typed or of a plan file, as what is asked for and how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelbench.cli.arguments import run_arguments
from accelbench.cli.arguments.distributed_options import distributed_run
from accelbench.cli.arguments.size_options import sizes_of
from accelbench.core.axes import AXES
from accelbench.core.job_settings import JobSettings
from accelbench.core.model import ModelSpec
from accelbench.core.word_lists import numbers, seconds, words
from accelbench.run.plan.request import Request
from accelbench.run.plan.run_settings import DEFAULT_TIMEOUT, RunSettings
from accelbench.runtimes.shared.names import runtimes_named

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
    "db_path": "db",
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
            value = run_arguments.models_named(words(value))
        if spelling == "training":
            value = ["training"]
        if spelling == "small_models":
            value = "small"
        whole[name] = [*(before or ()), *value] if isinstance(value, (list, tuple)) else value
    return whole, frozenset(_SPELLINGS.get(name, name) for name in given)


def means_training(typed: Typed) -> bool:
    """Return whether --distributed means training: no mode is named, nor tokens to generate."""
    named = words(typed["mode"]) or typed["new_tokens"] or typed["prompt_tokens"]
    return bool(typed["distributed"]) and not named


def request_of(typed: Typed, models: tuple[ModelSpec, ...]) -> Request:
    """What is asked for.

    Raises:
        UsageError: a word means nothing, or contradicts another.
    """
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
    """How the run goes about it.

    Raises:
        UsageError: a word means nothing, or contradicts another.
    """
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
        job=JobSettings(**own),
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
