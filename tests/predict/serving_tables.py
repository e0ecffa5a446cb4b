"""Operator tables and measured servers by hand, in the formats of aiconfigurator."""

from __future__ import annotations

from itertools import product
from pathlib import Path

_GEMM = "framework,version,device,op_name,kernel_source,gemm_dtype,m,n,k,latency"
_CONTEXT = (
    "framework,version,device,op_name,kernel_source,batch_size,isl,num_heads,"
    "num_key_value_heads,head_dim,beam_width,attn_dtype,kv_cache_dtype,step,latency"
)
_REDUCE = (
    "framework,version,device,op_name,kernel_source,allreduce_dtype,num_gpus,message_size,latency"
)
HEADER = (
    "id,silicon_data_source,backend,backend_version,model_path,system,precision,mode,isl,osl,"
    "gemm_quant_mode,moe_quant_mode,batch_size,tp_size,pp_size,attention_dp_size,moe_tp_size,"
    "moe_ep_size,prefill_tp_size,decode_tp_size,silicon_ttft_ms,silicon_tpot_ms"
)
CONFIG = """{"hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8,
 "num_key_value_heads": 8, "intermediate_size": 2048, "vocab_size": 4096}"""


def write_tables(folder: Path, system: str = "h100_sxm", engine: str = "vllm") -> Path:
    """Write tables whose times are proportional to their work, plus a constant."""
    place = folder / system / engine / "1.0.0"
    place.mkdir(parents=True)
    gemm = [
        f"VLLM,1,GPU,gemm,k,{dtype},{m},{n},{k},{0.002 + m * n * k * 2e-12}"
        for dtype, m, n, k in product(
            ("bfloat16", "fp8"), (1, 16, 256, 4096), (256, 1024, 8192), (256, 1024, 8192)
        )
    ]
    context = [
        f"VLLM,1,GPU,context_attention,k,{b},{s},8,8,128,1,{kv},{kv},0,{0.004 + b * s * s * 1e-8}"
        for kv, b, s in product(("bfloat16", "fp8"), (1, 8), (128, 1024, 8192))
    ]
    generation = [
        f"VLLM,1,GPU,generation_attention,k,{b},1,8,8,128,1,bfloat16,{kv},{s},"
        f"{0.004 + b * s * 1e-7}"
        for kv, b, s in product(("bfloat16", "fp8"), (1, 16, 256), (127, 1023, 8191))
    ]
    reduce = [
        f"VLLM,1,GPU,all_reduce,k,bfloat16,{gpus},{size},{0.005 + size * 2e-8}"
        for gpus, size in product((2, 8), (1024, 1048576, 67108864))
    ]
    for name, head, lines in (
        ("gemm", _GEMM, gemm), ("context_attention", _CONTEXT, context),
        ("generation_attention", _CONTEXT, generation), ("custom_allreduce", _REDUCE, reduce),
    ):  # fmt: skip
        (place / f"{name}_perf.txt").write_text("\n".join([head, *lines]) + "\n")
    return folder


def write_config(folder: Path) -> Path:
    path = folder / "config.json"
    path.write_text(CONFIG)
    return path


def measured_line(users: int, ttft: float, tpot: float, model: str = "lab/net") -> str:
    return (
        f"p{users},source_file=a.csv; silicon_concurrency={users},vllm,0.9.0,{model},h100_sxm,"
        f"fp8,agg,1024,256,fp8,,{users},1.0,1.0,,1.0,1.0,,,{ttft},{tpot}"
    )


def write_measured(folder: Path, *lines: str) -> Path:
    path = folder / "measured_serving.csv"
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return path
