"""Analytic cost and memory of a step, from counts kept as data: builds no model.

`costs.json` holds polynomials that `benchmarks/costs.py` found to reproduce torch's own
shapes. A model without an entry, or whose config differs from the counted one, has no cost: None,
never a guess. Some passes were counted at the default sizes only and have no cost at others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from accelbench.core.axes import Part, axes_of
from accelbench.core.case import Option, Shapes
from accelbench.core.model import AnalyticCost, ModelSpec
from accelbench.core.precision import bytes_per_weight
from accelbench.core.vocabulary import MIB, Mode
from accelbench.models.inputs import input_bytes, settle
from accelbench.models.polynomials import value

COSTS_FILE = Path(__file__).with_name("costs.json")

#: Which count holds for a precision. Autocast mixes two and int8 depends on the
#: quantiser: their bytes are not known from either.
_KINDS = {"fp32": "fp32", "fp16": "half", "bf16": "half"}

#: AdamW for each weight: decay (1), both moments (3 and 4), the root with its correction
#: and epsilon (3), the step (3); it reads weight, gradient and moments and writes all but
#: the gradient, in fp32.
_ADAMW_FLOPS, _ADAMW_BYTES = 14, 28

#: Options that change a training step's work in ways that were not counted.
UNCOUNTED_OPTIONS = ("optimizer", "gradient_checkpointing", "pure")

_QUANTITIES = ("flops", "bytes_moved", "activation_bytes", "peak_activation_bytes")


@dataclass(frozen=True)
class CostPoint:
    """One pass of a model at one batch and length."""

    counted: Mapping[str, Any]  # of the pass, all kinds
    batch: int
    length: int

    def of(self, kind: str) -> Mapping[str, Any]:
        polynomials: Mapping[str, Any] = self.counted[kind]
        return {**polynomials, **polynomials.get("alone", {})} if self.batch == 1 else polynomials

    def read(self, polynomials: Mapping[str, Any]) -> dict[str, int]:
        quantities = {
            name: value(polynomials[name], self.batch, self.length)
            for name in _QUANTITIES
            if name in polynomials and name != "peak_activation_bytes"
        }
        peaks = polynomials["peak_activation_bytes"]
        return {
            **quantities,
            "peak_activation_bytes": max(value(p, self.batch, self.length) for p in peaks),
        }


def cost(
    spec: ModelSpec, shapes: Shapes, precision: str, mode: str = Mode.INFERENCE
) -> AnalyticCost | None:
    """Return the analytic cost of one step, or None if it was not counted.

    A step is a forward pass; a whole request if tokens are made; every pass of the denoiser for an
    image (without its scheduler: a few operations per latent value); or a training step: forward,
    loss, backward and AdamW. Autocast, int8 and training in other than fp32 are not counted.
    Raises UsageError or UnsupportedError if the model cannot take these shapes.
    """
    kind = _KINDS.get(precision)
    if kind is None:
        return None
    settled = settle(spec, shapes)
    if mode == Mode.TRAINING:
        return _training(spec, settled) if kind == "fp32" else None
    entry = entry_of(spec)
    quantities = (
        request(spec, settled, kind) if settled.new_tokens else _passes(spec, settled, kind)
    )
    if entry is None or quantities is None:
        return None
    return AnalyticCost(**quantities, weight_bytes=entry["forward"][kind]["weight_bytes"])


@dataclass(frozen=True)
class Work:
    """Operations and bytes, wherever they are done."""

    flops: float
    bytes_moved: float


def parts(
    spec: ModelSpec, shapes: Shapes, precision: str, mode: str = Mode.INFERENCE
) -> Mapping[str, Work] | None:
    """Return the work of a step's consecutive parts; together they are its `cost`.

    A request has a prefill and, if it makes several tokens, a decode. Other steps have one part,
    "step". Returns None, and raises, like `cost`.
    """
    counted = cost(spec, shapes, precision, mode)
    if counted is None:
        return None
    whole = Work(counted.flops, counted.bytes_moved)
    settled = settle(spec, shapes)
    cost_point = None
    if mode == Mode.INFERENCE and settled.new_tokens:
        cost_point = point(spec, settled, "request")
    if cost_point is None:
        return {"step": whole}
    read = cost_point.read(cost_point.of(_KINDS[precision])["prefill"])
    prefill = Work(read["flops"], read["bytes_moved"])
    if settled.new_tokens == 1:
        return {"prefill": prefill}
    decode = Work(whole.flops - prefill.flops, whole.bytes_moved - prefill.bytes_moved)
    return {"prefill": prefill, "decode": decode}


def flops(spec: ModelSpec, shapes: Shapes, mode: str = Mode.INFERENCE) -> float | None:
    """Return the operations of one step, which are the same at every precision."""
    counted = cost(spec, shapes, "fp32", mode)
    return None if counted is None else counted.flops


def weight_bytes_read(spec: ModelSpec, bytes_per_weight: float) -> float | None:
    """Compute the bytes of weights that a forward pass reads; None if that was not counted.

    Rows of embeddings that no input names are not among them.
    """
    settled = replace(settle(spec, Shapes(1)), new_tokens=None)
    cost_point = point(spec, settled, "forward")
    if cost_point is None:
        return None
    counted = cost_point.read(cost_point.of("fp32"))
    inputs = input_bytes(spec, settled)
    weights = counted["bytes_moved"] - counted["activation_bytes"] - inputs
    return max(weights, 0) * bytes_per_weight / 4


def _passes(spec: ModelSpec, settled: Shapes, kind: str) -> dict[str, int] | None:
    cost_point = point(spec, settled, "forward")
    if cost_point is None:
        return None
    quantities = cost_point.read(cost_point.of(kind))
    times = settled.steps or 1 if spec.procedure == "denoise" else 1
    peak = quantities.pop("peak_activation_bytes")
    return {**{n: times * q for n, q in quantities.items()}, "peak_activation_bytes": peak}


def request(spec: ModelSpec, settled: Shapes, kind: str) -> dict[str, int] | None:
    """Return the cost of a prefill and of a decode step for each token after the first.

    Step k takes what the first takes and k - 1 times the growth from step to step: one more token
    is read and kept. Kept tokens are among what is alive.
    """
    cost_point = point(spec, settled, "request")
    if cost_point is None or settled.new_tokens is None:
        return None
    counted = cost_point.of(kind)
    total = cost_point.read(counted["prefill"])
    steps = settled.new_tokens - 1
    decode = counted["decode"]
    for name in _QUANTITIES[:3]:
        first, growth = (value(p, cost_point.batch, cost_point.length) for p in decode[name])
        total[name] += steps * first + steps * (steps - 1) // 2 * growth
    last = max(
        value(first, cost_point.batch, cost_point.length)
        + (steps - 1) * value(growth, cost_point.batch, cost_point.length)
        for first, growth in decode["peak_activation_bytes"]
    )
    peak = max(total["peak_activation_bytes"], last if steps else 0)
    return {**total, "peak_activation_bytes": peak}


def _training(spec: ModelSpec, settled: Shapes) -> AnalyticCost | None:
    cost_point = point(spec, settled, "training")
    if cost_point is None:
        return None
    quantities = cost_point.read(cost_point.of("fp32"))
    trained = cost_point.counted["trained"]
    quantities["flops"] += _ADAMW_FLOPS * trained
    quantities["bytes_moved"] += _ADAMW_BYTES * trained
    return AnalyticCost(**quantities, weight_bytes=cost_point.counted["fp32"]["weight_bytes"])


def entry_of(spec: ModelSpec) -> Mapping[str, Any] | None:
    """Return the counts of this very config; an owner's model was counted when looked at."""
    if spec.user_source is not None:
        return spec.user_source.counted
    entry = _costs().get(spec.id)
    return None if entry is None or entry["config"] != spec.config_digest else entry


