"""What several runtimes have to refuse in the same words. Imports no engine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from importlib.util import find_spec

from accelbench.core.case import Case
from accelbench.core.errors import setting_up
from accelbench.core.protocols import Support
from accelbench.core.vocabulary import Mode

#: What the runtimes that train torch's modules train them with.
OPTIMIZERS = ("adamw", "sgd")
#: What may be asked of the runtimes that run torch's modules.
MODULE_OPTIONS = {
    Mode.INFERENCE: frozenset({"compile", "threads"}),
    Mode.TRAINING: frozenset({"compile", "threads", "optimizer", "gradient_checkpointing", "pure"}),
}

_HALF = ("fp16", "bf16")


def no(reason: str, message: str, advice: str) -> Support:
    """A refusal."""
    return Support(ok=False, reason=reason, message=message, advice=advice)


def missing(runtime: str, packages: Iterable[str], extra: str) -> Support | None:
    """The first package that is not installed, by its import name."""
    for package in packages:
        if find_spec(package) is None:
            return no(
                "package_missing",
                f"the {runtime} runtime needs the package {package.replace('_', '-')}, which is"
                " not installed",
                f"Install it with: {setting_up(extra)}",
            )
    return None


def beyond_forward(
    runtime: str, case: Case, options: Collection[str], remark: str
) -> Support | None:
    """What a runtime refuses that makes forward passes alone: modes, and options it has not.

    Args:
        runtime: its name.
        case: what is asked.
        options: those that it has.
        remark: what a reader should know of them, as the end of a sentence.
    """
    if case.mode is Mode.TRAINING:
        return no(
            "mode",
            f"the {runtime} runtime does not train",
            "Use --framework pytorch or jax, or --mode inference.",
        )
    if case.generates:
        return no(
            "generation",
            f"the {runtime} runtime does not generate token by token",
            "Measure a forward pass: --new-tokens 0.",
        )
    unknown = set(case.options).difference(options)
    if unknown:
        return no(
            "option",
            f"the {runtime} runtime has no option {', '.join(sorted(unknown))}",
            f"It has {', '.join(sorted(options))}; {remark}.",
        )
    return None


def not_listed(runtime: str, case: Case, precisions: Collection[str]) -> Support | None:
    """A precision that a runtime has nowhere."""
    if case.precision in precisions:
        return None
    return no(
        "precision",
        f"the {runtime} runtime does not run {case.precision}",
        f"It runs {', '.join(precisions)}.",
    )


def not_quantised(case: Case, how: str) -> Support | None:
    """int8 of a file in floats, where nothing here quantises it."""
    file = case.model.file
    if case.precision != "int8" or file is None or file.precision == "int8":
        return None
    return no(
        "precision",
        f"{case.model.id} is stored in {file.precision}; {file.format.graph}s are not quantised",
        how,
    )


def not_an_option(runtime: str, case: Case, options: Collection[str]) -> Support | None:
    """Options that a runtime has not in the case's mode."""
    unknown = set(case.options).difference(options)
    if not unknown:
        return None
    return no(
        "option",
        f"the {runtime} runtime has no option {', '.join(sorted(unknown))} in {case.mode.value}",
        f"It has {', '.join(sorted(options))}.",
    )


def writes_nothing(case: Case) -> Support | None:
    """A model that is asked for text and has none to give."""
    if case.model.generation is not None:
        return None
    return no("no_generation", f"{case.model.id} does not generate text", "Leave out --new-tokens.")


def no_such_sharing(runtime: str, case: Case, strategies: Sequence[str]) -> Support | None:
    """A way of sharing a step that a runtime has not; the first is meant where none is named."""
    strategy = case.options.get("strategy", strategies[0])
    if strategy in strategies:
        return None
    return no(
        "distributed",
        f"the {runtime} runtime has no strategy {strategy}",
        f"Use --strategy {', '.join(strategies[:-1])} or {strategies[-1]}.",
    )


def not_trained(runtime: str, case: Case) -> Support | None:
    """Training that no runtime has: of this model, by this optimizer, purely in this precision."""
    if case.model.training is None:
        return no(
            "no_training",
            f"the catalogue does not say how {case.model.id} is trained",
            "Use --mode inference.",
        )
    optimizer = case.options.get("optimizer", OPTIMIZERS[0])
    if optimizer not in OPTIMIZERS:
        return no(
            "option",
            f"the {runtime} runtime does not train with the optimizer {optimizer}",
            f"It trains with {' or '.join(OPTIMIZERS)}.",
        )
    if case.options.get("pure") and case.precision not in _HALF:
        return no(
            "option",
            f"pure training is of half-precision weights, and {case.precision} has none",
            "Use --precision bf16 or fp16, or leave out --pure.",
        )
    return None
