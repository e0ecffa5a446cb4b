"""How many bytes a case takes on paper: what is refused before it is tried. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from accelbench.catalog.cost import CostPoint, cost, point
from accelbench.catalog.inputs import input_bytes, settle
from accelbench.core.case import Option, Shapes
from accelbench.core.model import ModelSpec
from accelbench.core.precision import bytes_per_weight
from accelbench.core.vocabulary import MIB, Mode

#: What a worker of PyTorch holds besides, on a CPU: code imported late and workspaces. Small
#: models at batch 1 took 7 to 8 MB more than weights, results and inputs.
_ENGINE_BYTES = 8 * MIB
#: transformers is there before a worker is forked; diffusers is imported by the worker that
#: needs it, and its code took 22 to 29 MB.
_CODE_BYTES = {"accelbench.catalog.networks.diffusion": 28 * MIB}
#: The host's allocator keeps freed blocks below 32 MB and does not always find them again.
#: With every block given back (MALLOC_MMAP_THRESHOLD_=65536) a training step's peak was within
#: 3 % of what was counted; as workers run, small models took 1.2 to 1.8 times their results
#: more, and one with 600 MB of results 0.6 times. Large tensors are given back at once.
_KEPT_SHARE, _KEPT_MOST = 1.4, 256 * MIB


def engine_bytes(spec: ModelSpec, results: int) -> int:
    """What engine, its code and the allocator hold beside so many bytes of results."""
    return _ENGINE_BYTES + code_bytes(spec) + int(min(_KEPT_SHARE * results, _KEPT_MOST))


def code_bytes(spec: ModelSpec) -> int:
    """What the code of a model takes that a worker imports for it alone."""
    return _CODE_BYTES.get(spec.builder.partition(":")[0], 0)


def memory_estimate_bytes(
    spec: ModelSpec,
    shapes: Shapes,
    precision: str,
    mode: str = Mode.INFERENCE,
    options: Mapping[str, Option] | None = None,
) -> int | None:
    """Bytes that weights, results alive at once and inputs take; None where not counted.

    Inference: weights in the precision's type, the most results that are alive at
    once (of a request what is kept of each token among them), inputs, and the engine's
    own (`engine_bytes`, measured on a CPU). Autocast
    keeps a half copy of the weights beside fp32 ones and is taken to keep fp32
    results.

    Training: weights, the optimizer's moments (two of AdamW, one of SGD), and the
    larger of what is alive at the worst moment of forward and backward — results
    kept, gradients so far — and all gradients beside the temporaries of the
    optimizer's largest weight. With gradient checkpointing results shrink in the
    proportion that was counted at the model's default sizes.

    Raises:
        UsageError, UnsupportedError: the model cannot take these shapes.
    """
    wanted = options or {}
    if mode == Mode.TRAINING:
        return _training(spec, shapes, precision, wanted)
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


def _training(
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
        results = checkpointed(spec, cost_point, results)
    stepping = 4 * trained + 4 * counted["largest"] * (2 if moments == 2 else 0)
    total = counted["fp32"]["weight_bytes"] + 4 * moments * trained + max(results, stepping)
    total = total // 2 if pure else total
    results = results // 2 if pure else results
    inputs = input_bytes(spec, shapes, 2 if pure else 4, mode=Mode.TRAINING)
    return int(total + inputs + (2 * trained if autocast else 0)) + engine_bytes(spec, results)


def checkpointed(spec: ModelSpec, cost_point: CostPoint, results: int) -> int:
    """What is left of results where a block keeps its inputs alone and computes them anew."""
    default = point(spec, settle(spec, Shapes(cost_point.batch)), "training")
    if default is None or "checkpointed" not in cost_point.counted:
        return results
    saving = CostPoint(cost_point.counted, cost_point.batch, 0)
    least = saving.read(saving.of("checkpointed"))["peak_activation_bytes"]
    kept = default.read(default.of("fp32"))["peak_activation_bytes"]
    return results * least // kept
