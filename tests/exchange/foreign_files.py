"""Small files in the formats of others, written by hand: what is right, and what is wrong."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelbench.exchange.imports.reading import read_import
from accelbench.store.database import Database


@dataclass(frozen=True)
class Good:
    """A file, and what has to come of it: of each row some columns and conditions."""

    kind: str
    name: str
    text: str
    rows: Sequence[Mapping[str, Any]]
    conditions: Mapping[str, Any] = field(default_factory=dict)
    beside: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Bad:
    """A file that is refused, and where."""

    kind: str
    name: str
    text: str
    line: int | None
    named: str | None
    why: str


TIMM = "benchmark-infer-amp-nhwc-pt240-cu124-rtx4090-dynamo.csv"
TIMM_CPU = "benchmark-train-fp32-nchw-pt113-cpu-i9_10940x.csv"
TIMM_HEADER = (
    "model,infer_img_size,infer_samples_per_sec,infer_step_time,infer_batch_size,"
    "param_count,infer_gmacs,infer_macts\n"
)

TIMM_ROW = "net,224,1000.0,256.0,256.0,5.5,{},2.04\n"

PERF = """\
supported_devices:
- A phone
precisions:
  w8a8:
    components:
      Net:
        universal_assets: {}
        performance_metrics:
          A phone:
            qnn_dlc:
              job_id: jabc
              job_status: Passed
              inference_time_milliseconds: 2.5
              estimated_peak_memory_range_mb:
                min: 0
                max: 12
              primary_compute_unit: NPU
              layer_counts:
                total: 7
                npu: 7
              tool_versions:
                qairt: 2.42.0
            tflite:
              job_id: jdef
              job_status: Failed
"""
INFO = """\
id: net
domain: Computer Vision
technical_details:
  Input resolution: 224x224
  Number of parameters: 25.5M
