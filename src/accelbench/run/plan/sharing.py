"""Several processes for one step: which strategy, micro-batch and accumulation fit. Pure.

Strategies are tried in the order of their cost: DDP, FSDP2, tensor parallelism; each with the
largest micro-batch that fits, first without recomputing results in the backward pass, then with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from accelbench.core.axes import Part, axes_of
from accelbench.core.case import Case, Option, Shapes
from accelbench.core.devices import sharing_unit_on
from accelbench.core.free_dimensions import resolve_sizes
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import Mode, Status
from accelbench.models.file_models.given_inputs import BATCH
from accelbench.run.plan.request import (
    AUTO_STRATEGY,
    DEFAULT_BATCH_SIZES,
    STRATEGIES,
    Distribution,
    Estimate,
    Refusal,
    Request,
)

#: Whether the runtime takes a case.
Takes = Callable[[Case], bool]

CHECKPOINTING = "gradient_checkpointing"
_OF_RANKS = frozenset({"strategy", "accumulate"})


@dataclass(frozen=True)
class SharedCase:
    """A case as several processes have it, why it will not be tried, and what is to be said."""

    case: Case
    refusal: Refusal | None = None
    notes: tuple[str, ...] = ()


def parts(strategy: str, processes: int) -> int:
    """In how many parts processes have a batch."""
    return 1 if strategy == "tp" else processes


def one_process(case: Case, threads: int) -> Case:
    """Return the same work in one process, with the threads that each of several has."""
    options = {name: value for name, value in case.options.items() if name not in _OF_RANKS}
    return replace(case, world_size=1, options={**options, "threads": threads})


def shared_out(
    case: Case, how: Distribution, room: int | None, estimate: Estimate, takes: Takes
) -> SharedCase:
    """Return a case for several processes, by what fits into the room of each."""
    base = replace(case, world_size=how.processes)
    candidates = [c for c in _candidates(base, how) if takes(c)]
    if not candidates:
        return _none(base, how)
    tried = [(candidate, estimate(candidate)) for candidate in candidates]
    fits = [c for c, need in tried if room is None or need is None or need <= room]
    if not fits:
        return _too_large(tried, room or 0)
    return SharedCase(fits[0], notes=_told(fits[0], tried, room))


def _candidates(case: Case, how: Distribution) -> Iterator[Case]:
    auto = how.strategy == AUTO_STRATEGY
    strategies = STRATEGIES if auto else (how.strategy,)
    saving = (False,) if case.options.get(CHECKPOINTING) else (False, True)
    for saves in saving:
        for strategy in strategies:
            for count in _accumulations(case, strategy, how):
                options: dict[str, Option] = {**case.options, "strategy": strategy}
                if count > 1:
                    options["accumulate"] = count
                if saves:
                    options[CHECKPOINTING] = True
                yield replace(case, options=options)


def _accumulations(case: Case, strategy: str, how: Distribution) -> list[int]:
    """Micro-batches a step that come out even, the fewest first."""
    rows, rest = divmod(case.shapes.batch, parts(strategy, how.processes))
    if rest:
        return []
    if how.accumulate is not None:
        return [how.accumulate] if rows % how.accumulate == 0 else []
    return [count for count in range(1, rows + 1) if rows % count == 0]


def _none(case: Case, how: Distribution) -> SharedCase:
    """No way comes out even, or the runtime takes none: it says why of the first."""
    strategy = STRATEGIES[0] if how.strategy == AUTO_STRATEGY else how.strategy
    each = parts(strategy, how.processes) * (how.accumulate or 1)
    options = {**case.options, "strategy": strategy}
    if how.accumulate and how.accumulate > 1:
        options["accumulate"] = how.accumulate
    case = replace(case, options=options)
    if case.shapes.batch % each == 0:
        return SharedCase(case)  # whoever judges it asks the runtime, and hears why
    nearest = each * max(1, round(case.shapes.batch / each))
    message = f"a batch of {case.shapes.batch} does not come out even over {_sharers(case)}" + (
        f" and {how.accumulate} micro-batches" if (how.accumulate or 1) > 1 else ""
    )
    return SharedCase(
        case, Refusal(Status.UNSUPPORTED, "batch_split", message, f"Use --batch-sizes {nearest}.")
    )


def _too_large(tried: Sequence[tuple[Case, int | None]], room: int) -> SharedCase:
    case, need = min(tried, key=lambda entry: entry[1] or 0)
    message = (
        f"each of {_sharers(case)} has {_gib(room)}, and the least that was found takes"
        f" an estimated {_gib(need or 0)}: {way_of(case)}"
    )
    advice = f"Allow --max-memory-gb {_up(need or 0)}, or use more of them or a smaller batch."
    return SharedCase(
        case, Refusal(Status.OUT_OF_MEMORY, "out_of_memory_estimated", message, advice)
    )


def _told(
    chosen: Case, tried: Sequence[tuple[Case, int | None]], room: int | None
) -> tuple[str, ...]:
    need = next(need for case, need in tried if case is chosen)
    limit = "" if room is None else f" of {_gib(room)}"
    about = "not estimated" if need is None else f"an estimated {_gib(need)}{limit} each"
    first = (
        f"{chosen.model.id}, batch {chosen.shapes.batch}, {_sharers(chosen)}:"
        f" {way_of(chosen)}, {about}."
    )
    before = [(case, n) for case, n in tried[: [c for c, _ in tried].index(chosen)]]
    if not before:
        return (first,)
    refused = "; ".join(f"{way_of(case)} {_gib(n or 0)}" for case, n in _of_each(before))
    return (f"{first} Too much for it: {refused}.",)


def _of_each(tried: Sequence[tuple[Case, int | None]]) -> list[tuple[Case, int | None]]:
    least: dict[tuple[object, ...], tuple[Case, int | None]] = {}
    for case, need in tried:
        key = (case.options["strategy"], case.options.get(CHECKPOINTING))
        if key not in least or (need or 0) < (least[key][1] or 0):
            least[key] = (case, need)
    return list(least.values())


def way_of(case: Case) -> str:
    """How a case is shared out, in words."""
    options: Mapping[str, Option] = case.options
    strategy, count = str(options.get("strategy", "ddp")), int(options.get("accumulate", 1))
    rows = case.shapes.batch // parts(strategy, case.world_size) // count
    words = f"{strategy}, micro-batch {rows}"
    if count > 1:
        words += f" × {count}"
    return f"{words}, checkpointed" if options.get(CHECKPOINTING) else words


def _gib(size: float) -> str:
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def _up(size: float) -> str:
    """GiB, rounded up to what can be typed."""
    return f"{-(-size * 100 // 2**30) / 100:g}"


def _sharers(case: Case) -> str:
    target = case.target
    return f"{case.world_size} {sharing_unit_on(target.hardware, target.runtime)}"


#: How much text there is depends on whether it is read or written, and is settled by itself.
_BESIDE_TEXT = tuple(axis for axis in axes_of(Part.INPUT, Part.PASSES) if axis.field != "sequence")


def usual_batches(model: ModelSpec) -> tuple[int, ...]:
    """Return the batches of a model of which none are named: those that it takes."""
    if model.fixed_batch is not None:
        return (model.fixed_batch,)
    if model.file is None:
        return DEFAULT_BATCH_SIZES
    low, high = model.file.least.get(BATCH, 1), model.file.most.get(BATCH)
    taken = (size for size in DEFAULT_BATCH_SIZES if low <= size <= (high or size))
    return tuple(taken) or (low,)


def shapes_of(model: ModelSpec, request: Request, mode: Mode) -> Iterator[Shapes]:
    """Shapes of batch 1, in ascending order of each size. Sizes that the model has not are None."""
    trains = mode is Mode.TRAINING
    own = (
        None if trains and axis.part is Part.PASSES else axis.default_size(model)
        for axis in _BESIDE_TEXT
    )
    wanted = (getattr(request, axis.option_key) for axis in _BESIDE_TEXT)
    taken = (
        _combined(size, asked) if axis.text else _taken(size, asked)
        for axis, size, asked in zip(_BESIDE_TEXT, own, wanted, strict=True)
    )
    for sizes in product(*taken):
        named: dict[str, Any] = {
            axis.field: size for axis, size in zip(_BESIDE_TEXT, sizes, strict=True)
        }
        yield from _texts(Shapes(batch=1, **named), model, request, mode)


def _texts(base: Shapes, model: ModelSpec, request: Request, mode: Mode) -> Iterator[Shapes]:
    """How much text: whole requests where the model generates, a sequence where it only reads."""
    makes = model.generation if mode is Mode.INFERENCE else None
    new_tokens = sorted(set(request.new_tokens)) or [makes.new_tokens if makes else 0]
    if makes is not None:
        wanted = request.prompt_tokens or request.sequence_lengths
        for prompt, new in product(_taken(makes.prompt_tokens, wanted), filter(None, new_tokens)):
            yield replace(base, prompt_tokens=prompt, new_tokens=new)
    if makes is None or 0 in new_tokens:
        for sequence in _taken(model.sequence, request.sequence_lengths):
            yield replace(base, sequence=sequence)


def _combined(own: str | None, asked: Sequence[str]) -> Sequence[str | None]:
    """What was asked for of the dimensions that the model has, each combination once."""
    if own is None or not asked:
        return [own]
    return list(dict.fromkeys(resolve_sizes(own, one) for one in asked))


def _taken(default: int | None, wanted: Sequence[int]) -> Sequence[int | None]:
    """What was asked for where the model has such a size, else its default."""
    return [default] if default is None or not wanted else sorted(set(wanted))
