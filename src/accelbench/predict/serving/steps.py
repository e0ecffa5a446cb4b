"""Times of single steps of a server: operators of all layers, collectives and overhead."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from accelbench.predict.serving.models import ServedModel, ServerLayout
from accelbench.predict.serving.operators import OperatorTables

#: Priors of what no operator table contains: kernels between operators of a layer, and the work of
#: an engine between steps. Measured points correct them.
LAYER_MS = 0.012
STEP_MS = {"vllm": 0.6, "sglang": 0.6, "trtllm": 0.5}
#: Passes over the hidden state of norms, rotations, activations and residuals of a layer.
_PASSES = 10


@dataclass
class StepTimes:
    """Times of steps of one replica; every request has the same share of its copies."""

    tables: OperatorTables
    model: ServedModel
    layout: ServerLayout
    gemm: str
    moe: str
    kv_bits: float
    _experts: dict[int, float] = field(default_factory=dict)
    _others: dict[int, float] = field(default_factory=dict)
    _decode: dict[tuple[int, int], float] = field(default_factory=dict)
    _prefill: dict[int, float] = field(default_factory=dict)

    def step(self, prefill: float, prompts: float, batch: float, context: float) -> float:
        """Return the seconds of a step.

        Args:
            prefill: tokens of prompts in this step, in all copies of attention together.
            prompts: prompts that they belong to.
            batch: sequences that receive a token.
            context: their mean length.
        """
        tokens = prefill + batch
        if tokens <= 0:
            return 0.0
        prompts = max(prompts, 1.0)
        # A prompt is read by one copy of attention, and the others wait for it.
        reading = min(prompts, self.layout.dp)
        total = self.linear(tokens, prefill / reading + batch / self.layout.dp)
        if batch:
            total += self.decode_attention(batch, context)
        if prefill:
            total += prompts / reading * self.prefill_attention(prefill / prompts)
        return total / 1e3

    def linear(self, tokens: float, own: float) -> float:
        """Return the milliseconds of everything but attention, interpolated between powers.

        Args:
            tokens: those of all copies of attention, which share the experts.
            own: those of the copy that has the most.
        """
        experts = _between(self._experts, tokens, self._experts_at)
        return experts + _between(self._others, own, self._others_at)

    def decode_attention(self, batch: float, context: float) -> float:
        x, y = math.log2(max(batch, 1)) * 2, math.log2(max(context, 1)) * 2
        i, j = int(x), int(y)
        a, b = x - i, y - j
        values = [self._decode_at(i + m, j + n) for m in (0, 1) for n in (0, 1)]
        low, high = values[0] * (1 - b) + values[1] * b, values[2] * (1 - b) + values[3] * b
        return low * (1 - a) + high * a

    def _decode_at(self, i: int, j: int) -> float:
        key = (i, j)
        if key not in self._decode:
            self._decode[key] = self._attention(2 ** (i / 2), 2 ** (j / 2), decode=True)
        return self._decode[key]

    def prefill_attention(self, length: float) -> float:
        """Return the milliseconds of a prompt's attention in all layers."""
        return _between(
            self._prefill, length, lambda size: self._attention(1.0, size, decode=False)
        )

    def parts(self, tokens: float, batch: float) -> dict[str, float]:
        """Return the milliseconds of products, experts, collectives and the rest of a step."""
        model, layout, tables = self.model, self.layout, self.tables
        tp, h = layout.tp, model.hidden
        own = max(tokens / layout.dp, 1.0)
        gemm = "bfloat16" if model.dense_attention_bits == 16 else self.gemm
        attention = sum(tables.gemm(own, n, k, gemm) for n, k in _projections(model, tp))
        linear = sum(tables.gemm(own, n, k, gemm) for n, k in _linear_projections(model, tp))
        plain = model.layers - model.linear_layers
        products = plain * attention + model.linear_layers * linear
        dense = model.layers - model.moe_layers
        if dense:
            products += dense * (
                tables.gemm(own, 2 * model.inter / tp, h, self.gemm)
                + tables.gemm(own, h, model.inter / tp, self.gemm)
            )
        experts = 0.0
        if model.moe_layers:
            experts = model.moe_layers * tables.moe(
                tokens, h, model.moe_inter, model.topk, model.experts,
                layout.moe_tp, layout.moe_ep, self.moe,
            )  # fmt: skip
            if model.shared_inter:
                products += model.moe_layers * (
                    tables.gemm(own, 2 * model.shared_inter / tp, h, self.gemm)
                    + tables.gemm(own, h, model.shared_inter / tp, self.gemm)
                )
            products += model.moe_layers * tables.gemm(own, model.experts, h, "bfloat16")
        products += tables.gemm(min(own, max(batch, 1.0)), model.vocab / tp, h, "bfloat16")
        moved = own * h * 2
        collectives = model.layers * tables.all_reduce(tp, moved)
        if layout.dp > 1 and model.moe_layers:
            gathered = moved * layout.dp
            sent = moved * min(model.topk, layout.gpus)
            collectives += model.moe_layers * min(
                tables.collective("all_gather", layout.gpus, gathered)
                + tables.collective("reduce_scatter", layout.gpus, gathered),
                2 * tables.collective("alltoall", layout.gpus, sent),
            )
        else:
            collectives += model.layers * tables.all_reduce(tp, moved)
        bandwidth = tables.system.bandwidth * 1e9  # bytes a millisecond
        rest = model.layers * (LAYER_MS + own * h * 2 * _PASSES / bandwidth)
        rest += STEP_MS.get(tables.engine, 0.6)
        return {
            "products": products, "experts": experts, "collectives": collectives, "rest": rest,
        }  # fmt: skip

    def _experts_at(self, tokens: float) -> float:
        return self.parts(tokens, tokens)["experts"]

    def _others_at(self, own: float) -> float:
        tokens = own * self.layout.dp
        parts = self.parts(tokens, tokens)
        return sum(parts.values()) - parts["experts"]

    def _attention(self, batch: float, length: float, *, decode: bool) -> float:
        model, tp = self.model, self.layout.tp
        own = batch / self.layout.dp if decode else batch
        heads, kv = max(model.heads / tp, 1), max(model.kv_heads / tp, 1)
        if model.is_latent:
            return model.layers * self._latent(own, length, heads, decode=decode)
        plain = model.layers - model.linear_layers - model.window_layers
        call = self.tables.generation_attention if decode else self.tables.context_attention
        total = plain * call(own, length, heads, kv, model.head_dim, kv_bits=self.kv_bits)
        if model.window_layers:
            total += model.window_layers * call(
                own, length, heads, kv, model.head_dim, window=model.window, kv_bits=self.kv_bits
            )
        if model.linear_layers:
            state = own * 2 * model.hidden / tp * 128 * 4 * 2
            bandwidth = self.tables.system.bandwidth * 1e9
            moved = state if decode else length * 8 * model.hidden / tp * 2
            total += model.linear_layers * (moved / bandwidth + 0.01)
        return total

    def _latent(self, batch: float, length: float, heads: float, *, decode: bool) -> float:
        """Return the milliseconds of latent attention, which no table contains.

        Prompts attend as usual attention does. A decode step reads the latent cache once for all
        heads; 60 % of the bandwidth and half of the peak are the usual shares of such kernels.
        """
        model, system = self.model, self.tables.system
        if not decode:
            reach = min(length, model.sparse_topk or length)
            full = self.tables.context_attention(
                batch,
                length,
                heads,
                heads,
                128 if model.v_dim == 128 else 256,
                kv_bits=self.kv_bits,
            )
            return full * min(1.0, 2 * reach / length)
        reach = min(length, model.sparse_topk or length)
        width = model.kv_lora + model.rope_dim
        moved = batch * reach * width * self.kv_bits / 8
        operations = 2 * batch * reach * heads * (width + model.kv_lora)
        absorbed = 2 * 2 * batch * heads * model.kv_lora * (model.head_dim - model.rope_dim)
        weights = 2 * heads * model.kv_lora * (model.head_dim - model.rope_dim) * 2
        index = batch * length * 128 / (system.bandwidth * 1e9) if model.sparse_topk else 0.0
        return (
            0.012
            + max(moved / (0.6 * system.bandwidth * 1e9), operations / (0.5 * system.half * 1e12))
            + max(weights / (0.6 * system.bandwidth * 1e9), absorbed / (0.5 * system.half * 1e12))
            + index
        )


