"""Served language models: architectures, layouts, memory, questions and measured servers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import UsageError
from accelbench.core.jsonc import JsonError, loads
from accelbench.predict.serving.operators import ServingSystem, bits_of_dtype, system_of

if TYPE_CHECKING:
    from accelbench.store.database import Database


@dataclass(frozen=True)
class ServedModel:
    """The sizes of a decoder, as in its config.json."""

    id: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    inter: int
    vocab: int
    experts: int = 0
    topk: int = 0
    moe_inter: int = 0
    shared_inter: int = 0
    dense_layers: int = 0  # of a mixture of experts, those without experts
    q_lora: int = 0  # latent attention, if kv_lora is set
    kv_lora: int = 0
    rope_dim: int = 0
    v_dim: int = 0
    window: int = 0
    window_layers: int = 0  # layers that attend to a window only
    linear_layers: int = 0  # layers with a state of fixed size instead of a cache
    sparse_topk: int = 0  # cached tokens that sparse attention reads at most
    dense_attention_bits: int = 0  # of projections that stay unquantised; 0 if none do

    @property
    def is_latent(self) -> bool:
        return self.kv_lora > 0

    @property
    def moe_layers(self) -> int:
        return self.layers - self.dense_layers if self.experts else 0

    @property
    def attention_weights(self) -> float:
        """Weights of one layer's projections."""
        h = self.hidden
        if self.is_latent:
            query = self.heads * self.head_dim
            return (
                (self.q_lora * (h + query) if self.q_lora else h * query)
                + h * (self.kv_lora + self.rope_dim)
                + self.kv_lora * self.heads * (self.head_dim - self.rope_dim + self.v_dim)
                + self.heads * self.v_dim * h
            )
        return h * self.head_dim * (2 * self.heads + 2 * self.kv_heads)

    @property
    def expert_weights(self) -> float:
        """Weights of every expert of one layer."""
        return 3.0 * self.hidden * self.moe_inter * self.experts

    @property
    def parameters(self) -> float:
        dense = self.layers - self.moe_layers
        feed = dense * 3.0 * self.hidden * self.inter
        shared = self.moe_layers * 3.0 * self.hidden * self.shared_inter
        return (
            self.layers * self.attention_weights + feed + shared
            + self.moe_layers * self.expert_weights + 2.0 * self.vocab * self.hidden
        )  # fmt: skip

    def cache_bytes(self, kv_bits: float, tp: int) -> float:
        """Return the bytes of a token's cache on one GPU, whole contexts assumed."""
        layers = self.layers - self.linear_layers - self.window_layers
        if self.is_latent:
            return layers * (self.kv_lora + self.rope_dim) * kv_bits / 8
        return layers * 2 * max(self.kv_heads / tp, 1) * self.head_dim * kv_bits / 8


@dataclass(frozen=True)
class ServerLayout:
    """How a server spreads a model over GPUs."""

    tp: int = 1
    pp: int = 1
    dp: int = 1  # copies of attention, each with its own requests
    moe_tp: int = 1
    moe_ep: int = 1

    @property
    def gpus(self) -> int:
        return self.tp * self.pp * self.dp


def memory_bytes(model: ServedModel, layout: ServerLayout, gemm: str, moe: str) -> float:
    """Return the weights on one GPU."""
    dense = (
        model.layers * model.attention_weights
        + (model.layers - model.moe_layers) * 3.0 * model.hidden * model.inter
        + model.moe_layers * 3.0 * model.hidden * model.shared_inter
    )
    attention_bits = model.dense_attention_bits or bits_of_dtype(gemm)
    experts = model.moe_layers * model.expert_weights * bits_of_dtype(moe) / 8
    spread = max(layout.moe_tp * layout.moe_ep, 1)
    ends = 2.0 * model.vocab * model.hidden * 2
    return (
        dense * attention_bits / 8 / layout.tp + experts / spread + ends / layout.tp
    ) / layout.pp  # fmt: skip


