"""The options of `run` and `fleet run`, from the fields of RunSpec; other commands' as the same."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import typer

from accelbench.cli.arguments.shared_options import SpacedLists, with_parameters
from accelbench.core.axes import numeric_axes
from accelbench.core.formatting import LARGEST
from accelbench.core.run_options import GROUPS, PlanSection, RunField, run_fields, size_field
from accelbench.present.terminal.terminal import deliver

#: The documents' spellings: by parameter, the field that each is a spelling of; None changes
#: nothing.
SPELLINGS = {
    RunField("batch_size", ("--batch-size",), several=True, hidden=True): "batch_sizes",
    RunField("device", ("--device",), several=True, hidden=True): "hardware",
    RunField("model_id", ("--model-id", "--model"), several=True, hidden=True): "models",
    RunField(
        "model_families", ("--model-families", "--model-family"), several=True, hidden=True
    ): "category",
    RunField("multiple_models", ("--multiple-models",), "truth", default=False, hidden=True): None,
    RunField(
        "training", ("--training", "--training-mode"), "truth", default=False, hidden=True
    ): "mode",
    RunField("small_models", ("--small-models",), "truth", default=False, hidden=True): "set_name",
    RunField("save", ("--save", "--auto-store-db"), "truth", default=False, hidden=True): None,
}


class RunCommand(SpacedLists):
    """A command whose help shows the options in the groups of RunSpec."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups = {field.name: field.group for field in run_fields()}
        records: dict[str, list[Any]] = {group: [] for group in (*GROUPS, "Options")}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                records[groups.get(str(parameter.name), "Options")].append(record)
        for group, lines in records.items():
            if lines:
                with formatter.section(group):
                    formatter.write_dl(lines)


def with_run_options(
    without: Collection[str] = (), *, print_schema: Callable[[bool], None] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a run, but `without` some, in place of its `**typed`."""
    every = (*run_fields(), *SPELLINGS)
    taken = [_parameter(field, print_schema) for field in every if field.name not in without]
    left_out = {field.name: field.default for field in every if field.name in without}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        return with_parameters(command, taken, "typed", lambda typed: left_out | typed)

    return decorate


#: Stands in a command's parameters at the place of its options of sizes.
SIZES: dict[str, list[str] | None] = {}


def with_numbered_sizes(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each axis of numbers in place of its parameter `sizes`."""
    axes = numeric_axes()

    def read(typed: dict[str, Any]) -> dict[str, Any]:
        return {"sizes": {axis.option_key: typed.pop(axis.option_key) for axis in axes}, **typed}

    added = [_parameter(size_field(axis)) for axis in axes]
    return with_parameters(command, added, "sizes", read)


_TYPES: dict[str, Any] = {"number": int, "fraction": float, "truth": bool, "path": Path}


def _parameter(
    field: RunField, print_schema: Callable[[bool], None] | None = None
) -> inspect.Parameter:
    word = ("N,…" if field.kind == "number" else "NAME,…") if field.several else None
    more: dict[str, Any] = {"help": field.about, "hidden": field.hidden}
    more["metavar"] = field.metavar or word
    if field.kind == "number" and not field.several:
        more |= {"min": field.least, "max": None if field.most == LARGEST else field.most}
    if field.name == "plan_schema":
        more |= {"is_eager": True, "callback": print_schema}
    type_: Any = _TYPES.get(field.kind, str)
    annotation: Any = list[str] if field.several else type_
    if field.default is None:
        annotation = annotation | None
    declared = (
        typer.Option(field.default, *field.names, **more)
        if field.names
        else typer.Argument(field.default, **more)
    )
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(field.name, kind, default=declared, annotation=annotation)


def typed_options(ctx: typer.Context, names: Collection[str] | None = None) -> dict[str, str]:
    """Return the parameters that were typed, and the option of each; of some names, or of all."""
    return {
        field.name: field.option or "a model"
        for field in (*run_fields(), *SPELLINGS)
        if (names is None or field.name in names)
        and (source := ctx.get_parameter_source(field.name))
        and source.name == "COMMANDLINE"
    }


def defaults() -> dict[str, Any]:
    """Return the values of all options if nothing is typed."""
    return {field.name: field.default for field in (*run_fields(), *SPELLINGS)}


def options_of(app: typer.Typer) -> list[RunField]:
    """Return the options of an application's one command, in the order of its help.

    They are read off the declarations, which are typer's interface: its parsers change between
    versions.
    """
    (registered,) = app.registered_commands
    assert registered.callback is not None
    parameters = inspect.signature(registered.callback).parameters.values()
    return [_option(one) for one in parameters if hasattr(one.default, "param_decls")]


def _option(parameter: inspect.Parameter) -> RunField:
    declared: Any = parameter.default
    annotation = parameter.annotation
    word = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    kinds: dict[str, Any] = {
        "bool": "truth",
        "int": "number",
        "float": "fraction",
        "Path": "path",
        "pathlib.Path": "path",
    }
    return RunField(
        name=parameter.name,
        names=tuple(
            name.partition("/")[0] for name in declared.param_decls or () if name.startswith("--")
        ),
        kind=kinds.get(word.removesuffix(" | None"), "text"),
        several="list[" in str(annotation),
        whole=True,
        least=None if declared.min is None else int(declared.min),
        most=None if declared.max is None else int(declared.max),
        default=declared.default,
        hidden=bool(declared.hidden),
        about=str(declared.help or ""),
    )


def reference_page() -> str:
    """Return the page docs/run-options.md: every option of `run` by group."""
    lines = [
        "# Options of `accelbench run`",
        "",
        (
            "Each option has a key of the same meaning in [plan files](plans.md), unless its key is"
            " empty. `accelbench.toml` takes the same keys at its top."
        ),
    ]
    for group in GROUPS:
        lines += ["", f"## {group}", "", "| option | key | default | example |  |"]
        lines.append("| --- | --- | --- | --- | --- |")
        for field in run_fields():
            if field.group == group:
                lines.append(f"| {' | '.join(_cells(field))} |")
    return "\n".join(lines) + "\n"


def _cells(field: RunField) -> list[str]:
    names = ", ".join(f"`{name}`" for name in field.names) or f"`{field.metavar}`"
    key = f"`{field.key}`" if field.section is not PlanSection.NONE else ""
    default = f"`{field.default}`" if field.default not in (None, False, "") else ""
    example = f"`{' '.join(filter(None, (field.option, field.example)))}`" if field.example else ""
    return [names, key, default, example, field.about.replace("|", "\\|")]


if __name__ == "__main__":
    deliver(reference_page(), None)
