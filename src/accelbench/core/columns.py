"""Registry of result columns; stores, JSON schema, CSV and tables are made from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from accelbench.core import ranges
from accelbench.core.axes import AXES, COLUMN_ORDER, size_columns
from accelbench.core.energy import EnergyMethod
from accelbench.core.ranges import BY_UNIT, Range
from accelbench.core.rows import Row, number
from accelbench.core.vocabulary import (
    Architecture,
    Check,
    Family,
    Mode,
    PrecisionVerdict,
    Provenance,
    Quality,
    Status,
    Verification,
)

Kind = Literal["text", "int", "float", "bool", "time", "json", "list", "floats", "map"]
#: The type of each kind in DuckDB.
SQL_TYPES: dict[Kind, str] = {
    "text": "VARCHAR", "int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN", "time": "TIMESTAMP",
    "json": "JSON", "list": "VARCHAR[]", "floats": "DOUBLE[]", "map": "MAP(VARCHAR, DOUBLE)",
}  # fmt: skip
Role = Literal["identity", "case", "outcome", "metric", "conditions", "other"]


@dataclass(frozen=True)
class Column:
    """One column of benchmark_results."""

    name: str
    kind: Kind
    role: Role
    doc: str
    unit: str = ""
    header: str = ""  # short heading; empty if tables do not show the column
    better: Literal["lower", "higher", ""] = ""
    own_range: Range | None = None  # if the unit's range does not apply
    words: tuple[str, ...] = ()  # the values that a text can have; empty for any text

    @property
    def range(self) -> Range | None:
        """Possible values of its numbers; None for other kinds and for metrics of plugins."""
        return self.own_range or BY_UNIT.get(self.unit)

    @property
    def is_metric(self) -> bool:
        return self.role == "metric"


class AccuracyMetric(StrEnum):
    """Metric of accuracy."""

    TOP1 = "top1"
    TOP5 = "top5"
    F1 = "f1"
    PERPLEXITY = "perplexity"

    @property
    def heading(self) -> str:
        headings = {"top1": "top-1", "top5": "top-5", "f1": "F1"}
        return headings.get(self.value, self.value)

    @property
    def item(self) -> str:
        return "sequences" if self is AccuracyMetric.PERPLEXITY else "samples"


ACCURACY_COLUMNS = (
    Column("accuracy", "float", "metric", "agreement of the outputs with the labels of "
           "--data: a share of 1, or a perplexity, as accuracy_metric names it; computed by the "
           "timed session after timing", header="accuracy", own_range=ranges.ACCURACY),
    Column("accuracy_low", "float", "metric", "lower end of its 95 % interval over samples",
           own_range=ranges.ACCURACY),
    Column("accuracy_high", "float", "metric", "upper end of it", own_range=ranges.ACCURACY),
    Column("accuracy_samples", "int", "metric", "number of labelled samples",
           own_range=ranges.COUNT),
    Column("accuracy_metric", "text", "outcome",
           "top1, top5, f1 (macro) or perplexity; a lower perplexity is better",
           words=tuple(map(str, AccuracyMetric))),
    Column("accuracy_per_sample", "floats", "other", "score of every sample, in the order of the "
           "data: 1 if it is right, else 0; for f1, label × 2^20 + prediction + 1; for "
           "perplexity, a sequence's log loss ÷ the mean number of tokens",
           own_range=ranges.ACCURACY),
)  # fmt: skip

ACCURACY_DIGEST = Column(
    "accuracy_digest",
    "text",
    "conditions",
    "digest of the labelled samples and of their labels",
)

#: Names of all columns of accuracy.
ACCURACY_COLUMN_NAMES = tuple(column.name for column in (*ACCURACY_COLUMNS, ACCURACY_DIGEST))


def _joules(name: str, doc: str, header: str = "", own_range: Range | None = None) -> Column:
    return Column(name, "float", "metric", doc, "J", header, "lower", own_range)


ENERGY_COLUMNS: tuple[Column, ...] = (
    _joules("energy_joules", "energy of one step as the meter counts it, idle included", "J"),
    _joules("energy_ci_low_joules", "lower end of the 95 % interval of energy_joules"),
    _joules("energy_ci_high_joules", "upper end of it"),
    _joules("energy_above_idle_joules", "energy of one step less the energy that the idle "
            "device takes in that time", own_range=ranges.ENERGY_ABOVE_IDLE_J),
    _joules("energy_per_item_joules", "energy of one step ÷ its items, such as images or "
            "tokens, which throughput_unit names", "J/item"),
    Column("power_watts", "float", "metric", "mean power during steps, idle included", "W", "W",
           "lower"),
    Column("idle_power_watts", "float", "metric",
           "mean power before the steps, with the model loaded", "W"),
    Column("energy_source", "text", "conditions",
           "the meter of energy and power, and what it counts"),
    Column("energy_method", "text", "conditions", "counter: the difference of two readings of a "
           "counter of energy; integrated: readings of power over time", words=tuple(EnergyMethod)),
    Column("energy_updates", "int", "metric", "updates of the meter in the window of steps",
           own_range=ranges.COUNT),
    Column("energy_steps", "int", "metric", "steps in that window", own_range=ranges.STEPS),
    Column("energy_window_ms", "float", "metric", "time between its first update and its last",
           "ms"),
)  # fmt: skip


def _text(role: Role, name: str, doc: str, words: Iterable[str] = ()) -> Column:
    return Column(name, "text", role, doc, words=tuple(map(str, words)))


def _whole(role: Role, name: str, doc: str, own_range: Range, header: str = "") -> Column:
    return Column(name, "int", role, doc, header=header, own_range=own_range)


def _ms(name: str, doc: str, header: str = "", own_range: Range | None = None) -> Column:
    return Column(name, "float", "metric", doc, "ms", header, "lower", own_range)


def _number(
    name: str,
    doc: str,
    own_range: Range,
    better: Literal["lower", "higher", ""] = "",
    header: str = "",
) -> Column:
    return Column(name, "float", "metric", doc, "", header, better, own_range)


def _step_ms(name: str, doc: str, header: str) -> Column:
    return _ms(name, doc, header, ranges.STEP_MS)


def _mb(name: str, doc: str, header: str = "") -> Column:
    return Column(name, "float", "metric", doc, "MB (2^20 bytes)", header, "lower")


def _percentile(name: str, doc: str) -> tuple[Column, ...]:
    """Return the columns of a percentile: its value, its interval, and whether it is rough."""
    return (
        _step_ms(f"latency_{name}_ms", doc, f"{name} ms"),
        _ms(f"latency_{name}_low_ms", f"lower end of the 95 % interval of {name}"),
        _ms(
            f"latency_{name}_high_ms",
            f"upper end of it; empty where no sample is surely above {name}",
        ),
        Column(
            f"latency_{name}_rough",
            "bool",
            "metric",
            f"{name} is rough: too few independent samples lie beyond it, or its interval is wider "
            "than ±10 %; no verdict uses it",
        ),
    )


_SIZES = tuple(
    _text("case", axis.column, axis.unit)
    if axis.text
    else _whole("case", axis.column, axis.unit, ranges.SIZE)
    for axis in AXES
)
#: Position of `input_shape` among the sizes: tables and files keep their order.
_BEFORE_SHAPE = 2

COLUMNS: tuple[Column, ...] = (
    # -- identity
    _text("identity", "result_id", "hash of run, case, device, launch and arm"),
    _text("identity", "run_id", "the run this belongs to"),
    _text("identity", "case_id", "hash of what was asked"),
    _text("identity", "series_key", "case_id + device fingerprint + threads + protocol version"),
    _whole("identity", "launch", "ordinal of the fresh worker within its case, from 1",
           ranges.COUNT),
    _text("identity", "arm", "side of an interleaved comparison: this, or what it is compared "
          "with; empty outside one"),
    # -- configuration
    _text("case", "model", "catalogue name"),
    _text("case", "family", "one of the five model families; unknown of a file", Family),
    _text("case", "architecture", "one of the eleven architectures; unknown of a file",
          Architecture),
    _text("case", "modality", "modality tags, comma-separated"),
    _text("case", "task", "what the model is for"),
    _text("case", "model_size", "tiny, small, base, medium or large"),
    _whole("case", "parameters", "number of weights", ranges.WEIGHTS, "params"),
    _text("case", "weights",
          "random, a local path, a hub id, or file: those of the model's own file"),
    _text("case", "hardware", "platform"),
    _text("case", "runtime", "engine"),
    _text("case", "device", "device asked for"),
    _text("case", "device_name", "the device as people know it"),
    _text("case", "device_fingerprint", "key into hardware_info"),
    _text("case", "precision", "fp32, fp16, bf16, int8, amp-fp16 or amp-bf16"),
    _whole("case", "batch_size", "items in one step", ranges.SIZE, "batch"),
    *_SIZES[:_BEFORE_SHAPE],
    _text("case", "input_shape", "shape of every input, as JSON"),
    *_SIZES[_BEFORE_SHAPE:],
    _text("case", "mode", "inference or training", Mode),
    _text("case", "scenario", "how requests arrive"),
    Column("compiled", "bool", "case",
           "compiled by the engine's compiler: on request, or as it always does"),
    _whole("case", "threads", "threads the engine really used", ranges.WORKERS),
    _whole("case", "world_size", "processes working on one step", ranges.WORKERS),
    _whole("case", "seed", "seed of weights and inputs", ranges.SEED),
    _text("case", "data_source", "synthetic or a path"),
    _text("case", "optimizer", "adamw or sgd, where the model is trained"),
    Column("options", "json", "case", "options set on purpose"),
    # -- outcome
    _text("outcome", "status", "ok, failed, unsupported, out_of_memory, timeout or skipped",
          Status),
    _text("outcome", "reason", "a short stable token, for every result that is not ok"),
    _text("outcome", "message", "the reason as a sentence"),
    _text("outcome", "advice", "what to do next, for every result that is not ok"),
    _text("outcome", "provenance", "measured, imported, predicted or simulated", Provenance),
    _text("outcome", "quality", "converged, noise_limited, time_limited, unsteady, throttled, "
          "fixed (the number of samples was asked for) or unusable (wide interval, waiting for "
          "other processes, time in no step, implausible rate)", Quality),
    Column("implausible_rate", "map", "outcome", "work ÷ time beyond 3 × the documented peak"),
    Column("warnings", "list", "outcome", "what a reader should know before trusting the figures"),
    Column("evidence", "json", "outcome", "proof of where the work ran"),
    Column("emulated", "bool", "outcome", "software stood in for the device"),
    _text("outcome", "verification", "ok, failed, not_done, or reference: outputs (in training, "
          "losses) compared with PyTorch in fp32 on the CPU with the same weights and inputs",
          Verification),
    _text("outcome", "self_check", "ok, failed or not_done: a seeded second run gives the same "
          "outputs, and they depend on inputs and on weights, which verification asks of engines "
          "that open an exported file", Check),
    _text("outcome", "steps_verified", "ok or not_done: what steps left that were timed is what "
          "the session's outputs are, which verification compares with the reference; in "
          "training, timed steps train", (Check.OK, Check.NOT_DONE)),
    _text("outcome", "precision_proof", "proven or not_proven: the evidence shows that the "
          "precision asked for was computed in, or fp32 outputs agree as only fp32 does",
          PrecisionVerdict),
    Column("nulls", "json", "outcome", "why each column that is empty is empty"),
    # -- metrics
    _step_ms("latency_mean_ms", "mean time of one step (one batch)", "mean ms"),
    _step_ms("latency_p50_ms", "median time of one step", "p50 ms"),
    *_percentile("p90", "90th percentile; given from 10 samples on"),
    *_percentile("p95", "95th percentile; given from 20 samples on"),
    *_percentile("p99", "99th percentile; given from 100 samples on"),
    _ms("latency_min_ms", "fastest step", "min ms"),
    _step_ms("latency_max_ms", "slowest step", "max ms"),
    _ms("latency_std_ms", "standard deviation over steps", "std ms"),
    _ms("latency_ci_low_ms", "lower end of the within-run 95 % interval of the median; of the "
        "mean where steps too short for the clock are timed in blocks"),
    _ms("latency_ci_high_ms", "upper end of the within-run 95 % interval of the median; of the "
        "mean where steps too short for the clock are timed in blocks"),
    _whole("metric", "sample_count", "samples kept, outliers included", ranges.COUNT, "n"),
    _number("effective_sample_count", "samples after autocorrelation", ranges.COUNT),
    _whole("metric", "outlier_count", "samples beyond Tukey's 3-IQR fences; kept", ranges.COUNT),
    _number("lag1_autocorrelation", "correlation of neighbouring samples", ranges.CORRELATION),
    _whole("metric", "warmup_steps", "steps run before the steady state", ranges.STEPS),
    Column("warmup_ms", "float", "metric", "time those steps took", "ms"),
    Column("sampling_ms", "float", "metric", "time of the steady state, all blocks", "ms"),
    _number("unexplained_share", "of the time between questions for steps and their answers, by a "
            "clock that the runtime does not own, what is in no sample", ranges.SHARE),
    _number("cpu_wait_share", "share of the time in which its threads had work to do and other "
            "processes had the CPUs", ranges.SHARE),
    Column("throughput", "float", "metric", "items per second: batch ÷ mean latency", "items/s",
           "items/s", "higher"),
    _text("case", "throughput_unit", "what an item is, per second"),
    Column("tokens_per_second", "float", "metric",
           "new tokens of the whole batch ÷ mean latency of a request, prefill included",
           "tokens/s", "tok/s", "higher"),
    _ms("first_inference_ms", "the first step at this shape, before any warm-up", "first ms"),
    _ms("first_visit_ms",
        "in a browser with nothing fetched: engine and model are loaded, up to the first answer",
        "visit ms"),
    _ms("repeat_visit_ms", "the same once more in that browser, with what it has kept of it",
        "again ms"),
    _ms("build_ms", "making the model from its config, or reading its weights", "build ms"),
    _ms("load_ms", "placing the built model on the device in its precision", "load ms"),
    _ms("compile_ms", "compilation, apart from the step it happened in", "compile ms"),
    _ms("device_time_ms", "median of one step by the device's own event timers", "device ms"),
    _ms("ttft_ms", "time to first token, from a pass of its own", "ttft ms"),
    _ms("tpot_ms", "time per output token after the first, from the same pass", "tpot ms"),
    _ms("prefill_ms", "reading the prompt up to the first token, from a pass of its own"),
    _ms("decode_ms", "all tokens after the first, from a pass of its own"),
    _ms("embed_ms", "embedding the question of a rag request, from a pass of its own"),
    _ms("retrieve_ms", "finding the passages of a rag request, from a pass of its own"),
    _ms("generate_ms", "writing the answer of a rag request, from a pass of its own"),
    _ms("data_load_ms", "reading, decoding and preprocessing one batch of real inputs", "data ms"),
    _ms("forward_ms", "forward pass, from a pass of its own", "fwd ms"),
    _ms("loss_ms", "loss, from a pass of its own", "loss ms"),
    _ms("backward_ms", "backward pass, from a pass of its own", "bwd ms"),
    _ms("optimizer_ms", "optimizer step, from a pass of its own", "opt ms"),
    _number("loss_first", "loss of the first training step", ranges.LOSS),
    _number("loss_last", "loss of the last training step", ranges.LOSS),
    Column("loss_per_step", "floats", "other", "loss of every training step, from the first",
           own_range=ranges.LOSS),
    _number("convergence", "how far the loss falls in the first seeded steps, relative to the "
            "same steps in fp32 on the CPU with pytorch, both untimed and without dropout: 1 "
            "means as far, and is by definition what that case itself has", ranges.LOSS, "higher",
            "converge"),
    _whole("metric", "convergence_steps", "how many steps convergence compares", ranges.STEPS),
    _mb("memory_peak_mb", "peak of the memory the model works in: the device's where the device "
        "has its own, else the host's", "peak MB"),
    _mb("memory_avg_mb", "average of the same during steady steps", "avg MB"),
    _mb("host_memory_peak_mb", "peak host memory of the worker, less what it had before"),
    _mb("host_memory_avg_mb", "average host memory during steady steps"),
    _mb("device_memory_peak_mb", "peak of the device allocator"),
    _mb("device_memory_avg_mb", "average of the device allocator during steady steps"),
    _mb("device_memory_reserved_mb", "what the allocator held from the device"),
    _text("conditions", "memory_source", "which counter the memory figures come from"),
    Column("memory_estimate_mb", "float", "other", "what was estimated before", "MB (2^20 bytes)",
           own_range=ranges.ESTIMATE_MB),
    _number("scaling_efficiency", "time of the same step in one process ÷ (processes × time in "
            "all of them), both measured in this run; 1 is perfect", ranges.SCALING, "higher",
            "scaling"),
    _ms("communication_ms",
        "of a profiled step, in which a collective was under way: the mean of all ranks",
        "comm ms"),
    _number("communication_share", "of that step's time, the same", ranges.SHARE, "lower"),
    _ms("exposed_communication_ms", "of that time, in which the rank computed nothing meanwhile",
        "exposed ms"),
    _number("straggler_ratio", "of a profiled step what is not exposed communication: the slowest "
            "rank's ÷ the median's", ranges.RATIO, "lower"),
    *ENERGY_COLUMNS,
    Column("cost_usd", "float", "metric", "cost per million items", "$", "$/M", "lower"),
    _number("verification_error", "how far the worst output is from the reference's, in parts of "
            "what other inputs change; in training, the worst loss, in parts of how far the "
            "reference's falls", ranges.ERROR, "lower"),
    Column("verification_tolerance", "float", "other", "the largest error that passes",
           own_range=ranges.SHARE),
    *ACCURACY_COLUMNS,
    Column("flops", "float", "metric", "analytic operations of one step", "FLOP"),
    Column("bytes_moved", "float", "metric", "analytic bytes of one step", "B"),
    Column("extra", "map", "other", "metrics of plugins"),
    # -- conditions: what a comparison must list when it differs
    _text("conditions", "weights_digest", "digest of the weights"),
    _text("conditions", "outputs_digest", "digest of what the seeded inputs gave"),
    _text("conditions", "data_digest", "digest of the real inputs that were used"),
    ACCURACY_DIGEST,
    Column("workarounds", "list", "conditions", "declared changes that made the case run"),
    Column("conditions", "json", "conditions", "versions, quantiser, container limits and such"),
    Column("environment", "json", "conditions", "load, steal, governor and such around it"),
    _whole("conditions", "protocol_version", "version of the measuring rules", ranges.COUNT),
    Column("started_at", "time", "outcome", "when the launch began on this case, UTC"),
    Column("finished_at", "time", "outcome", "when it ended, UTC"),
)  # fmt: skip

BY_NAME = {column.name: column for column in COLUMNS}

#: The time of a step is the first of these that is known. Steps that are too short for the clock,
#: and many published results, have only a mean.
STEP_MS = ("latency_p50_ms", "latency_mean_ms")

#: Columns of a configuration: launches of one run with equal values measure the same.
CONFIGURATION_COLUMNS = (
    "model", "mode", "hardware", "device_name", "runtime", "precision", "batch_size",
    *size_columns(*COLUMN_ORDER), "scenario", "world_size", "optimizer", "weights", "data_source",
    "threads",
    "compiled", "options",
)  # fmt: skip


def step_ms(row: Row) -> float | None:
    """Return the milliseconds of a result's step; None if it was not timed."""
    durations = (number(row, name) for name in STEP_MS)
    duration = next((known for known in durations if known is not None), None)
    return None if duration is None else float(duration)


def metric_columns() -> tuple[Column, ...]:
    """Return the columns of measured values."""
    return tuple(c for c in COLUMNS if c.is_metric)
