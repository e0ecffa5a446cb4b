"""Options of steps that several processes share, and of commands that address a fleet."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

import typer

from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes
from accelbench.hardware.detect import GPU
from accelbench.run.plan.request import AUTO_STRATEGY, STRATEGIES, Distribution

#: What was typed, by the names below.
DistributedWords = Mapping[str, Any]
#: Stands in a command's parameters where these options stand in its help.
DISTRIBUTED: DistributedWords = {}

_GIB = 2**30
_OPTIONS: tuple[tuple[str, Any, Any], ...] = (
    (
        "distributed",
        bool,
        typer.Option(
            False, "--distributed", help="Several processes or devices make each step together."
        ),
    ),
    (
        "gpu_count",
        int | None,
        typer.Option(
            None, "--gpu-count", min=1, help="How many GPUs, one process each; 2 by default."
        ),
    ),
    (
        "processes",
        int | None,
        typer.Option(
            None,
            "--processes",
            "--world-size",
            min=1,
            help="The same of any hardware; on a CPU they share its cores.",
        ),
    ),
    (
        "max_memory_gb",
        float | None,
        typer.Option(
            None, "--max-memory-gb", help="What each process may take; what is free by default."
        ),
    ),
    (
        "strategy",
        str | None,
        typer.Option(
            None, "--strategy", help="ddp, fsdp2, fsdp or tp; auto, the default, takes what fits."
        ),
    ),
    (
        "accumulate",
        int | None,
        typer.Option(None, "--accumulate", min=1, help="Micro-batches a step; as memory needs."),
    ),
    (
        "no_baseline",
        bool,
        typer.Option(False, "--no-baseline", help="Do not measure one process as well."),
    ),
    (
        "node_rank",
        int | None,
        typer.Option(
            None, "--node-rank", min=0, help="Which of them this is: 0 measures, others take part."
        ),
    ),
)
_NAMES = tuple(name for name, _, _ in _OPTIONS)
#: Where several machines meet, as a remedy says it.
_MEETING = "--rdzv-endpoint HOST:PORT, the same to all, HOST being machine 0."
#: What every worker is told as well, and the command declares itself: its option and its default.
_OF_JOBS = {"nodes": ("--nnodes", 1), "rendezvous": ("--rdzv-endpoint", None)}


def with_distributed_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with these options in place of its parameter `distributed`."""
    signature = inspect.signature(command)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    options = [
        inspect.Parameter(name, kind, default=option, annotation=_written(annotation))
        for name, annotation, option in _OPTIONS
    ]
    parameters = [
        option
        for parameter in signature.parameters.values()
        for option in (options if parameter.name == "distributed" else (parameter,))
    ]

    @wraps(command)
    def wrapper(**typed: Any) -> None:
        command(distributed={name: typed.pop(name) for name in _NAMES}, **typed)

    hints = {n: hint for n, hint in command.__annotations__.items() if n != "distributed"}
    wrapper.__annotations__ = hints | {name: hint for name, hint, _ in _OPTIONS}
    wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return wrapper