def point(spec: ModelSpec, settled: Shapes, kind: str) -> CostPoint | None:
    """Return where to read a pass (forward, request, training), or None if it was not counted.

    Every size but the one along which the pass was fitted must be the model's default.
    """
    entry = entry_of(spec)
    if entry is None or kind not in entry:
        return None
    counted = entry[kind]
    if kind == "training" and counted["config"] != spec.training_variant.config_digest:
        return None
    along, step = counted["along"], counted["step"]
    for name, default in _defaults(spec, kind).items():
        if name != along and getattr(settled, name) != default:
            return None
    if along is None:
        return CostPoint(counted, settled.batch, 0)
    size = getattr(settled, along)
    return None if size is None or size % step else CostPoint(counted, settled.batch, size // step)


def _defaults(spec: ModelSpec, kind: str) -> dict[str, int | None]:
    sizes = {axis.field: axis.default_size(spec) for axis in axes_of(Part.INPUT)}
    if kind == "request":
        makes = spec.generation
        del sizes["sequence"]  # what it reads is its prompt
        return {**sizes, "prompt_tokens": None if makes is None else makes.prompt_tokens}
    return sizes


@cache
def _costs() -> dict[str, dict[str, Any]]:
    read: dict[str, dict[str, Any]] = json.loads(COSTS_FILE.read_text(encoding="utf-8"))
    return read


#: What a worker of PyTorch holds besides, on a CPU: code imported late and workspaces. Small
#: models at batch 1 took 7 to 8 MB more than weights, results and inputs.
_ENGINE_BYTES = 8 * MIB
#: transformers is there before a worker is forked; diffusers is imported by the worker that
#: needs it, and its code took 22 to 29 MB.
_CODE_BYTES = {".networks.diffusion": 28 * MIB}
#: The host's allocator keeps freed blocks below 32 MB and does not always find them again.
#: With every block given back (MALLOC_MMAP_THRESHOLD_=65536) a training step's peak was within
#: 3 % of what was counted; as workers run, small models took 1.2 to 1.8 times their results
#: more, and one with 600 MB of results 0.6 times. Large tensors are given back at once.
_KEPT_SHARE, _KEPT_MOST = 1.4, 256 * MIB


def engine_bytes(spec: ModelSpec, results: int) -> int:
    """Return what engine, its code and the allocator hold in addition to these results."""
    return _ENGINE_BYTES + code_bytes(spec) + int(min(_KEPT_SHARE * results, _KEPT_MOST))


def code_bytes(spec: ModelSpec) -> int:
    """Return the memory of code that a worker imports only for this model."""
    return _CODE_BYTES.get(spec.builder.partition(":")[0], 0)


def memory_estimate_bytes(
    spec: ModelSpec,
    shapes: Shapes,
    precision: str,
    mode: str = Mode.INFERENCE,
    options: Mapping[str, Option] | None = None,
) -> int | None:
    """Return bytes of weights, results alive at once and inputs; None if not counted.

    Inference: weights in the precision's type, the most results alive at once (for a request with
    its kept tokens), inputs, and the engine's own memory (`engine_bytes`, measured on a CPU).
    Autocast has a half copy of the weights as well, and is assumed to keep fp32 results.

    Training: weights, moments (two of AdamW, one of SGD), and the larger of the worst moment of
    forward and backward (kept results, gradients so far) and of all gradients with the temporaries
    of the optimizer's largest weight. With gradient checkpointing results shrink in the proportion
    that was counted at the default sizes.
    Raises UsageError or UnsupportedError if the model cannot take these shapes.
    """
    wanted = options or {}
    if mode == Mode.TRAINING:
        return _memory_training(spec, shapes, precision, wanted)
    kind = "bf16" if precision in ("fp16", "bf16") else "fp32"
    counted = cost(spec, shapes, kind)
    if counted is None:
        return None
    weights = counted.weight_bytes
    if precision == "int8":
        weights = spec.parameters * bytes_per_weight(precision)
    elif precision.startswith("amp-"):
        weights += spec.parameters * 2
    inputs = input_bytes(spec, shapes, 4 if kind == "fp32" else 2)
    results = int(counted.peak_activation_bytes)
    return int(weights) + results + inputs + engine_bytes(spec, results)


def _memory_training(
    spec: ModelSpec, shapes: Shapes, precision: str, options: Mapping[str, Option]
) -> int | None:
    cost_point = point(spec, settle(spec, shapes), "training")
    if cost_point is None:
        return None
    counted, trained = cost_point.counted, cost_point.counted["trained"]
    # Counted in fp32 alone. Pure half training has half of everything; autocast keeps a
    # half copy of the weights, and is taken to keep fp32 results.
    pure = bool(options.get("pure")) and precision in ("fp16", "bf16")
    autocast = precision != "fp32" and not pure
    moments = 1 if options.get("optimizer") == "sgd" else 2
    results = cost_point.read(cost_point.of("fp32"))["peak_activation_bytes"]
    if options.get("gradient_checkpointing"):
        results = checkpoint_results(spec, cost_point, results)
    stepping = 4 * trained + 4 * counted["largest"] * (2 if moments == 2 else 0)
    total = counted["fp32"]["weight_bytes"] + 4 * moments * trained + max(results, stepping)
    total = total // 2 if pure else total
    results = results // 2 if pure else results
    inputs = input_bytes(spec, shapes, 2 if pure else 4, mode=Mode.TRAINING)
    return int(total + inputs + (2 * trained if autocast else 0)) + engine_bytes(spec, results)


def checkpoint_results(spec: ModelSpec, cost_point: CostPoint, results: int) -> int:
    """Return the results that remain if a block keeps only its inputs and recomputes them."""
    default = point(spec, settle(spec, Shapes(cost_point.batch)), "training")
    if default is None or "checkpointed" not in cost_point.counted:
        return results
    saving = CostPoint(cost_point.counted, cost_point.batch, 0)
    least = saving.read(saving.of("checkpointed"))["peak_activation_bytes"]
    kept = default.read(default.of("fp32"))["peak_activation_bytes"]
    return results * least // kept


_FLOAT = 4  # bytes: what is trained is fp32
#: What a rank has besides, on a CPU: code imported late, gloo's and the allocator's own. The middle
#: of what bert-tiny and bert-base took beyond all that is counted.
_RANK_MEMORY_ENGINE_BYTES = 20 * MIB
#: From this size on glibc takes a block from the system, and gives it back when it is freed.
_FROM_SYSTEM = 32 * MIB
#: Of an inference beside what one process has. LLaMA-tiny, batch 2: 23.4 MB, and 12.8 alone.
_INFERENCE_BYTES = 10 * MIB
#: The host's allocator keeps freed blocks and does not always find them again; of results. Where
#: it gives them back at once (`allocator_of` in the runtime), none.
_RANK_MEMORY_KEPT_SHARE = {"ddp": 0.1, "fsdp2": 0.0, "fsdp": 0.0, "tp": 0.1}
#: Of a transformer's block, results that are kept for the backward pass and that go with the heads
#: and the share of the inner layer that a rank has, in hidden states; and for each head and place
#: of the sequence that is attended to, weights, dropout and their product.
_SPLIT, _ATTENDED = 12, 3
#: Results of the collectives of a block that is split, in hidden states: tensors of their own.
_EXCHANGED = 4

_HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers")
_INNER = ("intermediate_size", "n_inner", "hidden_dim")
_HEADS = ("num_attention_heads", "n_head", "n_heads")


@dataclass(frozen=True)
class Blocks:
    """The repeated part of a transformer, by its config."""

    layers: int
    hidden: int
    inner: int
    heads: int
    split: int  # weights of a block's products
    weights: int  # of a block
    keys: int  # values of a key, or of a value, that a block keeps of each token

    @classmethod
    def of(cls, spec: ModelSpec) -> Blocks | None:
        """Return the blocks, or None if the config does not state them in one place."""
        config = spec.training_variant.config
        hidden, layers, heads = (_first(config, names) for names in (_HIDDEN, _LAYERS, _HEADS))
        if not hidden or not layers or not heads:
            return None
        inner = _first(config, _INNER) or 4 * hidden
        keys = hidden * (_first(config, ("num_key_value_heads",)) or heads) // heads
        gated = "num_key_value_heads" in config  # LLaMA and its kin have three inner products
        split = 2 * hidden * hidden + 2 * hidden * keys + (3 if gated else 2) * hidden * inner
        return cls(layers, hidden, inner, heads, split, split + 9 * hidden + inner, keys)

    def split_results(self, sequence: int) -> int:
        """Return bytes of results of an item that ranks have in parts."""
        attended = _ATTENDED * self.heads * sequence / self.hidden
        return int(self.layers * sequence * self.hidden * _FLOAT * (_SPLIT + attended))

    def exchanged(self, sequence: int) -> int:
        """Return bytes of results of an item that collectives make."""
        return self.layers * sequence * self.hidden * _FLOAT * _EXCHANGED


def inference_rank_bytes(
    spec: ModelSpec, shapes: Shapes, precision: str, processes: int
) -> int | None:
    """Return bytes per process of an inference whose products are split; None if not counted.

    That is one process's memory without the others' share of products and of kept tokens.
    """
    whole = memory_estimate_bytes(spec, shapes, precision)
    if whole is None:
        return None
    elsewhere, blocks = 0, Blocks.of(spec)
    if blocks is not None:
        each = 2 if precision in ("fp16", "bf16") else _FLOAT
        kept = 2 * blocks.keys * (shapes.prompt_tokens or 0) if shapes.new_tokens else 0
        elsewhere = each * blocks.layers * (blocks.split + shapes.batch * kept)
    return whole + _INFERENCE_BYTES - int(elsewhere * (1 - 1 / processes))


def rank_memory_bytes(
    spec: ModelSpec, shapes: Shapes, precision: str, options: Mapping[str, Option], processes: int
) -> int | None:
    """Return bytes that the largest process of a training step takes; None if not counted.

    W are weights, G gradients, M moments, A kept results (which grow with the micro-batch), N
    processes. Each has, in addition to the larger of what is alive in backward and in the
    optimizer:

        ddp     W + M + G            G lies in the buckets that are exchanged, all the time
        fsdp2   (W + M + G) ÷ N      and whole what is in no block, with its gradients, or a block
        fsdp    (W + M) ÷ N          and W and G whole: the compiler gathers all weights at once
        tp      as one process, of which products in blocks, and their results, are ÷ N

    Micro-batches that are not exchanged leave whole gradients, with fsdp2 as well. Backward and
    optimizer are never alive at once, but glibc keeps freed results below 32 MiB and takes larger
    blocks from the system: temporaries of the optimizer add to A unless the allocator returns
    blocks at once (fsdp2: `allocator_of` in the runtime).
    Raises UsageError or UnsupportedError if the model cannot take these shapes.
    """
    strategy, count = str(options.get("strategy", "ddp")), int(options.get("accumulate", 1))
    rows = shapes.batch // (1 if strategy == "tp" else processes)
    micro = settle(spec, replace(shapes, batch=max(1, rows // count)))
    step = point(spec, micro, "training")
    if step is None:
        return None
    counted, moments = step.counted, 1 if options.get("optimizer") == "sgd" else 2
    weights = int(counted["fp32"]["weight_bytes"])
    gradients = _FLOAT * counted["trained"]
    largest = _FLOAT * counted["largest"]
    results = results_bytes(step)
    if options.get("gradient_checkpointing"):
        results = checkpoint_results(spec, step, results)
    temporaries = 2 * largest if moments == 2 else 0
    blocks = Blocks.of(spec)
    if strategy == "fsdp2":
        root, block = _wholes(gradients, largest, blocks)
        held = (weights + moments * gradients) / processes
        apart = gradients if count > 1 else gradients / processes
        alive = max(
            root + 2 * block + results + (gradients if count > 1 else 0),
            # Gradients of what is in no block: torch 2.13 copies them into one piece, frees them,
            # and gloo clones that piece: two at once, and the part that stays (of 64 MiB 160). The
            # third was never seen by itself: bert-tiny at 8 takes 14 MB more than two explain.
            3 * root + apart - root / processes,
            apart + temporaries / processes,
        )
        own = held + alive
    elif strategy == "fsdp":
        own = (weights + moments * gradients) / processes + weights + gradients + results
    elif strategy == "tp":
        split = 0 if blocks is None else _FLOAT * blocks.layers * blocks.split
        saved = split * (1 - 1 / processes)
        if blocks is not None and micro.sequence:
            parts = blocks.split_results(micro.sequence) * micro.batch
            results -= int(min(parts, 0.9 * results) * (1 - 1 / processes))
            results += blocks.exchanged(micro.sequence) * micro.batch
        gradients -= int(saved)
        own = weights - saved + moments * gradients + temporaries
        if count > 1:
            own += results + gradients
        else:  # gradients take the place that results leave, but for blocks from the system
            beside = largest if largest >= _FROM_SYSTEM else 0
            own += max(results, gradients - beside) + beside
    else:
        own = weights + (moments + 1) * gradients + results + temporaries
        if largest < _FROM_SYSTEM:
            own += largest  # a gradient before it is copied into its bucket
    if precision != "fp32":
        own += gradients // 2  # autocast keeps a half copy of the weights that it has used
    inputs = input_bytes(spec, replace(micro, batch=rows), _FLOAT, mode=Mode.TRAINING)
    beside = (
        _RANK_MEMORY_ENGINE_BYTES + code_bytes(spec) + _RANK_MEMORY_KEPT_SHARE[strategy] * results
    )
    return int(own + inputs + beside)


def results_bytes(step: CostPoint) -> int:
    """Return what is kept for the backward pass: the growth per item of a large batch's peak."""
    many = step.batch + 512
    peak = "peak_activation_bytes"

    def at(batch: int) -> int:
        there = replace(step, batch=batch)
        return int(there.read(there.of("fp32"))[peak])

    return (at(many + 1) - at(many)) * step.batch


def _wholes(gradients: int, largest: int, blocks: Blocks | None) -> tuple[int, int]:
    if blocks is None:
        return largest, largest
    block = _FLOAT * blocks.weights
    return max(gradients - blocks.layers * block, 0), block


def _first(config: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    found = (config.get(name) for name in names)
    return next((value for value in found if isinstance(value, int)), None)
