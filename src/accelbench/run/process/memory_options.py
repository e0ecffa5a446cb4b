"""Which options make a case fit into the memory that is free, by estimate. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from accelbench.core.axes import AXES
from accelbench.core.case import Case
from accelbench.core.vocabulary import Mode

#: Tried in this order; the engine decides which of them it has.
_NARROWER = ("bf16", "fp16", "int8")
#: Sizes that may be halved without another model, and the least that is named.
_LENGTHS = {"prompt_tokens": 16, "sequence": 16}
#: More options than these do not help to choose.
_MOST = 2


def options_that_fit(
    case: Case, fits: Callable[[Case], bool], is_supported: Callable[[Case], bool]
) -> list[str]:
    """Return options of `accelbench run` of which each alone makes a case fit.

    Args:
        case: what needs too much memory.
        fits: whether a case fits by estimate.
        is_supported: whether the engine takes a case on this device.
    """
    found = []
    for option, changed in _changed(case):
        if is_supported(changed) and fits(changed):
            found.append(option)
        if len(found) == _MOST:
            break
    return found


def _changed(case: Case) -> Iterator[tuple[str, Case]]:
    if case.precision == "fp32":
        for precision in _NARROWER:
            yield f"--precision {precision}", replace(case, precision=precision)
    if case.mode is Mode.TRAINING:
        options = dict(case.options)
        checkpointed = replace(case, options={**options, "gradient_checkpointing": True})
        yield "--gradient-checkpointing", checkpointed
        if "optimizer" not in options:
            yield "--optimizer sgd", replace(case, options={**options, "optimizer": "sgd"})
    for axis in AXES:
        least, length = _LENGTHS.get(axis.field), getattr(case.shapes, axis.field, None)
        while least and length and length // 2 >= least:
            length //= 2
            shapes = replace(case.shapes, **{axis.field: length})
            yield f"{axis.option} {length}", replace(case, shapes=shapes)