#: Engines leave 5 % of the memory to others, and activations take about 1.5 GiB.
_USABLE, _ACTIVATIONS = 0.95, 1.5 * 2.0**30


def cache_tokens(
    model: ServedModel,
    layout: ServerLayout,
    system: ServingSystem,
    gemm: str,
    moe: str,
    kv_bits: float,
) -> float:
    """Return the tokens that fit into the cache of one copy of attention; 0 if nothing fits."""
    room = system.memory_gib * 2.0**30 * _USABLE - _ACTIVATIONS
    room -= memory_bytes(model, layout, gemm, moe)
    per_token = model.cache_bytes(kv_bits, layout.tp) / layout.pp
    return max(room, 0.0) / per_token if per_token else float("inf")


def _dense(name: str, hidden: int, layers: int, heads: int, kv: int, dim: int, inter: int,
           vocab: int) -> ServedModel:  # fmt: skip
    return ServedModel(name, hidden, layers, heads, kv, dim, inter, vocab)


def _moe(
    name: str, hidden: int, layers: int, heads: int, kv: int, dim: int, inter: int,
    vocab: int, experts: int, topk: int, moe_inter: int, **more: Any,
) -> ServedModel:  # fmt: skip
    return ServedModel(
        name, hidden, layers, heads, kv, dim, inter, vocab, experts, topk, moe_inter, **more
    )


def _deepseek(name: str, sparse_topk: int = 0) -> ServedModel:
    return _moe(
        name, 7168, 61, 128, 128, 192, 18432, 129280, 256, 8, 2048, shared_inter=2048,
        dense_layers=3, q_lora=1536, kv_lora=512, rope_dim=64, v_dim=128, sparse_topk=sparse_topk,
    )  # fmt: skip


