"""What the options of a run mean together: a RunSpec, its request, and contradictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelbench.cli.arguments import resolved_values
from accelbench.cli.arguments.declared_options import SPELLINGS
from accelbench.core.axes import AXES
from accelbench.core.errors import UsageError
from accelbench.core.free_dimensions import combinations
from accelbench.core.model import ModelSpec
from accelbench.core.nouns import numbers, seconds, words
from accelbench.core.run_options import DISTRIBUTED, RunField, RunSpec, run_fields
from accelbench.core.visible import in_quotes
from accelbench.engines.shared.names import runtimes_named
from accelbench.hardware.detect import GPU
from accelbench.judge.filters import model_words
from accelbench.run.plan.request import AUTO_STRATEGY, STRATEGIES, Distribution, Request

#: The values of a command's parameters, by name.
Typed = Mapping[str, Any]


def in_one_spelling(typed: Typed, given: frozenset[str]) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the values and the typed names without the documents' spellings.

    What was typed goes before a default of the project's, whichever spelling it was typed in.
    """
    whole = dict(typed)
    names = {field.name: name for field, name in SPELLINGS.items() if name}
    for spelling, name in names.items():
        value = whole.pop(spelling)
        if spelling not in given:
            continue
        before = whole[name] if name in given else None
        if spelling == "model_id":
            value = resolved_values.models_named(model_words(value))
        if spelling == "training":
            value = ["training"]
        if spelling == "small_models":
            value = "small"
        whole[name] = [*(before or ()), *value] if isinstance(value, (list, tuple)) else value
    return whole, frozenset(names.get(name, name) for name in given)


def sizes_of(typed: Mapping[str, list[str] | None]) -> dict[str, Any]:
    """Return the sizes in lists of words, by the fields of a request."""
    return {
        axis.asked: combinations(typed[axis.asked])
        if axis.text
        else numbers(typed[axis.asked], axis.option, least=axis.least)
        for axis in AXES
        if axis.asked in typed
    }


def _read(field: RunField, value: Any) -> Any:
    if field.kind == "duration":
        return seconds(value, field.option)
    if not field.several:
        return value
    if field.kind == "number":
        return numbers(value, field.option, least=field.least or 0)
    return tuple(value or ()) if field.whole or not field.names else words(value)


def with_block(spec: RunSpec, block: Typed) -> RunSpec:
    """Return a spec with other values of some options."""
    own = {f.name: _read(f, block[f.name]) for f in run_fields() if f.name in block and not f.axis}
    return spec.with_values(**own, sizes={**spec.sizes, **sizes_of(block)})


def spec_of(typed: Typed) -> RunSpec:
    """Return what the options of a command line ask for."""
    read = {f.name: _read(f, typed[f.name]) for f in run_fields() if not f.axis}
    unset = [f.name for f in run_fields() if f.several is False and read.get(f.name, 0) is None]
    own = {name: value for name, value in read.items() if name not in unset}
    own["weights"] = resolved_values.weights(typed["weights"])
    own["data"] = resolved_values.data_folder(typed["data"])
    own["accuracy"] = resolved_values.accuracy_metric(typed["accuracy"])
    own["preprocessing"] = resolved_values.preparation(typed["preprocessing"])
    if typed["input_file"] is not None:
        own["accuracy"] = "off"  # its arrays are fed as they are
        own["data"] = str(typed["input_file"].expanduser().absolute())
    own["launches"] = resolved_values.launches(
        typed["launches"], words(typed["framework"]), typed["against"]
    )
    own["verify"] = resolved_values.verification(
        typed["verify"], typed["verify_only"], typed["benchmark_only"]
    )
    own["label"] = resolved_values.label(typed["label"])
    return RunSpec(**own, sizes=sizes_of(typed), fix=not typed["no_fix"])


def means_training(spec: RunSpec) -> bool:
    """Return whether --distributed means training: no mode is named, nor tokens to generate."""
    named = spec.mode or spec.sizes.get("new_tokens") or spec.sizes.get("prompt_tokens")
    return spec.distributed and not named


def request_of(spec: RunSpec, models: tuple[ModelSpec, ...]) -> Request:
    """Return the request for these models."""
    resolved_values.refuse_pure_autocast(spec.pure, spec.precision)
    how = distribution_of(spec)
    # Whoever counts GPUs means GPUs: a processor is not taken in their place.
    usual = (GPU,) if how and spec.gpu_count else ()
    sizes: dict[str, Any] = spec.sizes
    return Request(
        models=models,
        hardware=resolved_values.platforms(spec.hardware or usual),
        runtimes=runtimes_named(spec.framework),
        batch_sizes=spec.batch_sizes,
        **sizes,
        precisions=resolved_values.precisions(spec.precision),
        modes=resolved_values.modes(spec.mode, training=means_training(spec)),
        options=resolved_values.options(spec.compiled, spec.threads),
        runtime_options=resolved_values.runtime_options(spec.runtime_options),
        training_options=resolved_values.training_options(
            spec.optimizer, spec.checkpointing, spec.pure
        ),
        distribution=how,
        simulate=spec.simulate,
    )


