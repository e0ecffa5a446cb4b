"""Exact polynomials of what a pass takes, from counts at a few batches and lengths.

    python -m accelbench.catalog.analytic --write    counts every model, writes `costs.json`
    python -m accelbench.catalog.analytic            reports whether the file is out of date

A transformer's cost is linear in the batch and quadratic in the sequence. A convolutional
network's is quadratic in the image side, in steps of its total stride, and of the fourth degree
if it attends to its pixels. Coefficients must be whole numbers and reproduce other lengths and
another batch exactly. If no such rule holds (a scan, windows), a pass is counted at the default
sizes only. The peak is the largest of several polynomials: one for each moment of the pass that
no other moment dominates.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from accelbench.catalog.cost import COSTS_FILE
from accelbench.catalog.find import every_model
from accelbench.catalog.polynomials import InexactError, through, undominated, value
from accelbench.core import processes
from accelbench.core.case import Shapes
from accelbench.core.errors import EXIT_NO, SurroundingsError
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import Architecture

if TYPE_CHECKING:
    from accelbench.catalog.counting import Count


#: Batches to fit through, and one to check. With a batch of one torch leaves out copies and
#: sums that change nothing: where that shows, a batch of one has polynomials of its own.
#: A batch whose items are compared with each other costs its square: a third batch shows it.
_FROM_ONE, _FROM_TWO, _SQUARED, ALONE = ((1, 2), 3), ((2, 3), 4), ((2, 3, 4), 5), ((1,), 1)
Batches = tuple[tuple[int, ...], int]
QUANTITIES = ("flops", "bytes_moved", "activation_bytes")
PEAK = "peak_activation_bytes"


class Counted(Protocol):
    """Counts of one pass."""

    @property
    def flops(self) -> int: ...
    @property
    def bytes_moved(self) -> int: ...
    @property
    def activation_bytes(self) -> int: ...
    @property
    def live_bytes(self) -> list[int]: ...
    @property
    def peak_activation_bytes(self) -> int: ...


#: One kind of pass at a batch and a length: a list of one, or of a decode step and the next.
At = Callable[[int, int], Counted]


@dataclass(frozen=True)
class Rule:
    """The size along which a pass is fitted, in which steps, at which lengths."""

    along: str | None
    step: int
    lengths: tuple[int, ...]
    others: tuple[int, ...]

    def shapes(self, batch: int, length: int) -> Shapes:
        """Return the shapes at a point."""
        sizes: dict[str, Any] = {} if self.along is None else {self.along: length * self.step}
        return replace(Shapes(batch), **sizes)


DEFAULT_SIZES = Rule(None, 1, (0,), (0,))


def exact(fitted: Callable[[Batches], dict[str, Any]], *, trains: bool = False) -> dict[str, Any]:
    """Fit all batches, or two and more with a batch of one apart."""
    if not trains:
        try:
            return fitted(_FROM_ONE)
        except InexactError:
            pass
    alone = fitted(ALONE)
    try:
        return {**fitted(_FROM_TWO), "alone": alone}
    except InexactError:
        return {**fitted(_SQUARED), "alone": alone}


def fit(
    at: At, rule: Rule, batches: Batches, *, apart: bool = False, peak_slack: float = 0.0
) -> dict[str, Any]:
    """Fit polynomials of every quantity along a rule.

    Args:
        at: counts at a batch and a length.
        rule: where to count.
        batches: those to fit, and one to check.
        apart: leave the peak's moments as they are, to be combined with others.
        peak_slack: relative error of the peak that is accepted.

    Raises:
        InexactError: the polynomials do not reproduce other points.
    """
    fitted_to, other = batches
    counts = {(b, x): at(b, x) for b in fitted_to for x in rule.lengths}

    def polynomial(read: Callable[[Counted], int]) -> list[list[int]]:
        points = {point: read(c) for point, c in counts.items()}
        return through(fitted_to, rule.lengths, points)

    fitted: dict[str, Any] = {
        name: polynomial(lambda c, name=name: int(getattr(c, name)))  # type: ignore[misc]
        for name in QUANTITIES
    }
    moments = {len(c.live_bytes) for c in counts.values()}
    if len(moments) == 1:
        peaks = [
            polynomial(lambda c, moment=moment: c.live_bytes[moment])  # type: ignore[misc]
            for moment in range(moments.pop())
        ]
    else:  # the pass loops along the length: as many operations as there are places
        peaks = [polynomial(lambda c: c.peak_activation_bytes)]
    fitted[PEAK] = peaks if apart else undominated(peaks)
    for length in rule.others:
        _check(fitted, at(other, length), other, length, peak_slack)
    return fitted


def _check(
    fitted: Mapping[str, Any], seen: Counted, batch: int, length: int, peak_slack: float
) -> None:
    figures = {name: value(fitted[name], batch, length) for name in QUANTITIES}
    figures[PEAK] = max(value(peak, batch, length) for peak in fitted[PEAK])
    for name, figure in figures.items():
        # Gradients come in another order where sizes differ, and so the peak is not exact.
        slack = figure * peak_slack if name == PEAK else 0
        if abs(figure - getattr(seen, name)) > slack:
            raise InexactError(
                f"{name} at batch {batch}, length {length} is {getattr(seen, name)}, not {figure}"
            )


#: What the peak of a training step may be off by between the points that were counted.
_SLACK = 0.05
_KINDS = (("fp32", False), ("half", True))

#: By how much the lengths that are fitted are longer than the shortest possible: short ones,
#: since what holds exactly holds for any, but none of one or two places, which torch and
#: losses that compare neighbours treat apart.
_SPREAD = (3, 5, 10)


def rules(spec: ModelSpec, kind: str) -> Iterator[Rule]:
    """Yield the rules that may hold for a pass of a model, the most general first."""
    if spec.architecture is not Architecture.STATE_SPACE:  # its scan pads to powers of two
        if kind == "request":
            yield from _along_prompt(spec)
        elif spec.sequence is not None:
            yield from _along_sequence(spec, kind)
        elif spec.image is not None and "image_size" not in spec.config:
            yield from _along_image(spec, kind)
        elif spec.audio is not None and not spec.fixed_audio:
            yield Rule("audio", 1, (1, 2, 4), (3, spec.audio))
    yield DEFAULT_SIZES


def _along_prompt(spec: ModelSpec) -> Iterator[Rule]:
    makes = spec.generation
    assert makes is not None
    least, longest = makes.min_prompt, (makes.max_tokens or 2**30) - 4  # room for steps
    if longest >= least + _SPREAD[-1]:
        lengths = tuple(least + more for more in _SPREAD)
        yield Rule("prompt_tokens", 1, lengths, (least + 2, min(makes.prompt_tokens, longest)))


def _along_sequence(spec: ModelSpec, kind: str) -> Iterator[Rule]:
    assert spec.sequence is not None
    least = max((input_.lead[1] + 1 for input_ in spec.inputs if input_.lead), default=1)
    longest = spec.max_sequence or 2 * spec.sequence
    if longest >= least + _SPREAD[-1]:
        lengths = tuple(least + more for more in _SPREAD)
        others = (least + 2, spec.sequence)
        yield Rule("sequence", 1, lengths, others if kind == "training" else (*others, longest))


def _along_image(spec: ModelSpec, kind: str) -> Iterator[Rule]:
    """Yield rules in steps of the total stride: at its multiples no side is rounded.

    A denoiser's stride is eight times that of its latent, eight. One step alone is not checked: a
    batch norm in training has nothing to normalise there. If pixels attend to each other it takes
    five sizes, at which a backward pass is not counted.
    """
    if spec.architecture is Architecture.DIFFUSION:
        if kind == "forward":
            yield Rule("image", 64, (1, 2, 3, 4, 5), (7,))
    elif spec.task != "object-detection":
        yield Rule("image", 32, (2, 3, 5), (4, 7))
    elif kind == "forward":
        yield Rule("image", 32, (2, 3, 4, 5, 6), (8,))


def entry(spec: ModelSpec) -> dict[str, Any]:
    """Return the entry of `costs.json` for a model, or raise SurroundingsError if no rule holds."""
    made: dict[str, Any] = {"config": spec.config_digest}
    made["forward"] = _first_exact(spec, "forward", _forward)
    if spec.generation is not None:
        made["request"] = _first_exact(spec, "request", _request)
    if spec.training is not None:
        made["training"] = {
            "config": spec.trained.config_digest, **_first_exact(spec, "training", _training)
        }  # fmt: skip
    return made


def _first_exact(
    spec: ModelSpec, kind: str, fit: Callable[[ModelSpec, Rule], dict[str, Any]]
) -> dict[str, Any]:
    why = ""
    for rule in rules(spec, kind):
        try:
            return {"along": rule.along, "step": rule.step, **fit(spec, rule)}
        except InexactError as error:
            why = str(error)
    raise SurroundingsError(
        f"No exact cost rule was found for {spec.id} ({kind}): {why}.",
        "Give its spec sizes for which one holds.",
    )


def _forward(spec: ModelSpec, rule: Rule) -> dict[str, Any]:
    from accelbench.catalog.passes import Passes

    made = {}
    for kind, half in _KINDS:
        passes = Passes(spec, half)
        at = cache(lambda b, x, p=passes: p.forward(rule.shapes(b, x)))
        fitted = exact(lambda batches, at=at: fit(at, rule, batches))  # type: ignore[misc]
        made[kind] = {"weight_bytes": passes.stored_bytes(), **fitted}
    return made


def _request(spec: ModelSpec, rule: Rule) -> dict[str, Any]:
    """Fit prefill, the first decode step, and the growth from each step to the next."""
    from accelbench.catalog.passes import Passes

    makes = spec.generation
    assert makes is not None
    steps = 3
    made: dict[str, Any] = {}
    for kind, half in _KINDS:
        passes = Passes(spec, half)

        @cache
        def seen(batch: int, length: int, passes: Passes = passes) -> list[Count]:
            shapes = rule.shapes(batch, length)
            prompt = shapes.prompt_tokens or makes.prompt_tokens
            shapes = replace(shapes, prompt_tokens=prompt, new_tokens=steps + 1)
            return passes.request(shapes, steps)

        def fitted(batches: Batches, seen: Callable[..., list[Count]] = seen) -> dict[str, Any]:
            prefill = fit(lambda b, x: seen(b, x)[0], rule, batches)
            first, second, third = (
                fit(lambda b, x, which=which: seen(b, x)[which], rule, batches, apart=True)  # type: ignore[misc]
                for which in range(1, steps + 1)
            )
            growth = _difference(second, first)
            if _difference(third, second) != growth:
                raise InexactError("a step is not by as much more than the last as that one was")
            return {"prefill": prefill, "decode": _together(first, growth)}

        made[kind] = exact(fitted)
    return made


def _training(spec: ModelSpec, rule: Rule) -> dict[str, Any]:
    from accelbench.catalog.passes import TrainingPasses

    passes = TrainingPasses(spec)
    at = cache(lambda b, x: passes.step(rule.shapes(b, x)))
    trained, largest = passes.trained_weights()
    made = {
        "trained": trained,
        "largest": largest,
        "fp32": {
            "weight_bytes": passes.stored_bytes(),
            **exact(lambda batches: fit(at, rule, batches, peak_slack=_SLACK), trains=True),
        },
    }
    try:
        saving = TrainingPasses(spec, checkpointed=True)
    except ValueError:  # it has no gradient checkpointing
        return made
    # Of this pass the default sizes tell enough: in which proportion results are not kept.
    sizes = DEFAULT_SIZES
    once = cache(lambda b: saving.step(sizes.shapes(b, 0)))
    fitted = exact(lambda batches: fit(lambda b, _: once(b), sizes, batches, peak_slack=_SLACK))
    made["checkpointed"] = {name: fitted[name] for name in ("flops", PEAK)}
    return made


def _difference(later: Mapping[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    def minus(a: Any, b: Any) -> Any:
        if isinstance(a, list):
            return [minus(p, q) for p, q in zip(a, b, strict=True)]
        return a - b

    if len(later[PEAK]) != len(earlier[PEAK]):
        raise InexactError("the operations of a step differ from the last one's")
    return {name: minus(later[name], earlier[name]) for name in (*QUANTITIES, PEAK)}


def _together(first: Mapping[str, Any], growth: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {name: [first[name], growth[name]] for name in QUANTITIES}
    moments = [[*a, *b] for a, b in zip(first[PEAK], growth[PEAK], strict=True)]
    kept = undominated(moments)
    made[PEAK] = [[moment[:2], moment[2:]] for moment in kept]
    return made


def render(entries: Mapping[str, Any]) -> str:
    """Return the text of `costs.json`: one line per quantity, for readable changes."""
    return _said(dict(sorted(entries.items())), 0) + "\n"


def _said(what: Any, depth: int) -> str:
    if not isinstance(what, dict):
        return json.dumps(what)
    margin = " " * (depth + 1)
    lines = [f"{margin}{json.dumps(key)}: {_said(inner, depth + 1)}" for key, inner in what.items()]
    return "{\n" + ",\n".join(lines) + "\n" + " " * depth + "}"


def _entry_of(spec: ModelSpec) -> tuple[str, dict[str, Any]]:
    import torch

    torch.set_num_threads(1)
    return spec.id, entry(spec)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write `costs.json`, or report whether it is out of date."""
    parser = argparse.ArgumentParser(prog="python -m accelbench.catalog.analytic")
    parser.add_argument("--write", action="store_true", help="write costs.json")
    parser.add_argument("models", nargs="*", help="count these anew; all, where none is named")
    options = parser.parse_args(arguments)
    old = COSTS_FILE.read_text(encoding="utf-8") if COSTS_FILE.is_file() else "{}"
    wanted = [spec for spec in every_model() if not options.models or spec.id in options.models]
    known = {spec.id for spec in every_model()}
    kept = {name: made for name, made in json.loads(old).items() if name in known}
    with processes.pool(min(len(wanted), os.cpu_count() or 1)) as pool:
        text = render({**kept, **dict(pool.map(_entry_of, wanted))})
    if options.write:
        COSTS_FILE.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{COSTS_FILE}: {len(wanted)} models\n")
        return 0
    if old == text:
        sys.stdout.write("costs.json is up to date\n")
        return 0
    sys.stdout.write("costs.json is out of date: run again with --write\n")
    return EXIT_NO


if __name__ == "__main__":
    sys.exit(main())