#: From the config.json of each model's repository on Hugging Face, by its id.
_KNOWN = (
    _dense("meta-llama/Llama-3.2-1B", 2048, 16, 32, 8, 64, 8192, 128256),
    _dense("meta-llama/Llama-3.2-3B", 3072, 28, 24, 8, 128, 8192, 128256),
    _dense("meta-llama/Llama-3.1-8B", 4096, 32, 32, 8, 128, 14336, 128256),
    _dense("meta-llama/Llama-3.1-70B", 8192, 80, 64, 8, 128, 28672, 128256),
    _dense("meta-llama/Llama-3.1-405B", 16384, 126, 128, 8, 128, 53248, 128256),
    _dense("mistralai/Mistral-7B", 4096, 32, 32, 8, 128, 14336, 32768),
    _dense("Qwen/Qwen2.5-7B", 3584, 28, 28, 4, 128, 18944, 152064),
    _dense("Qwen/Qwen2.5-32B", 5120, 64, 40, 8, 128, 27648, 152064),
    _dense("Qwen/Qwen2.5-72B", 8192, 80, 64, 8, 128, 29568, 152064),
    _dense("Qwen/Qwen3-0.6B", 1024, 28, 16, 8, 128, 3072, 151936),
    _dense("Qwen/Qwen3-1.7B", 2048, 28, 16, 8, 128, 6144, 151936),
    _dense("Qwen/Qwen3-4B", 2560, 36, 32, 8, 128, 9728, 151936),
    _dense("Qwen/Qwen3-8B", 4096, 36, 32, 8, 128, 12288, 151936),
    _dense("Qwen/Qwen3-14B", 5120, 40, 40, 8, 128, 17408, 151936),
    _dense("Qwen/Qwen3-32B", 5120, 64, 64, 8, 128, 25600, 151936),
    _moe("Qwen/Qwen3-30B-A3B", 2048, 48, 32, 4, 128, 6144, 151936, 128, 8, 768),
    _moe("Qwen/Qwen3-235B-A22B", 4096, 94, 64, 4, 128, 12288, 151936, 128, 8, 1536),
    _moe("Qwen/Qwen3-Coder-480B-A35B", 6144, 62, 96, 8, 128, 8192, 151936, 160, 8, 2560),
    _moe("Qwen/Qwen3-Next-80B-A3B", 2048, 48, 16, 2, 256, 5120, 151936, 512, 10, 512,
         shared_inter=512, linear_layers=36),
    _moe("Qwen/Qwen3.5-397B-A17B", 4096, 60, 32, 2, 256, 1024, 248320, 512, 10, 1024,
         shared_inter=1024, linear_layers=45),
    _moe("MiniMaxAI/MiniMax-M2", 3072, 62, 48, 8, 128, 1536, 200064, 256, 8, 1536),
    _moe("openai/gpt-oss-120b", 2880, 36, 64, 8, 64, 2880, 201088, 128, 4, 2880,
         window=128, window_layers=18, dense_attention_bits=16),
    _moe("openai/gpt-oss-20b", 2880, 24, 64, 8, 64, 2880, 201088, 32, 4, 2880,
         window=128, window_layers=12, dense_attention_bits=16),
    _moe("meta-llama/Llama-4-Scout-17B-16E", 5120, 48, 40, 8, 128, 16384, 202048, 16, 1, 8192,
         shared_inter=8192),
    _moe("meta-llama/Llama-4-Maverick-17B-128E", 5120, 48, 40, 8, 128, 16384, 202048, 128, 1,
         8192, shared_inter=8192, dense_layers=24),
    _dense("mistralai/Mistral-Large", 12288, 88, 96, 8, 128, 28672, 32768),
    _dense("microsoft/phi-4", 5120, 40, 40, 10, 128, 17920, 100352),
    _moe("mistralai/Mixtral-8x7B", 4096, 32, 32, 8, 128, 14336, 32000, 8, 2, 14336),
    _moe("mistralai/Mixtral-8x22B", 6144, 56, 48, 8, 128, 16384, 32768, 8, 2, 16384),
    _moe("zai-org/GLM-4.5", 5120, 92, 96, 8, 128, 12288, 151552, 160, 8, 1536,
         shared_inter=1536, dense_layers=3),
    _moe("zai-org/GLM-4.5-Air", 4096, 46, 96, 8, 128, 10944, 151552, 128, 8, 1408,
         shared_inter=1408, dense_layers=1),
    _moe("zhipuai/GLM-5", 6144, 78, 64, 64, 256, 12288, 154880, 256, 8, 2048, shared_inter=2048,
         dense_layers=3, q_lora=2048, kv_lora=512, rope_dim=64, v_dim=256, sparse_topk=2048),
    _deepseek("deepseek-ai/DeepSeek-V3"),
    _deepseek("deepseek-ai/DeepSeek-V3.2", 2048),
    _moe("moonshotai/Kimi-K2", 7168, 61, 64, 64, 192, 18432, 163840, 384, 8, 2048,
         shared_inter=2048, dense_layers=1, q_lora=1536, kv_lora=512, rope_dim=64, v_dim=128),
)  # fmt: skip

#: Names of the same architecture, as patterns.
_SAME = {
    r"deepseek-(r1|v3|v3\.1)(-zero|-terminus)?": "deepseek-v3",
    r"deepseek-v3\.2(-exp|-speciale)?": "deepseek-v3.2",
    r"minimax-m2(\.\d)?": "minimax-m2",
    r"kimi-k2(\.\d)?": "kimi-k2",
    r"glm-5(\.\d)?": "glm-5",
    r"glm-4\.[567]": "glm-4.5",
    r"(meta-)?llama-3(\.\d)?-70b": "llama-3.1-70b",
    r"(meta-)?llama-3(\.1)?-8b": "llama-3.1-8b",
    r"(meta-)?llama-3\.1-405b": "llama-3.1-405b",
    r"qwen3-next(-80b-a3b)?": "qwen3-next-80b-a3b",
}
_SUFFIXES = re.compile(
    r"-(instruct|chat|base|hf|it|thinking|\d{4}|\d+e|v0\.\d|fp4-v\d|nvfp4-v\d|fp8|nvfp4|fp4|mxfp4"
    r"|awq|gptq|int4|int8|bf16|w4a16|quantized.*|dynamic|kv)(?=-|$)"
)


