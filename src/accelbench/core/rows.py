"""Result row: the columns of benchmark_results as a type; `core/row_types.py` writes it.

`row["threads"]` and `row.get("threads")` have the column's own type, and the type checker rejects
names that are not columns. A name that is known only at run time gives `object`; `number`, `text`,
`texts` and `record` read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

Json = Mapping[str, object]


class ResultRow(TypedDict, total=False):
    """Result as the store returns it. Views add columns in subclasses."""

    result_id: str | None
    run_id: str | None
    case_id: str | None
    series_key: str | None
    launch: int | None
    arm: str | None
    model: str | None
    family: str | None
    architecture: str | None
    modality: str | None
    task: str | None
    model_size: str | None
    parameters: int | None
    weights: str | None
    hardware: str | None
    runtime: str | None
    device: str | None
    device_name: str | None
    device_fingerprint: str | None
    precision: str | None
    batch_size: int | None
    sequence_length: int | None
    image_size: int | None
    input_shape: str | None
    prompt_tokens: int | None
    new_tokens: int | None
    audio_seconds: int | None
    denoising_steps: int | None
    dimensions: str | None
    mode: str | None
    scenario: str | None
    compiled: bool | None
    threads: int | None
    world_size: int | None
    seed: int | None
    data_source: str | None
    optimizer: str | None
    options: Json | None
    status: str | None
    reason: str | None
    message: str | None
    advice: str | None
    provenance: str | None
    quality: str | None
    implausible_rate: Mapping[str, float] | None
    warnings: list[str] | None
    evidence: Json | None
    emulated: bool | None
    verification: str | None
    self_check: str | None
    steps_verified: str | None
    precision_proof: str | None
    nulls: Json | None
    latency_mean_ms: float | None
    latency_p50_ms: float | None
    latency_p90_ms: float | None
    latency_p90_low_ms: float | None
    latency_p90_high_ms: float | None
    latency_p90_rough: bool | None
    latency_p95_ms: float | None
    latency_p95_low_ms: float | None
    latency_p95_high_ms: float | None
    latency_p95_rough: bool | None
    latency_p99_ms: float | None
    latency_p99_low_ms: float | None
    latency_p99_high_ms: float | None
    latency_p99_rough: bool | None
    latency_min_ms: float | None
    latency_max_ms: float | None
    latency_std_ms: float | None
    latency_ci_low_ms: float | None
    latency_ci_high_ms: float | None
    sample_count: int | None
    effective_sample_count: float | None
    outlier_count: int | None
    lag1_autocorrelation: float | None
    warmup_steps: int | None
    warmup_ms: float | None
    sampling_ms: float | None
    unexplained_share: float | None
    cpu_wait_share: float | None
    throughput: float | None
    throughput_unit: str | None
    tokens_per_second: float | None
    first_inference_ms: float | None
    first_visit_ms: float | None
    repeat_visit_ms: float | None
    build_ms: float | None
    load_ms: float | None
    compile_ms: float | None
    device_time_ms: float | None
    ttft_ms: float | None
    tpot_ms: float | None
    prefill_ms: float | None
    decode_ms: float | None
    embed_ms: float | None
    retrieve_ms: float | None
    generate_ms: float | None
    data_load_ms: float | None
    forward_ms: float | None
    loss_ms: float | None
    backward_ms: float | None
    optimizer_ms: float | None
    loss_first: float | None
    loss_last: float | None
    loss_per_step: list[float] | None
    convergence: float | None
    convergence_steps: int | None
    memory_peak_mb: float | None
    memory_avg_mb: float | None
    host_memory_peak_mb: float | None
    host_memory_avg_mb: float | None
    device_memory_peak_mb: float | None
    device_memory_avg_mb: float | None
    device_memory_reserved_mb: float | None
    memory_source: str | None
    memory_estimate_mb: float | None
    scaling_efficiency: float | None
    communication_ms: float | None
    communication_share: float | None
    exposed_communication_ms: float | None
    straggler_ratio: float | None
    energy_joules: float | None
    energy_ci_low_joules: float | None
    energy_ci_high_joules: float | None
    energy_above_idle_joules: float | None
    energy_per_item_joules: float | None
    power_watts: float | None
    idle_power_watts: float | None
    energy_source: str | None
    energy_method: str | None
    energy_updates: int | None
    energy_steps: int | None
    energy_window_ms: float | None
    cost_usd: float | None
    verification_error: float | None
    verification_tolerance: float | None
    accuracy: float | None
    accuracy_low: float | None
    accuracy_high: float | None
    accuracy_samples: int | None
    accuracy_metric: str | None
    accuracy_per_sample: list[float] | None
    flops: float | None
    bytes_moved: float | None
    extra: Mapping[str, float] | None
    weights_digest: str | None
    outputs_digest: str | None
    data_digest: str | None
    accuracy_digest: str | None
    workarounds: list[str] | None
    conditions: Json | None
    environment: Json | None
    protocol_version: int | None
    started_at: str | None
    finished_at: str | None


#: Any row of named values, whose columns are named at run time.
Row = Mapping[str, object]


def number(row: Row, name: str) -> float | None:
    """Return the number in a column that is named at run time; None if it has none."""
    value = row.get(name)
    if isinstance(
        value, float
    ):  # charts call this a million times: the most frequent type comes first
        return value
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text(row: Row, name: str) -> str:
    """Return the text in a column that is named at run time; empty if it has none."""
    value = row.get(name)
    return "" if value is None else str(value)


def texts(row: Row, name: str) -> list[str]:
    """Return the texts in a column that lists them; empty if it has no list."""
    value = row.get(name)
    return [str(part) for part in value] if isinstance(value, list | tuple) else []


def record(row: Row, name: str) -> Json:
    """Return the JSON object in a column, not a copy; empty if it has none."""
    value = row.get(name)
    return value if isinstance(value, Mapping) else {}
