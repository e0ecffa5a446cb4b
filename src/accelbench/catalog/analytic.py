"""From counts to `costs.json`: exact polynomials in batch and sequence (or image).

    python -m accelbench.catalog.analytic --write    counts every model, writes the file
    python -m accelbench.catalog.analytic            says which entries are out of date

A transformer's cost is linear in the batch and quadratic in the sequence; a
convolutional network's is quadratic in the image side, in steps of its total
stride. Coefficients come from three counted lengths and two batches, and must
give whole numbers and reproduce other lengths and another batch exactly;
otherwise nothing is written. The peak is the largest of several polynomials:
one for each moment of the pass that no other moment dominates.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from accelbench.catalog.build import skeleton
from accelbench.catalog.cost import COSTS_FILE, value
from accelbench.catalog.find import every_model
from accelbench.catalog.inputs import input_shapes
from accelbench.core.case import Shapes
from accelbench.core.errors import EXIT_NO, SurroundingsError
from accelbench.core.model import ModelSpec

if TYPE_CHECKING:
    import torch

    from accelbench.catalog.counting import Count

_BATCHES, _OTHER_BATCH = (1, 2), 3
_QUANTITIES = ("flops", "bytes_moved", "activation_bytes")
#: Total stride of the catalogue's convolutional networks: at its multiples no side is rounded.
_STRIDE = 32


def count(spec: ModelSpec, shapes: Shapes, half: bool = False) -> Count:
    """Count one forward pass of a model at these shapes.

    Args:
        spec: the model.
        shapes: the sizes; defaults are filled in.
        half: count it in a 16-bit type instead of fp32.
    """
    return _count(spec, _in_type(skeleton(spec), half), shapes, half)


def _count(spec: ModelSpec, module: torch.nn.Module, shapes: Shapes, half: bool) -> Count:
    import torch

    from accelbench.catalog.counting import count_forward

    types = {
        "float": torch.bfloat16 if half else torch.float32,
        "float32": torch.float32,
        "int64": torch.int64,
        "bool": torch.bool,
    }
    sizes = input_shapes(spec, shapes)
    inputs = {
        tensor.name: torch.empty(sizes[tensor.name], dtype=types[tensor.dtype], device="meta")
        for tensor in spec.inputs
    }
    return count_forward(module, inputs)


def _in_type(module: torch.nn.Module, half: bool) -> torch.nn.Module:
    return module.bfloat16() if half else module


def entry(spec: ModelSpec) -> dict[str, Any]:
    """What `costs.json` holds for a model.

    Raises:
        SurroundingsError: no exact rule was found.
    """
    along, step, lengths, others = _lengths(spec)
    made: dict[str, Any] = {
        "config": spec.config_digest, "along": along, "step": step, "weight_bytes": {},
    }  # fmt: skip
    for kind, half in (("fp32", False), ("half", True)):
        module = _in_type(skeleton(spec), half)
        made["weight_bytes"][kind] = _stored_bytes(module)

        def at(batch: int, length: int, module: Any = module, half: bool = half) -> Count:
            sizes = {} if along is None else {along: length * step}
            return _count(spec, module, Shapes(batch, **sizes), half)

        made[kind] = _fit(spec.id, at, lengths, others)
    return made


def _lengths(spec: ModelSpec) -> tuple[str | None, int, Sequence[int], Sequence[int]]:
    """Along which size the cost varies, its unit, the lengths to fit, the lengths to check."""
    if spec.sequence is not None:
        longest = spec.max_sequence or 2 * spec.sequence
        others = {1, 2, spec.sequence, longest}
        return "sequence", 1, (16, 48, 80), sorted(others)
    if spec.image is not None and "image_size" not in spec.config:
        return "image", _STRIDE, (2, 3, 5), (1, 4, 7)
    return None, 1, (0,), ()


def _stored_bytes(module: torch.nn.Module) -> int:
    """Parameters and buffers, what is tied once."""
    tensors = {id(t): t for t in (*module.parameters(), *module.buffers())}
    return sum(tensor.nbytes for tensor in tensors.values())


def _fit(
    model: str, at: Callable[[int, int], Count], lengths: Sequence[int], others: Sequence[int]
) -> dict[str, Any]:
    counts = {(b, x): at(b, x) for b in _BATCHES for x in lengths}

    def polynomial(read: Callable[[Count], int]) -> list[list[int]]:
        return _through(lengths, {point: read(c) for point, c in counts.items()}, model)

    fitted: dict[str, Any] = {
        name: polynomial(lambda c, name=name: int(getattr(c, name)))  # type: ignore[misc]
        for name in _QUANTITIES
    }
    moments = {len(c.live_bytes) for c in counts.values()}
    if len(moments) != 1:
        raise _inexact(model, "the operations of the pass differ from shape to shape")
    peaks = [
        polynomial(lambda c, moment=moment: c.live_bytes[moment])  # type: ignore[misc]
        for moment in range(moments.pop())
    ]
    fitted["peak_activation_bytes"] = _undominated(peaks)
    for length in others or lengths:
        _check(model, fitted, at(_OTHER_BATCH, length), _OTHER_BATCH, length)
    return fitted


def _through(
    lengths: Sequence[int], points: Mapping[tuple[int, int], int], model: str
) -> list[list[int]]:
    """The polynomial, linear in batch, of least degree in length, through all points."""
    one, two = (_lagrange(lengths, [points[b, x] for x in lengths]) for b in _BATCHES)
    slope = [q - p for p, q in zip(one, two, strict=True)]
    rows = [[p - s for p, s in zip(one, slope, strict=True)], slope]
    if any(c.denominator != 1 for row in rows for c in row):
        raise _inexact(model, "a coefficient is no whole number")
    return [[int(c) for c in row] for row in rows]


def _lagrange(xs: Sequence[int], ys: Sequence[int]) -> list[Fraction]:
    """Coefficients, lowest power first, of the polynomial through the points."""
    total = [Fraction(0)] * len(xs)
    for i, (xi, yi) in enumerate(zip(xs, ys, strict=True)):
        basis = [Fraction(yi)]
        for j, xj in enumerate(xs):
            if j != i:  # times (x - xj) / (xi - xj)
                shifted = [Fraction(0), *basis]
                scaled = [-xj * c for c in basis] + [Fraction(0)]
                basis = [(a + b) / (xi - xj) for a, b in zip(shifted, scaled, strict=True)]
        total = [a + b for a, b in zip(total, basis, strict=True)]
    return total


def _undominated(polynomials: list[list[list[int]]]) -> list[list[list[int]]]:
    """Those that can be the largest for some batch and length of one or more."""
    flat = {tuple(c for row in p for c in row) for p in polynomials}

    def dominated(one: tuple[int, ...]) -> bool:
        return any(all(a <= b for a, b in zip(one, o, strict=True)) for o in flat if o != one)

    kept = [one for one in sorted(flat, reverse=True) if not dominated(one)]
    width = len(polynomials[0][0])
    return [[list(k[:width]), list(k[width:])] for k in kept]


def _check(model: str, fitted: Mapping[str, Any], seen: Count, batch: int, length: int) -> None:
    said = {name: value(fitted[name], batch, length) for name in _QUANTITIES}
    said["peak_activation_bytes"] = max(
        value(peak, batch, length) for peak in fitted["peak_activation_bytes"]
    )
    for name, figure in said.items():
        if figure != getattr(seen, name):
            raise _inexact(
                model,
                f"{name} at batch {batch}, length {length} is {getattr(seen, name)}, not {figure}",
            )


def _inexact(model: str, why: str) -> SurroundingsError:
    return SurroundingsError(
        f"No exact cost rule was found for {model}: {why}.",
        "Give its spec sizes for which one holds.",
    )


def render(entries: Mapping[str, Any]) -> str:
    """The text of `costs.json`: one line a quantity, so that a change reads well."""
    models = []
    for name, made in sorted(entries.items()):
        lines = []
        for key, what in made.items():
            if key in ("fp32", "half"):
                inner = ",\n".join(f"   {json.dumps(k)}: {json.dumps(v)}" for k, v in what.items())
                lines.append(f"  {json.dumps(key)}: {{\n{inner}\n  }}")
            else:
                lines.append(f"  {json.dumps(key)}: {json.dumps(what)}")
        models.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(models) + "\n}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write `costs.json`, or say which entries are out of date."""
    parser = argparse.ArgumentParser(prog="python -m accelbench.catalog.analytic")
    parser.add_argument("--write", action="store_true", help="write costs.json")
    asked = parser.parse_args(arguments)
    text = render({spec.id: entry(spec) for spec in every_model()})
    if asked.write:
        COSTS_FILE.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{COSTS_FILE}: {len(every_model())} models\n")
        return 0
    old = COSTS_FILE.read_text(encoding="utf-8") if COSTS_FILE.is_file() else ""
    if old == text:
        sys.stdout.write("costs.json is up to date\n")
        return 0
    sys.stdout.write("costs.json is out of date: run again with --write\n")
    return EXIT_NO


if __name__ == "__main__":
    sys.exit(main())