@lru_cache(maxsize=1024)
def architecture_name(name: str) -> str:
    """Return the bare name of an architecture; near twins have the same."""
    bare = _SUFFIXES.sub("", name.lower().rstrip("/").rsplit("/", 1)[-1])
    same = (known for form, known in _SAME.items() if re.fullmatch(form, bare))
    return next(same, bare)


def served_model(name: str, config: Path | None = None) -> ServedModel:
    """Return the architecture of a model id, or of a config.json."""
    if config is not None:
        return model_of_config(name, config)
    wanted = architecture_name(name)
    for model in _KNOWN:
        if architecture_name(model.id) == wanted:
            return replace(model, id=name)
    path = Path(name)
    if path.is_dir() and (path / "config.json").exists():
        return model_of_config(name, path / "config.json")
    if path.suffix == ".json" and path.exists():
        return model_of_config(name, path)
    raise UsageError(
        f"The architecture of {name} is not known.",
        "Name its config.json or the folder with it.",
    )


def model_of_config(name: str, path: Path) -> ServedModel:
    """Return the architecture that a config.json of transformers describes."""
    try:
        read = loads(path.read_text(encoding="utf-8"), allow_infinity=True)
    except (OSError, ValueError, JsonError) as error:
        raise UsageError(f"{path} is not a readable config.json: {error}.") from error
    config: Mapping[str, Any] = read.get("text_config") or read

    def first(*names: str, default: int | None = None) -> int:
        for key in names:
            if isinstance(config.get(key), (int, float)):
                return int(config[key])
        if default is None:
            raise UsageError(f"{path} has no {names[0]}, so its times cannot be derived.")
        return default

    for key in ("hidden_size", "num_attention_heads", "num_hidden_layers", "vocab_size"):
        if first(key) < 1:
            raise UsageError(f"{path} has {key} {first(key)}, which no model has.")
    hidden, heads = first("hidden_size"), first("num_attention_heads")
    if heads % max(first("num_key_value_heads", default=heads), 1):
        raise UsageError(f"{path} has {heads} heads, which its key-value heads do not divide.")
    layers = first("num_hidden_layers")
    inter = first("intermediate_size", "moe_intermediate_size")
    kv_lora = first("kv_lora_rank", default=0)
    rope = first("qk_rope_head_dim", default=0) if kv_lora else 0
    nope = first("qk_nope_head_dim", default=128) if kv_lora else 0
    dim = nope + rope if kv_lora else first("head_dim", default=hidden // heads)
    experts = first("n_routed_experts", "num_experts", "num_local_experts", default=0)
    moe_inter = first("moe_intermediate_size", default=inter) if experts else 0
    shared = first("shared_expert_intermediate_size", default=0) or moe_inter * first(
        "n_shared_experts", default=0
    )
    kinds = config.get("layer_types") or []
    window = first("sliding_window", default=0) if "sliding_attention" in kinds else 0
    return ServedModel(
        name, hidden, layers, heads, first("num_key_value_heads", default=heads), dim, inter,
        first("vocab_size"), experts,
        first("num_experts_per_tok", "experts_per_token", default=0) if experts else 0,
        moe_inter, shared if experts else 0,
        first("first_k_dense_replace", default=0) if experts else 0,
        first("q_lora_rank", default=0), kv_lora, rope,
        first("v_head_dim", default=128) if kv_lora else 0, window,
        sum(kind == "sliding_attention" for kind in kinds),
        sum(kind == "linear_attention" for kind in kinds),
        first("index_topk", default=0),
        16 if config.get("model_type") == "gpt_oss" else 0,
    )  # fmt: skip


AGGREGATED, DISAGGREGATED = "agg", "disagg"


@dataclass(frozen=True)
class ServingQuestion:
    """A server and its load."""

    model: str
    system: str
    engine: str
    precision: str
    prompt: int
    new: int
    concurrency: float
    mode: str = AGGREGATED
    layout: ServerLayout = field(
        default_factory=ServerLayout
    )  # that decodes, if the server is disaggregated
    prefill_layout: ServerLayout = field(default_factory=ServerLayout)
    decode_workers: int | None = None
    prefill_workers: int | None = None
    gemm: str = ""  # types of products and experts as the tables name them; "" by precision
    moe: str = ""
    rate: float | None = None  # requests a second; None for a closed loop
    config: str = ""

    @property
    def types(self) -> tuple[str, str]:
        """Types of products and of experts."""
        precision = self.precision.lower()
        gemm, moe = _TYPES.get(precision, ("bfloat16", "bfloat16"))
        gemm, moe = self.gemm or gemm, self.moe or moe
        if "gpt-oss" in self.model.lower():  # its experts are published in MXFP4 only
            moe = "w4a16_mxfp4"
        # Of mixtures int4 checkpoints quantise the experts only.
        keeps_products = gemm == "int4_wo" and bool(self.architecture.experts)
        return ("bfloat16" if keeps_products else gemm), moe

    @property
    def architecture(self) -> ServedModel:
        """The architecture of its model."""
        return served_model(self.model, Path(self.config) if self.config else None)

    @property
    def configuration(self) -> tuple[Any, ...]:
        return (
            self.engine, self.system, architecture_name(self.model), self.precision, self.mode,
            self.layout, self.prefill_layout,
        )  # fmt: skip


#: Types of products and of experts by precision.
_TYPES = {
    "fp8": ("fp8", "fp8_block"), "fp4": ("nvfp4", "nvfp4"), "nvfp4": ("nvfp4", "nvfp4"),
    "bf16": ("bfloat16", "bfloat16"), "fp16": ("bfloat16", "bfloat16"),
    "int4": ("int4_wo", "int4_wo"), "mxfp4": ("bfloat16", "w4a16_mxfp4"),
}  # fmt: skip


@dataclass(frozen=True)
class MeasuredServer:
    """A question with its measured times, milliseconds."""

    question: ServingQuestion
    ttft: float
    tpot: float


def measured_servers(database: Database) -> list[MeasuredServer]:
    """Return the measured servers of a database."""
    names, rows = database.query(
        "SELECT model, device_name, runtime, precision, prompt_tokens, new_tokens,"
        " CAST(options AS VARCHAR) AS options, CAST(conditions AS VARCHAR) AS conditions,"
        " ttft_ms, tpot_ms"
        " FROM benchmark_results WHERE ttft_ms > 0 AND tpot_ms > 0"
        " AND json_extract_string(CAST(options AS JSON), '$.serving') IS NOT NULL"
        " ORDER BY result_id"
    )
    return distinct(
        [
            measured_server(
                dict(zip(names, row, strict=True))
                | {"options": loads(str(row[6])), "conditions": loads(str(row[7]))}
            )
            for row in rows
        ]
    )


def question_of_row(
    model: str, system: str, engine: str, precision: str | None, prompt: int, new: int,
    options: Mapping[str, Any], conditions: Mapping[str, Any],
) -> ServingQuestion:  # fmt: skip
    """Return the question that a measured server answers."""
    mode = str(options["serving"])
    part = "decode_" if mode == DISAGGREGATED else ""
    layout = layout_of(options, part, system)
    concurrency = options.get("concurrency")
    if concurrency is None:
        batch = options.get(f"{part}batch_size", 1)
        concurrency = batch * (options.get("decode_num_workers") or 1 if part else layout.dp)
    if mode != DISAGGREGATED and layout.dp == 1 and "attention_dp_size" not in options:
        batch = options.get("batch_size", concurrency)
        if concurrency > 1.01 * batch and layout.moe_ep > 1:
            layout = replace(layout, tp=1, dp=layout.tp)
    return ServingQuestion(
        model, system, engine, precision or "bf16", prompt, new, float(concurrency), mode, layout,
        layout_of(options, "prefill_", system) if part else ServerLayout(),
        options.get("decode_num_workers"), options.get("prefill_num_workers"),
        str(conditions.get("gemm_quant_mode", "")), str(conditions.get("moe_quant_mode", "")),
    )  # fmt: skip


def layout_of(options: Mapping[str, Any], part: str, system: str) -> ServerLayout:
    """Return the layout that sizes of parallelism describe.

    Some tables multiply tensor and expert parallelism of the same GPUs: 8 GPUs with both are
    written as 64. A node of fewer GPUs than that tells which is meant.
    """
    tp, pp, dp, moe_tp, moe_ep = (
        max(int(options.get(f"{part}{name}") or 1), 1)
        for name in ("tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
    )
    if moe_tp == moe_ep > 1 and moe_tp * moe_ep > system_of(system).node:
        tp, dp, moe_tp = (1, moe_ep, 1) if dp > 1 else (moe_ep, dp, 1)
    if tp == dp > 1 and moe_ep == tp * tp:
        tp, moe_ep = 1, dp
    return ServerLayout(tp, pp, dp, moe_tp, moe_ep)


def measured_server(row: Mapping[str, Any]) -> MeasuredServer:
    """Return the measured server of a result."""
    question = question_of_row(
        str(row["model"]), str(row["device_name"]), str(row["runtime"]), row.get("precision"),
        int(row["prompt_tokens"]), int(row["new_tokens"]), row["options"], row["conditions"],
    )  # fmt: skip
    return MeasuredServer(question, float(row["ttft_ms"]), float(row["tpot_ms"]))


def distinct(servers: Sequence[MeasuredServer]) -> list[MeasuredServer]:
    """Return each measurement once; files repeat some without the number of workers."""
    found: dict[Any, MeasuredServer] = {}
    for server in servers:
        question = server.question
        key = (
            architecture_name(question.model),
            question.system,
            question.engine,
            question.prompt,
            question.new,
            question.concurrency,
            server.ttft,
            server.tpot,
        )
        earlier = found.get(key)
        if earlier is None or earlier.question.decode_workers is None:
            found[key] = server
    return list(found.values())


#: Engines that the tables are of.
ENGINES = ("vllm", "sglang", "trtllm")
_FASTEST_RATE = 1e6


def check_question(question: ServingQuestion) -> None:
    """Refuse a server that cannot be.

    Raises:
        UsageError: an engine or precision is unknown, or a size or layout is impossible.
    """
    model = question.architecture
    if question.engine not in ENGINES:
        raise UsageError(
            f"There are no servers of {question.engine}.", f"Name one of {', '.join(ENGINES)}."
        )
    if question.precision not in _TYPES:
        raise UsageError(
            f"{question.precision} is not a precision of served models.",
            f"Name one of {', '.join(_TYPES)}.",
        )
    if min(question.prompt, question.new) < 1:
        raise UsageError(
            "A request has one prompt token and one new token at least.",
            "Name larger --prompt-tokens and --new-tokens.",
        )
    if question.rate is not None and not 0.0 < question.rate <= _FASTEST_RATE:
        raise UsageError(
            f"--rate {question.rate} is not a rate of requests.", "Name requests a second."
        )
    layouts = [question.layout]
    if question.mode == DISAGGREGATED:
        layouts.append(question.prefill_layout)
    for layout in layouts:
        if model.heads % layout.tp:
            raise UsageError(
                f"{layout.tp} GPUs do not divide the {model.heads} heads of {question.model}.",
                "Choose another --tensor-parallel.",
            )
        if layout.pp > model.layers:
            raise UsageError(
                f"{question.model} has {model.layers} layers, too few for {layout.pp} stages.",
                "Choose another --pipeline-parallel.",
            )