def _written(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


@dataclass(frozen=True)
class DistributedRun:
    """What was asked of several processes: how, where, and as which machine."""

    how: Distribution | None = None  # None: each step is one process's
    hardware: tuple[str, ...] = ()  # what is meant where none is named


def distributed_run(typed: DistributedWords, named: bool) -> DistributedRun:
    """What these options mean."""
    if not typed["distributed"]:
        options = {n: (o.param_decls[0], o.default) for n, _, o in _OPTIONS} | _OF_JOBS
        option = next((o for n, (o, usual) in options.items() if typed[n] not in (None, usual)), "")
        if not option:
            return DistributedRun()
        raise UsageError(f"{option} is of --distributed.", "Add it, or leave this out.")
    gpus, count = typed["gpu_count"], typed["processes"]
    if gpus and count and gpus != count:
        raise UsageError("--gpu-count and --processes contradict each other.", "Leave one out.")
    count, nodes = gpus or count or 2, typed["nodes"]
    if count * nodes < 2:
        raise UsageError(
            "--distributed is of several processes, and one was asked for.",
            "Use 2 or more, or leave out --distributed.",
        )
    _refuse_meeting(typed, nodes)
    return DistributedRun(
        Distribution(
            processes=count * nodes,
            strategy=_strategy(typed["strategy"]),
            accumulate=typed["accumulate"],
            memory_bytes=_bytes(typed["max_memory_gb"]),
            baseline=not typed["no_baseline"],
            nodes=nodes,
        ),
        # Whoever counts GPUs means GPUs: a processor is not taken in their place.
        (GPU,) if gpus and not named else (),
    )


def _refuse_meeting(typed: DistributedWords, nodes: int) -> None:
    node, place = typed["node_rank"] or 0, typed["rendezvous"]
    if nodes == 1:
        if place or typed["node_rank"] is not None:
            raise UsageError(
                "--node-rank and --rdzv-endpoint are of several machines.", "Add --nnodes."
            )
        return
    if place is not None and (":" not in place or not place.rpartition(":")[2].isdecimal()):
        raise UsageError(f"{in_quotes(place)} is no place where machines meet.", f"Give {_MEETING}")
    if node >= nodes:
        raise UsageError(
            f"There is no machine {node} of {nodes}.", f"--node-rank is 0 to {nodes - 1}."
        )


def refuse_no_meeting(typed: DistributedWords) -> None:
    """Refuse several machines that nobody brings together."""
    if typed["nodes"] > 1 and not typed["rendezvous"]:
        raise UsageError("Several machines need a place where they meet.", f"Give {_MEETING}")


def _strategy(word: str | None) -> str:
    known = (AUTO_STRATEGY, *STRATEGIES)
    strategy = (word or AUTO_STRATEGY).lower()
    if strategy not in known:
        raise UsageError(f"There is no strategy {in_quotes(strategy)}.", f"Use {', '.join(known)}.")
    return strategy


def _bytes(word: float | str | None) -> int | None:
    if word is None:
        return None
    try:
        gib = float(word)  # a plan file has it as it was written
    except ValueError:
        gib = 0.0
    if not 0 < gib < 2**20:
        raise UsageError(f"{word} GiB of memory is impossible.", "Use more than 0.")
    return int(gib * _GIB)


#: Typed as what typer puts in their place.
ADDRESS: Any = typer.Option(
    None,
    "--address",
    metavar="HOST:PORT",
    help="The head of a fleet, or of any Ray cluster; auto on a node of one. The fleet that was"
    " started or joined here by default.",
)
TOKEN_FILE: Any = typer.Option(
    None, "--token-file", help="The file of its token; the one of the fleet here by default."
)


def with_options_of(
    app: typer.Typer, without: frozenset[str]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Have a command take the options of an application's one command as well, but for some.

    Those that are left out have their defaults among what the command gets.
    """
    (registered,) = app.registered_commands
    assert registered.callback is not None
    theirs = inspect.signature(registered.callback).parameters
    hints = registered.callback.__annotations__
    defaults = defaults_of(app)

    def taking(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        taken = [p for name, p in theirs.items() if name != own[0].name and name not in without]
        left_out = {name: default for name, default in defaults.items() if name in without}

        @wraps(command)
        def wrapper(**typed: Any) -> None:
            command(**left_out, **typed)

        wrapper.__annotations__ = {
            **{p.name: hints[p.name] for p in taken},
            **{name: hint for name, hint in command.__annotations__.items() if name != "typed"},
        }
        wrapper.__signature__ = signature.replace(parameters=[own[0], *taken, *own[1:]])  # type: ignore[attr-defined]
        return wrapper

    return taking


def defaults_of(app: typer.Typer) -> dict[str, Any]:
    """What an application's one command gets where nothing is typed, but for its context."""
    (registered,) = app.registered_commands
    assert registered.callback is not None
    parameters = inspect.signature(registered.callback).parameters
    return {
        name: getattr(p.default, "default", p.default)
        for name, p in parameters.items()
        if p.default is not p.empty
    }


class NarrowedContext:
    """What of a command's parameters was typed, for those that another command has as well."""

    def __init__(self, ctx: typer.Context, names: Iterable[str]) -> None:
        self._ctx = ctx
        self._names = frozenset(names)

    def get_parameter_source(self, name: str) -> Any:
        """Where a parameter comes from; None of one that is not shared."""
        return self._ctx.get_parameter_source(name) if name in self._names else None