def _projections(model: ServedModel, tp: int) -> list[tuple[float, float]]:
    h, heads = model.hidden, max(model.heads / tp, 1)
    if model.is_latent:
        query = [(heads * model.head_dim, model.q_lora)] if model.q_lora else []
        down = model.kv_lora + model.rope_dim + (model.q_lora or heads * model.head_dim)
        return [(down, h), *query, (h, heads * model.v_dim)]
    kv = max(model.kv_heads / tp, 1)
    return [((heads + 2 * kv) * model.head_dim, h), (h, heads * model.head_dim)]


def _linear_projections(model: ServedModel, tp: int) -> list[tuple[float, float]]:
    h = model.hidden
    return [(5 * h / tp, h), (h, 2 * h / tp)] if model.linear_layers else []


def _between(known: dict[int, float], size: float, compute: object) -> float:
    """Interpolate between powers of √2, each computed once."""
    x = 2 * math.log2(max(size, 1.0))
    index = int(x)
    ends = []
    for at in (index, index + 1):
        if at not in known:
            known[at] = compute(2 ** (at / 2))  # type: ignore[operator]
        ends.append(known[at])
    low, high = 2 ** (index / 2), 2 ** ((index + 1) / 2)
    share = (max(size, 1.0) - low) / (high - low)
    return ends[0] + share * (ends[1] - ends[0])
