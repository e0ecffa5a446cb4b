"""What several runtimes have to refuse in the same words. Imports no engine."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from importlib.util import find_spec

from accelbench.core.case import Case
from accelbench.core.protocols import Support
from accelbench.core.words import Mode


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
                f"Install it with: pip install 'accelbench[{extra}]'",
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
