"""How many bytes of a step one of several processes takes on paper. Pure.

Of a training step are counted, of the whole model: its weights W, their gradients G, the
optimizer's moments M, and the results A that are kept for the backward pass, which go with the
micro-batch. With N processes each has, beside the larger of what is alive in the backward pass and
in the optimizer:

    ddp     W + M + G                 G lies in the buckets that are exchanged, all the time
    fsdp2   (W + M + G) ÷ N           and whole what is in no block, with its gradients, or a block
    fsdp    (W + M) ÷ N               and W and G whole, as the compiler gathers all weights at once
    tp      the same as one process, of which products in blocks, and their results, are ÷ N

Micro-batches that are not exchanged leave whole gradients behind, with fsdp2 as well.

What is alive in the backward pass and in the optimizer is never there at once. But glibc keeps what
results had when they are freed, as each is smaller than 32 MiB, and takes larger blocks from the
system: temporaries of the optimizer come on top of A, where the allocator does not give blocks back
at once (fsdp2: `allocator_of` in the runtime).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from accelbench.catalog.cost import CostPoint, point
from accelbench.catalog.inputs import input_bytes, settle
from accelbench.catalog.memory import checkpointed, code_bytes, memory_estimate_bytes
from accelbench.core.case import Option, Shapes
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import MIB, Mode

_FLOAT = 4  # bytes: what is trained is fp32
#: What a rank has besides, on a CPU: code imported late, gloo's and the allocator's own. The middle
#: of what bert-tiny and bert-base took beyond all that is counted.
_ENGINE_BYTES = 20 * MIB
#: From this size on glibc takes a block from the system, and gives it back when it is freed.
_FROM_SYSTEM = 32 * MIB
#: Of an inference beside what one process has. LLaMA-tiny, batch 2: 23.4 MB, and 12.8 alone.
_INFERENCE_BYTES = 10 * MIB
#: The host's allocator keeps freed blocks and does not always find them again; of results. Where
#: it gives them back at once (`allocator_of` in the runtime), none.
_KEPT_SHARE = {"ddp": 0.1, "fsdp2": 0.0, "fsdp": 0.0, "tp": 0.1}
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
        """None of a model whose config does not say it in one place."""
        config = spec.trained.config
        hidden, layers, heads = (_first(config, names) for names in (_HIDDEN, _LAYERS, _HEADS))
        if not hidden or not layers or not heads:
            return None
        inner = _first(config, _INNER) or 4 * hidden
        keys = hidden * (_first(config, ("num_key_value_heads",)) or heads) // heads
        gated = "num_key_value_heads" in config  # LLaMA and its kin have three inner products
        split = 2 * hidden * hidden + 2 * hidden * keys + (3 if gated else 2) * hidden * inner
        return cls(layers, hidden, inner, heads, split, split + 9 * hidden + inner, keys)

    def split_results(self, sequence: int) -> int:
        """Bytes of results of an item that ranks have in parts."""
        attended = _ATTENDED * self.heads * sequence / self.hidden
        return int(self.layers * sequence * self.hidden * _FLOAT * (_SPLIT + attended))

    def exchanged(self, sequence: int) -> int:
        """Bytes of results of an item that collectives make."""
        return self.layers * sequence * self.hidden * _FLOAT * _EXCHANGED


def inference_rank_bytes(
    spec: ModelSpec, shapes: Shapes, precision: str, processes: int
) -> int | None:
    """Bytes that a process takes of an inference whose products are split; None where not counted.

    That is one process's without the share of the others in products, and in what is kept of
    each token.

    Raises:
        UsageError, UnsupportedError: the model cannot take these shapes.
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
    """Bytes that the largest process takes of a training step; None where not counted.

    Raises:
        UsageError, UnsupportedError: the model cannot take these shapes.
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
        results = checkpointed(spec, step, results)
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
    beside = _ENGINE_BYTES + code_bytes(spec) + _KEPT_SHARE[strategy] * results
    return int(own + inputs + beside)


def results_bytes(step: CostPoint) -> int:
    """What is kept for the backward pass: what the peak of large batches grows by, an item."""
    many = step.batch + 512
    peak = "peak_activation_bytes"

    def at(batch: int) -> int:
        there = replace(step, batch=batch)
        return int(there.read(there.of("fp32"))[peak])

    return (at(many + 1) - at(many)) * step.batch


def _wholes(gradients: int, largest: int, blocks: Blocks | None) -> tuple[int, int]:
    """Bytes of weights that are in no block, and of a block."""
    if blocks is None:
        return largest, largest
    block = _FLOAT * blocks.weights
    return max(gradients - blocks.layers * block, 0), block


def _first(config: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    found = (config.get(name) for name in names)
    return next((value for value in found if isinstance(value, int)), None)