_MEETING = "--rdzv-endpoint HOST:PORT, the same on every machine; HOST is machine 0."


def distribution_of(spec: RunSpec) -> Distribution | None:
    """Return how several processes make each step; None if one process does."""
    if not spec.distributed:
        usual = RunSpec()
        for field in run_fields():
            name = field.name
            if field.group == DISTRIBUTED and getattr(spec, name) != getattr(usual, name):
                raise UsageError(f"{field.option} requires --distributed.", "Add it.")
        return None
    if spec.gpu_count and spec.processes and spec.gpu_count != spec.processes:
        raise UsageError("--gpu-count and --processes contradict each other.", "Leave one out.")
    count = (spec.gpu_count or spec.processes or 2) * spec.nodes
    if count < 2:
        raise UsageError(
            "--distributed requires several processes, and one was asked for.",
            "Use 2 or more, or leave out --distributed.",
        )
    _check_meeting(spec)
    known, strategy = (AUTO_STRATEGY, *STRATEGIES), (spec.strategy or AUTO_STRATEGY).lower()
    if strategy not in known:
        raise UsageError(f"There is no strategy {in_quotes(strategy)}.", f"Use {', '.join(known)}.")
    gib = spec.max_memory_gb
    if gib is not None and not 0 < gib < 2**20:
        raise UsageError(f"{gib:g} GiB of memory is impossible.", "Use more than 0.")
    return Distribution(
        processes=count,
        strategy=strategy,
        accumulate=spec.accumulate,
        memory_bytes=None if gib is None else int(gib * 2**30),
        baseline=not spec.no_baseline,
        nodes=spec.nodes,
    )


def _check_meeting(spec: RunSpec) -> None:
    rank, place = spec.node_rank, spec.rendezvous
    if spec.nodes == 1:
        if place or rank is not None:
            raise UsageError("--node-rank and --rdzv-endpoint require --nnodes.", "Add --nnodes.")
        return
    if place is not None and (":" not in place or not place.rpartition(":")[2].isdecimal()):
        raise UsageError(f"{in_quotes(place)} is not HOST:PORT.", f"Give {_MEETING}")
    if rank is not None and rank >= spec.nodes:
        raise UsageError(
            f"There is no machine {rank} of {spec.nodes}.", f"--node-rank is 0 to {spec.nodes - 1}."
        )


def refuse_no_meeting(spec: RunSpec) -> None:
    """Refuse several machines without a place where they meet."""
    if spec.nodes > 1 and not spec.rendezvous:
        raise UsageError("Several machines need a place where they meet.", f"Give {_MEETING}")


#: What may be given with --resume: everything else was settled when the run began.
WITH_RESUME = frozenset(
    {"resume", "db", "no_database", "output_dir", "output_ci", "as_json", "quiet"}
    | {"save", "compare", "create_report", "prices", "threshold"}
)
#: Options that exclude each other, and why.
_CONFLICTS = (
    ("profile", "verify_only", "without timing there is no profile"),
    ("energy", "verify_only", "without timed steps there is no energy to measure"),
    ("against", "profile", "--against compares times"),
    ("against", "verify_only", "--against compares times"),
    ("against", "simulate", "--against compares times"),
    ("simulate", "verify_only", "without a run there are no outputs"),
    ("input_file", "data", "both are inputs"),
    ("no_database", "db", "one stores results, the other does not"),
)
#: Options that require one of others.
_REQUIREMENTS = (
    ("threshold", ("against", "resume"), "--against; `accelbench check` judges other runs"),
    ("prices", ("compare", "create_report"), "--compare or --create-report"),
    ("accuracy", ("data",), "labelled data, named with --data"),
    ("accuracy_samples", ("data",), "labelled data, named with --data"),
    ("preprocessing", ("data",), "labelled data, named with --data"),
)


def refuse_contradictions(given: Mapping[str, str], typed: Typed) -> None:
    """Refuse options that contradict each other."""
    settled = [option for name, option in given.items() if name not in WITH_RESUME]
    if "resume" in given and settled:
        raise UsageError(
            f"A resumed run keeps its settings: {settled[0]} cannot be given anew.",
            "Leave it out, or start a new run.",
        )
    for one, other, why in _CONFLICTS:
        if one in given and other in given:
            raise UsageError(
                f"{given[one]} and {given[other]} contradict each other: {why}.", "Leave one out."
            )
    for name, others, what in _REQUIREMENTS:
        if name in given and not given.keys() & set(others):
            raise UsageError(f"{given[name]} requires {what}.", "Add it, or leave this out.")
    if "simulate" in given and typed["verify"] == "require":
        raise UsageError(
            "--simulate and --verify require contradict each other: without a run there are no"
            " outputs.",
            "Leave one out.",
        )


def refuse_simulating_all(spec: RunSpec) -> None:
    """Refuse --simulate without a platform: only named hardware can be absent and simulated."""
    if spec.simulate and [name.lower() for name in spec.hardware] in ([], ["all"], ["auto"]):
        raise UsageError(
            "--simulate requires --hardware: only hardware that is named and absent is simulated.",
            "Name it, such as --hardware cuda:a100-80gb.",
        )
