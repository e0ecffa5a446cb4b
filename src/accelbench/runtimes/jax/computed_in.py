"""In which types a compiled program multiplies, read from XLA's own text of it.

A back end without arithmetic in a type puts conversions around each product: the
program takes and gives bf16, and multiplies in f32. So does XLA on CPUs, with all
of them. What counts is therefore what the products themselves read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

#: XLA's names of what models are measured in, as everybody else has them.
_NAMES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}

_DEFINED = re.compile(r"^\s*(?:ROOT )?%?([\w.\-]+) = \(?(\w+)\[")
_PRODUCT = re.compile(r" (dot|convolution|ragged-dot)\(([^)]*)\)")
_CALLED = re.compile(r' custom-call\(([^)]*)\).*custom_call_target="([^"]*)"')
_LIBRARY = re.compile(r"gemm|matmul|conv|dot|cudnn\$f", re.IGNORECASE)
_NAME = re.compile(r"%([\w.\-]+)")


def multiplied_in(text: str) -> dict[str, float]:
    """The share of a program's products by the type of what they read, "float32" and the like."""
    types: dict[str, str] = {}
    counted: Counter[str] = Counter()
    for line in text.splitlines():
        defined = _DEFINED.match(line)
        if defined is None:
            continue
        operands = _operands(line)
        if operands is not None:
            counted[_widest(operands, types, defined[2])] += 1
        # After its operands are looked up: a name of another computation may be the same.
        types[defined[1]] = defined[2]
    total = counted.total()
    return {_NAMES.get(name, name): count / total for name, count in sorted(counted.items())}


def _operands(line: str) -> list[str] | None:
    """What a product reads; None where a line is none."""
    product = _PRODUCT.search(line)
    if product is not None:
        return _NAME.findall(product[2])
    called = _CALLED.search(line)
    if called is not None and _LIBRARY.search(called[2]):
        return _NAME.findall(called[1])
    return None


def _widest(operands: list[str], types: Mapping[str, str], result: str) -> str:
    """Of the first two operands; where their types are not known, the result's."""
    known = [types[name] for name in operands[:2] if name in types]
    return max(known or [result], key=lambda name: int(re.sub(r"\D", "", name)[:2] or 0))
