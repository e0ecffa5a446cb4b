"""Counts the passes of every model of the catalogue into `costs.json`.

    python benchmarks/costs.py --write    counts every model, writes the file
    python benchmarks/costs.py            reports whether the file is out of date

If no exact rule holds (a scan, windows), a pass is counted at the default sizes only.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import torch

from accelbench.core import processes
from accelbench.core.errors import EXIT_NO, SurroundingsError
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import Architecture
from accelbench.models.cost import COSTS_FILE
from accelbench.models.counting import Count
from accelbench.models.find import every_model
from accelbench.models.passes import Passes, TrainingPasses
from accelbench.models.polynomials import (
    DEFAULT_SIZES,
    PEAK,
    QUANTITIES,
    Batches,
    InexactError,
    Rule,
    drop_dominated,
    exact,
    fit,
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
            "config": spec.training_variant.config_digest,
            **_first_exact(spec, "training", _training)
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
    made = {}
    for kind, half in _KINDS:
        passes = Passes(spec, half)
        at = cache(lambda b, x, p=passes: p.forward(rule.shapes(b, x)))
        fitted = exact(lambda batches, at=at: fit(at, rule, batches))  # type: ignore[misc]
        made[kind] = {"weight_bytes": passes.stored_bytes(), **fitted}
    return made


def _request(spec: ModelSpec, rule: Rule) -> dict[str, Any]:
    """Fit prefill, the first decode step, and the growth from each step to the next."""
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
    kept = drop_dominated(moments)
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
    torch.set_num_threads(1)
    return spec.id, entry(spec)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write `costs.json`, or report whether it is out of date."""
    parser = argparse.ArgumentParser(prog="python benchmarks/costs.py")
    parser.add_argument("--write", action="store_true", help="write costs.json")
    parser.add_argument("models", nargs="*", help="count these anew; all, where none is named")
    options = parser.parse_args(arguments)
    old = COSTS_FILE.read_text(encoding="utf-8") if COSTS_FILE.is_file() else "{}"
    wanted = [spec for spec in every_model() if not options.models or spec.id in options.models]
    known = {spec.id for spec in every_model()}
    kept = {name: made for name, made in json.loads(old).items() if name in known}
    with processes.create_pool(min(len(wanted), os.cpu_count() or 1)) as pool:
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
