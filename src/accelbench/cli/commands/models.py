"""`accelbench models`: what can be measured by name."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import typer

from accelbench.cli.arguments.shared_options import AS_JSON, parameters_of
from accelbench.core.axes import COLUMN_ORDER, Part, axes_of
from accelbench.core.case import Shapes
from accelbench.core.formatting import NO_DATA
from accelbench.core.model import AnalyticCost, ModelSpec
from accelbench.models.cost import cost
from accelbench.models.find import every_model
from accelbench.models.selection import choose, notes_on
from accelbench.present.document import Document, Notes, Table, TableColumn, columns
from accelbench.present.terminal.documents import show
from accelbench.present.terminal.terminal import print_lines
from accelbench.present.terminal.words import parameters_in_short

argument, option = parameters_of("models")
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def models(
    name: str | None = argument(None, metavar="[NAME]"),
    category: list[str] = option([], "--category"),
    set_name: str | None = option(None, "--set"),
    as_json: bool = AS_JSON,
) -> None:
    """List what can be measured by name, or show one model in full.

    GFLOP counts multiply and add apart, for one item at the model's default size.
    """
    if name is not None:
        chosen: tuple[ModelSpec, ...] = choose([name])
    elif set_name is not None or category:
        wanted = [part.strip() for entry in category for part in entry.split(",") if part.strip()]
        chosen = choose(set_name=set_name, categories=wanted)
    else:
        chosen = every_model()
    if as_json:
        document = {"models": [card(spec) for spec in chosen]}
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    elif name is not None:
        print_lines([*_in_full(chosen[0]), *(f"Note: {note}" for note in notes_on(chosen[0]))])
    else:
        show(_table(chosen))


def card(spec: ModelSpec) -> dict[str, Any]:
    """What the JSON document says of a model; figures that were not counted are null."""
    counted = _for_one_item(spec)
    return {
        "model": spec.id,
        "family": spec.family.value,
        "architecture": spec.architecture.value,
        "modality": list(spec.modalities),
        "task": spec.task,
        "model_size": spec.size,
        "parameters": spec.parameters,
        "weight_bytes_fp32": None if counted is None else counted.weight_bytes,
        "flops_per_item": None if counted is None else counted.flops,
        "bytes_moved_per_item_fp32": None if counted is None else counted.bytes_moved,
        "item": spec.item,
        **dict(_sizes(spec)),
        "loss": spec.training.loss if spec.training else None,
        "inputs": [{"name": i.name, "shape": list(i.shape), "dtype": i.dtype} for i in spec.inputs],
        "sets": list(spec.sets),
        "aliases": list(spec.aliases),
        "hub_ids": list(spec.hub_ids),
        "small_variant": spec.small_variant,
        "config_digest": spec.config_digest,
    }


def _sizes(spec: ModelSpec) -> Iterator[tuple[str, int | None]]:
    for axis in axes_of(*COLUMN_ORDER):
        yield axis.column, axis.default_size(spec)
        if axis.field == "sequence":
            yield "max_sequence_length", spec.max_sequence


def _for_one_item(spec: ModelSpec) -> AnalyticCost | None:
    return cost(spec, Shapes(batch=1), "fp32")


def _gflop(counted: AnalyticCost | None) -> str:
    if counted is None:
        return NO_DATA
    figure = counted.flops / 1e9
    if figure >= 1000:
        return f"{figure:,.0f}"
    return f"{figure:.1f}" if figure >= 10 else f"{figure:.2g}" if figure < 1 else f"{figure:.2f}"


def _megabytes(counted: AnalyticCost | None) -> str:
    return NO_DATA if counted is None else f"{counted.weight_bytes / 2**20:,.1f}"


def _table(specs: tuple[ModelSpec, ...]) -> Document:
    rows = [
        (
            spec.id,
            spec.family,
            spec.architecture,
            parameters_in_short(spec.parameters),
            _gflop(_for_one_item(spec)),
        )
        for spec in specs
    ]
    # A name in two pieces can neither be found nor copied.
    heads = [
        TableColumn("model", is_whole=True),
        *columns(("family", "architecture", "params", "GFLOP"), (2, 3)),
    ]
    note = "GFLOP: one item at its default size. More of a model: accelbench models NAME"
    return Document("", [Table(heads, rows, is_compact=True), Notes([note])])


def _in_full(spec: ModelSpec) -> list[str]:
    counted = _for_one_item(spec)
    sizes = {axis.word: axis.default_size(spec) for axis in axes_of(Part.INPUT, Part.PASSES)}
    makes = spec.generation
    rows = {
        "family": spec.family.value,
        "architecture": spec.architecture.value,
        "modality": ", ".join(spec.modalities),
        "task": spec.task,
        "size": spec.size,
        "parameters": f"{spec.parameters:,}",
        "fp32 MB": _megabytes(counted),
        "GFLOP": f"{_gflop(counted)} for one of its {spec.item} at the default size",
        "default size": ", ".join(f"{k} {v}" for k, v in sizes.items() if v is not None),
        "a request": f"{makes.prompt_tokens} + {makes.new_tokens} tokens" if makes else "",
        "trained on": spec.training.loss.replace("_", " ") if spec.training else "",
        "max sequence": "" if spec.max_sequence is None else str(spec.max_sequence),
        "inputs": ", ".join(f"{i.name} ({' × '.join(map(str, i.shape))})" for i in spec.inputs),
        "sets": ", ".join(spec.sets),
        "also called": ", ".join(spec.aliases),
        "hub ids": ", ".join(spec.hub_ids),
        "smaller one": spec.small_variant or "",
        "built by": spec.builder,
    }
    return [spec.id, *(f"  {key:<14}{text}" for key, text in rows.items() if text)]
