"""Example inputs: the name, type, shape and values of each. Imports neither torch nor NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from accelbench.core.safe_text import in_quotes
from accelbench.models.code_models.loading import is_array
from accelbench.models.file_models.given_inputs import refuse_unknown_inputs
from accelbench.models.file_models.kinds import FileRefusedError


def arguments(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call: a tuple by place, a dict by name, else one argument."""
    if isinstance(example, tuple):
        return example, {}
    if isinstance(example, Mapping):
        return (), {str(name): value for name, value in example.items()}
    return (example,), {}


def required_parameters(function: Callable[..., Any]) -> list[str] | None:
    """Return the names of parameters without default; None if Python does not show them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [
        p.name
        for p in parameters
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]


def refuse_missing(function: Any, given: Sequence[str], needs: Sequence[str], advice: str) -> None:
    """Refuse names that a function does not take, and what it needs if it is not given."""
    known = names(function)
    if known is not None:
        refuse_unknown_inputs(given, known)
    for name in needs:
        if name not in given:
            raise FileRefusedError(
                f"It takes {', '.join(needs)}, and nothing says what {name} is.", advice
            )


def name_arguments(forward: Callable[..., Any], example: Any) -> dict[str, Any]:
    """Return an example by the names of a function's parameters; refuse one that does not fit."""
    args, keywords = arguments(example)
    signature = inspect.signature(forward)
    try:
        bound = signature.bind(*args, **keywords).arguments
    except TypeError as error:
        raise FileRefusedError(
            f"Its example inputs do not fit its parameters {signature}: {error}.",
            "Give a tuple by place, or a dict by name.",
        ) from error
    found: dict[str, Any] = {}
    for name, value in bound.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            raise FileRefusedError(
                f"Its inputs have no names: it takes *{name}.",
                "Give its forward a parameter for each.",
            )
        if kind is inspect.Parameter.POSITIONAL_ONLY:
            raise FileRefusedError(
                f"It takes {in_quotes(name)} by place alone.", "Let it be given by its name."
            )
        found |= value if kind is inspect.Parameter.VAR_KEYWORD else {name: value}
    for name, value in found.items():
        if not is_array(value):
            raise FileRefusedError(
                f"Its input {in_quotes(name)} is a {type(value).__name__} in its example, and"
                " tensors alone are fed.",
                "Set the rest in the factory that makes it, by a module around it if need be.",
            )
    return found


def describe_input(name: str, value: Any) -> dict[str, Any]:
    """Describe an input from its example; raise FileRefusedError if its type cannot be drawn."""
    dtype = str(value.dtype).rpartition(".")[2]
    entry: dict[str, Any] = {"name": name, "shape": [int(size) for size in value.shape]}
    if dtype.startswith(("float", "bfloat")):
        drawn = "normal, mean 0 and deviation 1; its example tells type and shape"
        return {**entry, "dtype": "float", "drawn": drawn}
    if dtype == "bool":
        return {**entry, "dtype": dtype, "drawn": "true and false alike"}
    if not dtype.startswith(("int", "uint")):
        raise FileRefusedError(
            f"Its input {in_quotes(name)} is of {dtype}, which is not drawn.",
            "Measure the part behind it.",
        )
    if 0 in entry["shape"]:
        raise FileRefusedError(
            f"Its input {in_quotes(name)} is empty in its example.", "Give one that has values."
        )
    low, high = int(value.min()), int(value.max())
    if low == high:
        return {**entry, "dtype": dtype, "constant": low, "drawn": f"{low}, as all of its example"}
    words = f"{low} to {high}: the least and the largest of its example"
    return {**entry, "dtype": dtype, "low": low, "high": high + 1, "drawn": words}


def common_batch(values: Sequence[Any]) -> int | None:
    """Return the first size if all inputs with axes share it, else None."""
    sizes = {int(value.shape[0]) for value in values if len(value.shape)}
    return sizes.pop() if len(sizes) == 1 else None


def batch_of(example: Any) -> int | None:
    """Return the items of an example by the first size of its arrays, or None if they differ."""
    args, keywords = arguments(example)
    return common_batch([value for value in (*args, *keywords.values()) if is_array(value)])


def names(function: Any) -> list[str] | None:
    """Return the names that a callable takes, or None if it takes any."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