"""

MLPERF: dict[str, Any] = {
    "ID": "9.9-0001", "Submitter": "Somebody", "Model": "resnet", "Scenario": "Offline", "Nodes": 2,
    "Processor": "A processor", "Accelerator": "NVIDIA H200-SXM-141GB", "a#": 4,
    "Software": "TensorRT 10.11, CUDA 12.9", "weight_data_types": "FP8",
    "Performance_Result": 4000.5, "Performance_Units": "Samples/s",
}  # fmt: skip

OPTIMUM: dict[str, Any] = {
    "config": {
        "backend": {
            "name": "pytorch",
            "version": "2.4.1",
            "task": "text-generation",
            "model": "gpt2",
            "device": "cuda",
            "torch_dtype": "float16",
        },
        "scenario": {
            "input_shapes": {"batch_size": 2, "sequence_length": 16},
            "generate_kwargs": {"max_new_tokens": 8},
        },
        "environment": {"gpu": ["Tesla T4"], "cpu": "A processor", "transformers_version": "4.45"},
    },
    "report": {
        "load": {"latency": {"unit": "s", "values": [2.0], "mean": 2.0}},
        "prefill": {"latency": {"unit": "s", "values": [0.010], "mean": 0.010}},
        "decode": {
            "latency": {"unit": "s", "values": [0.070], "mean": 0.070},
            "throughput": {"unit": "tokens/s", "value": 200.0},
            "memory": {"unit": "MB", "max_ram": 2097.152, "max_allocated": 1048.576},
        },
        "per_token": {"latency": {"unit": "s", "values": [0.009], "mean": 0.009}},
    },
}
FORWARD: dict[str, Any] = {
    "config": {
        "backend": {"name": "openvino", "model": "bert", "device": "cpu", "dtype": "weird"},
        "scenario": {"input_shapes": None},
    },
    "report": {
        "forward": {
            "latency": {
                "unit": "s",
                "values": [0.001, 0.003],
                "count": 2,
                "mean": 0.002,
                "p50": 0.002,
                "stdev": 0.001,
            },
            "throughput": {"unit": "samples/s", "value": 500.0},
        }
    },
}

APP: dict[str, Any] = {
    "cmd_options": {"-m": "models/resnet50.xml", "-api": "sync"},
    "configuration_setup": {
        "topology": "main_graph", "target device": "CPU", "API": "sync", "precision": "UNSPECIFIED",
        "batch size": "4", "number of parallel infer requests": "1", "number of CPU streams": "1",
    },
    "execution_results": {
        "compile model time (ms)": "120.5", "first inference time (ms)": "9.1",
        "total number of iterations": "100", "latency (ms)": "5.00", "avg latency": "5.10",
        "min latency": "4.80", "max latency": "9.00", "throughput": "784.31",
    },
}  # fmt: skip

PYTEST: dict[str, Any] = {
    "machine_info": {
        "machine": "x86_64", "python_version": "3.12.1", "cpu": {"brand_raw": "A processor"},
    },
    "commit_info": {"id": "abcdef", "branch": "main", "dirty": False},
    "benchmarks": [
        {
            "name": "test_it", "fullname": "tests/test_speed.py::test_it[8]",
            "params": {"batch_size": 8}, "extra_info": {"model": "bert", "layout": "nchw"},
            "stats": {
                "min": 0.001, "max": 0.003, "mean": 0.002, "median": 0.002,
                "stddev": 0.0014142135623730951, "rounds": 2, "ops": 500.0, "data": [0.001, 0.003],
            },
        },
    ],
    "datetime": "2026-05-01T12:00:00+02:00", "version": "5.1.0",
}  # fmt: skip

GUIDE = """\
framework,model,device,device_type,batch_size,input_shape,dtype,latency_p50_ms,latency_p95_ms,\
latency_p99_ms,latency_mean_ms,latency_std_ms,latency_min_ms,latency_max_ms,throughput_ips,\
memory_mb,compilation_time_ms,timestamp,git_commit
pytorch,resnet50,cuda:0,cuda,8,"(8, 3, 224, 224)",float16,4.0,4.5,,4.1,0.1,3.9,5.0,1951.2,812.5,,\
2026-05-01T12:00:00,abcdef
"""
TRUTH = GUIDE.replace("git_commit\n", "git_commit,compiled\n").replace("abcdef\n", "abcdef,maybe\n")

#: A result as our own files have it, and what none can say.
OURS = {"result_id": "r", "case_id": "c", "model": "bert", "hardware": "cpu", "runtime": "x",
        "status": "ok", "provenance": "measured", "mode": "inference", "precision": "fp32",
        "batch_size": 8, "latency_p50_ms": 4.0, "memory_peak_mb": 0.0}  # fmt: skip
IMPOSSIBLE: tuple[tuple[str, Any, str], ...] = (
    ("latency_p50_ms", -3, "-3 is not above 0"),
    ("latency_p50_ms", 0, "0 is not above 0"),
    ("latency_p50_ms", 1e-300, "1e-300 is below the smallest possible value"),
    ("throughput", 1e-300, "1e-300 is below the smallest possible value"),
    ("throughput", -1.5, "-1.5 is not above 0"),
    ("load_ms", -1, "-1 is below 0"),
    ("memory_peak_mb", -1, "-1 is below 0"),
    ("batch_size", -4, "-4 is not above 0"),
    ("image_size", 0, "0 is not above 0"),
    ("status", "wonderful", "'wonderful' is not one of ok, failed"),
    ("provenance", "rumour", "'rumour' is not one of measured"),
    ("mode", "dreaming", "'dreaming' is not one of inference, training"),
    ("quality", "fine", "'fine' is not one of converged"),
    ("precision", "fp31", "'fp31' is not one of fp32"),
)


def bring(database: Database, kind: str, path: Path, **more: str) -> int:
    """Import a file; return how many results are new."""
    found = read_import(kind, path, **more)
    return database.bring_in(found.run_id, found.facts, found.bodies, found.queries).results


def results(**changes: Any) -> str:
    """A document of one result of ours, a field a line, a changed one in the fourth."""
    fields = [f'"{name}": {json.dumps(value)}' for name, value in {**OURS, **changes}.items()]
    first = next((n for n, name in enumerate({**OURS, **changes}) if name in changes), 0)
    fields = [*fields[:first], *fields[first + 1 :], fields[first]]
    return '{"results": [\n{' + ", ".join(fields[:-1]) + ",\n\n" + fields[-1] + "}]}"


def table(**changes: Any) -> str:
    """The same as CSV."""
    row = {**OURS, **changes}
    stream = io.StringIO()
    cells = [json.dumps(v) if isinstance(v, (dict, list)) else v for v in row.values()]
    csv.writer(stream, lineterminator="\n").writerows([row, cells])
    return stream.getvalue()


def document(value: Any, **changes: Any) -> str:
    """As JSON, with some of its keys changed; a name as a.b is b of a."""
    copy = json.loads(json.dumps(value))
    for path, new in changes.items():
        *way, last = path.split("__")
        place = copy
        for step in way:
            place = place[int(step) if step.isdecimal() else step]
        if new is ...:
            del place[last]
        else:
            place[last] = new
    return json.dumps(copy, indent=1)


SERVERS = "measured_serving.csv"
SERVERS_HEADER = (
    "id,silicon_data_source,backend,backend_version,model_path,system,precision,mode,isl,osl,"
    "tp_size,prefill_tp_size,decode_tp_size,silicon_ttft_ms,silicon_tpot_ms\n"
)

#: By MLPerf's rules a latency of SingleStream is the 90th percentile, not a mean.
GOOD = (
    Good("timm", TIMM,
        TIMM_HEADER + "net_a,224,1000.0,256.0,256.0,5.5,0.39,2.04\nnet_huge,448,,,,600.1,544.7,9\n",
        [
            {
                "model": "net_a", "hardware": "cuda", "device_name": "NVIDIA GeForce RTX 4090",
                "runtime": "pytorch", "precision": "amp-fp16", "batch_size": 256, "image_size": 224,
                "mode": "inference", "compiled": True, "options": {"layout": "nhwc"},
                "latency_mean_ms": 256.0, "throughput": 1000.0, "parameters": 5_500_000,
                "extra": {"gmacs": 0.39, "mega_activations": 2.04},
            },
        ], {"torch": "2.4.0", "cuda": "12.4"}),
    Good("timm", TIMM_CPU,
        "model,train_samples_per_sec,train_step_time,train_batch_size\nnet_a,10,800,8\n",
        [
            {
                "hardware": "cpu", "device_name": "Intel Core i9-10940X", "precision": "fp32",
                "mode": "training", "compiled": False, "image_size": None,
            },
        ], {"torch": "1.13"}),
    Good("aihub", "perf.yaml", PERF,
        [
            {
                "model": "net", "family": "vision", "hardware": "qnn", "device_name": "A phone",
                "runtime": "qnn_dlc", "precision": "w8a8", "batch_size": 1, "image_size": 224,
                "parameters": 25_500_000, "latency_mean_ms": 2.5, "throughput": 400.0,
                "memory_peak_mb": 12.0, "evidence": {"layers": {"total": 7, "npu": 7}},
            },
            {"runtime": "tflite", "status": "failed", "reason": "job_failed", "throughput": None},
        ], {"job_id": "jabc", "qairt": "2.42.0"}, {"info.yaml": INFO}),
    Good("aiconfigurator", SERVERS,
        SERVERS_HEADER + "b,r; silicon_concurrency=64; x,vllm,0.9.0,net,h100_sxm,fp8,agg,1024,128"
        ",4.0,,,55.5,6.25\n",
        [
            {
                "model": "net", "hardware": "cuda", "device_name": "h100_sxm", "runtime": "vllm",
                "precision": "fp8", "scenario": "closed_loop", "prompt_tokens": 1024,
                "new_tokens": 128, "ttft_ms": 55.5, "tpot_ms": 6.25, "latency_mean_ms": None,
                "options": {"serving": "agg", "tp_size": 4, "concurrency": 64},
            },
        ], {"backend_version": "0.9.0", "id": "b"}),
    Good("mlperf", "summary_results.json",
        json.dumps(
            [
                MLPERF,
                {
                    **MLPERF, "Scenario": "SingleStream", "Accelerator": "", "a#": "", "Nodes": 1,
                    "Software": "tflite v2", "weight_data_types": "UNSET",
                    "Performance_Result": 12.5, "Performance_Units": "Latency (ms)",
                },
                {
                    **MLPERF, "Scenario": "MultiStream", "Accelerator": "AMD Instinct MI300X",
                    "Performance_Units": "Latency (ms)",
                },
            ], indent=0),
        [
            {
                "model": "resnet", "hardware": "cuda", "device_name": "8x NVIDIA H200-SXM-141GB",
                "world_size": 8, "runtime": "tensorrt", "precision": "fp8", "scenario": "offline",
                "throughput": 4000.5, "throughput_unit": "samples/s", "batch_size": None,
                "latency_mean_ms": None,
            },
            {
                "hardware": "cpu", "device_name": "A processor", "runtime": "tflite",
                "precision": None, "scenario": "single_stream", "latency_p90_ms": 12.5,
                "latency_mean_ms": None, "batch_size": 1, "throughput": None,
            },
            {"hardware": "rocm", "latency_p99_ms": 4000.5, "batch_size": 8},
        ], {"ID": "9.9-0001", "Submitter": "Somebody"}),
    Good("optimum", "benchmark.json", document(OPTIMUM),
        [
            {
                "model": "gpt2", "family": "text_generation", "hardware": "cuda",
                "device_name": "Tesla T4", "runtime": "pytorch", "precision": "fp16",
                "batch_size": 2, "sequence_length": 16, "new_tokens": 8, "load_ms": 2000.0,
                "ttft_ms": 10.0, "tpot_ms": 9.0, "latency_mean_ms": 80.0,
                "tokens_per_second": 200.0, "memory_peak_mb": 1000.0, "host_memory_peak_mb": 2000.0,
            },
        ], {"pytorch": "2.4.1", "transformers": "4.45"}),
    Good("optimum", "benchmark_report.json", document(FORWARD),
        [
            {
                "hardware": "cpu", "precision": "weird", "latency_p50_ms": 2.0,
                "latency_std_ms": 1.0, "sample_count": 2, "throughput": 500.0,
                "throughput_unit": "samples/s", "batch_size": None,
            },
        ]),
    Good("benchmark-app", "benchmark_report.json", document(APP),
        [
            {
                "model": "resnet50", "hardware": "openvino", "device": "openvino:cpu",
                "runtime": "openvino", "precision": None, "batch_size": 4,
                "scenario": "single_stream", "latency_p50_ms": 5.0, "latency_mean_ms": 5.1,
                "compile_ms": 120.5, "first_inference_ms": 9.1, "sample_count": 100,
                "throughput": 784.31, "options": {"api": "sync", "requests": 1},
            },
        ], {"cpu_streams": "1"}),
    Good("benchmark-app", "benchmark_report_async.json",
        document(APP, cmd_options=..., configuration_setup__API="async",
            configuration_setup__precision="FP16",
            **{"execution_results__latency (95 percentile) (ms)": "7.5"}),
        [
            {
                "model": "main_graph", "scenario": "offline", "precision": "fp16",
                "latency_p95_ms": 7.5,
            },
        ]),
    Good("pytest-benchmark", "speed.json", document(PYTEST),
        [
            {
                "model": "bert", "batch_size": 8, "options": {"layout": "nchw"}, "hardware": "cpu",
                "runtime": "python", "device_name": "A processor", "latency_mean_ms": 2.0,
                "latency_p50_ms": 2.0, "sample_count": 2, "throughput": 500.0,
                "started_at": "2026-05-01T10:00:00.000000Z",
            },
        ], {"commit_id": "abcdef", "python_version": "3.12.1"}),
    Good("guide-csv", "benchmark_results_20260501_120000.csv", GUIDE,
        [
            {
                "model": "resnet50", "runtime": "pytorch", "hardware": "cuda", "device": "cuda:0",
                "batch_size": 8, "image_size": 224, "precision": "fp16", "latency_p50_ms": 4.0,
                "latency_p99_ms": None, "latency_mean_ms": 4.1, "throughput": 1951.2,
                "memory_peak_mb": 812.5, "compile_ms": None,
                "started_at": "2026-05-01T12:00:00.000000Z",
            },
        ], {"git_commit": "abcdef"}),
)  # fmt: skip

#: By kind and name: the text of a file, the line and the field that are named, and why.
_BAD: dict[tuple[str, str], list[tuple[str, int | None, str | None, str]]] = {
    ("timm", "table.csv"): [
        (TIMM_HEADER, None, None, "its name has no mode"),
    ],
    ("timm", TIMM): [
        ("model,infer_step_time\n", 1, "infer_samples_per_sec", "the header lacks it"),
        (TIMM_HEADER + "a,224,1,2,3,4,5\n", 2, None, "7 fields, and"),
        (TIMM_HEADER + "a,224,1,,3,4,5,6\n", 2, "infer_step_time", "it is missing"),
        (TIMM_HEADER + "a,224,1,x,3,4,5,6\n", 2, "infer_step_time", "'x' is no"),
        (TIMM_HEADER + "a,224,1,-1,3,4,5,6\n", 2, "infer_step_time", "not above 0"),
        (TIMM_HEADER + "a,224,1,1,3.5,4,5,6\n", 2, "infer_batch_size", "not a whole"),
        (TIMM_HEADER + "a,224,1,inf,3,4,5,6\n", 2, "infer_step_time", "not a finite"),
        ("model,model\n", 1, "infer_samples_per_sec", "the header lacks it"),
        (TIMM_HEADER + TIMM_ROW.format("-1"), 2, "infer_gmacs", "is below 0"),
        (TIMM_HEADER + TIMM_ROW.format("1_0"), 2, "infer_gmacs", "is not a number"),
        (TIMM_HEADER + TIMM_ROW.format("\u0661"), 2, "infer_gmacs", "is not a number"),
    ],
    ("aihub", "perf.yaml"): [
        ("precisions: [\n", 2, None, "did not find"),
        ("- a\n", 1, None, "an object was expected"),
        ("a: 1\nprecisions: 7\n", 2, "precisions", "an object was expected"),
        (PERF.replace("milliseconds: 2.5", "milliseconds: soon"),
         13, "inference_time_milliseconds", "'soon' is not a number"),
        (PERF.replace("Passed", "Passed\n" + " " * 14 + "job_id: b"),
         13, "job_id", "it occurs twice"),
        (PERF[: PERF.index("              layer_counts")],
         11, "layer_counts", "it is missing from a job that passed"),
        (PERF[: PERF.index("                qairt")],
         21, "tool_versions", "it is missing from a job that passed"),
        (PERF.replace("max: 12", "max: -1"), 16, "max", "is below 0"),
        (PERF.replace("min: 0", "min: 13"), 16, "max", "12 is below min, 13"),
        (PERF.replace("total: 7", "total: 1e300"), 19, "total", "above the largest"),
    ],
    ("aiconfigurator", SERVERS): [
        ("model_path,isl\n", 1, "backend", "the header lacks it"),
        (SERVERS_HEADER + "b,,vllm,,net,h100_sxm,fp8,agg,1024,128,4,,,0,6\n", 2,
         "silicon_ttft_ms", "is not above 0"),
        (SERVERS_HEADER + "b,,vllm,,net,h100_sxm,fp8,agg,some,128,4,,,5,6\n", 2, "isl",
         "is not a number"),
    ],
    ("mlperf", "summary_results.json"): [
        ("{}", 1, None, "a list of results was expected"),
        ("[1]", None, "entry 1", "an object was expected"),
        ("[\n", 2, None, "expecting value"),
        (json.dumps([{**MLPERF, "Scenario": "Picnic"}], indent=0),
         6, "Scenario", "'Picnic' is not a known scenario"),
        (json.dumps([{**MLPERF, "Performance_Units": "Latency (ms)"}], indent=0),
         14, "Performance_Units", "the result of Offline is not a latency"),
        (json.dumps([{**MLPERF, "Power_Result": -1}]), 1, "Power_Result", "is below 0"),
        (json.dumps([{**MLPERF, "Nodes": 10**12}]), 1, "world_size", "above the largest"),
    ],
    ("optimum", "benchmark.json"): [
        (document(OPTIMUM, report=...), 1, "report", "it is missing"),
        (document(OPTIMUM, report={}), 28, "forward", "the report has none"),
        (document(FORWARD, report__forward__latency__unit="weeks"), 16, "unit", "not a known unit"),
        (document(FORWARD, report__forward__latency__values=["x"]), 17, "values", "x' is among"),
        (document(FORWARD, report__forward__latency__values=[None]), 17, "values", "None' is"),
        (document(FORWARD, report__forward__latency__values=[10**400, 1]), 17, "values", "1000"),
        (document(FORWARD, report__forward__latency__values=[1e300, 1]), 13, "samples", "above"),
        (document(OPTIMUM, config__environment__gpu=5), 21, "gpu", "a list"),
        (document(OPTIMUM, config__environment__gpu=[5]), 21, "gpu", "names"),
    ],
    ("benchmark-app", "benchmark_report.json"): [
        (document(APP, execution_results__throughput="fast"),
         23, "throughput", "'fast' is not a number"),
    ],
    ("pytest-benchmark", "a.json"): [
        (document(PYTEST, datetime="soon"), 40, "datetime", "not a date"),
        (document(PYTEST, benchmarks__0__stats__data=["x"]), 33, "data", "numbers were expected"),
        (document(PYTEST, benchmarks__0__stats__data=[True, 1]), 33, "data", "True' is among"),
        (document(PYTEST, benchmarks__0__stats__data=[1e306, 1]), 15, "samples", "above"),
    ],
    ("guide-csv", "b.csv"): [
        (GUIDE.replace("float16", "float3"), 2, "dtype", "not a known precision"),
        (GUIDE.replace("(8, 3, 224, 224)", "(8, x"), 2, "input_shape", "shape"),
        (GUIDE.replace("4.1,", "-4.1,"), 2, "latency_mean_ms", "not above 0"),
        (TRUTH, 2, "compiled", "'maybe' is not true or false"),
        (GUIDE.replace("(8, 3, 224, 224)", "(" * 3000), 2, "input_shape", "is not a shape"),
    ],
    ("json", "r.json"): [
        ('{"results": [\n{"model": "a"}]}', 2, "result_id", "it is missing"),
        ("{}", 1, "results", "it is missing"),
        ('{\n"schema": 99, "results": []}', 2, "schema", "newer accelbench (99"),
        ('{"schema": "urn:accelbench:result:2", "results": []}',
         1, "schema", "newer accelbench (2"),
        ('{"schema": "x", "results": []}', 1, "schema", "'x', and"),
        (results(sampling={"step": {"timing": "guessed"}}), 4, "sampling", "is not one of each"),
        (results(sampling={"step": {"steps": [0]}}), 4, "sampling", "above 0"),
        (results(sampling={"step": 5}), 4, "sampling", "objects were expected"),
        (results(conditions=[1]), 4, "conditions", "not a JSON object"),
    ],
    ("csv", "r.csv"): [
        (table(seed="9223372036854775808"), 2, "seed", "not a whole number of 64 bits"),
    ],
}  # fmt: skip
BAD = [Bad(*place, *told) for place, all_of_it in _BAD.items() for told in all_of_it]
BAD += [
    Bad(form, f"r.{form}", made(**{name: value}), line, name, why)
    for form, made, line in (("json", results, 4), ("csv", table, 2))
    for name, value, why in IMPOSSIBLE
]
