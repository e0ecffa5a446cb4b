"""Every snippet of the Benchmarking guide runs with only its import lines changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_api import Machine, scripted_machine

import accelbench

QUICK_START = """
from bench.runner import BenchmarkConfig, run_inference_benchmark, run_benchmark_suite

# Single benchmark
config = BenchmarkConfig(
    framework='pytorch',
    model_name='resnet50',
    batch_sizes=[1, 8, 32, 128],
    warmup_iterations=10,
    measurement_iterations=50
)
results = run_inference_benchmark(config)

# Full suite
all_results = run_benchmark_suite(
    models=['resnet50', 'vit_b_16'],
    frameworks=['pytorch', 'jax'],
    batch_sizes=[1, 8, 32, 128]
)
"""

READING = """
from utils.logging import BenchmarkLogger
import pandas as pd

# Read results
logger = BenchmarkLogger(output_dir='results/raw', filename='benchmark_results_20250101_120000.csv')
df = logger.read_results()

# Filter and analyze
pytorch_resnet = df[(df['framework'] == 'pytorch') & (df['model'] == 'resnet50')]
print(pytorch_resnet[['batch_size', 'latency_p50_ms', 'throughput_ips', 'memory_mb']])
"""

DEEP_DIVE = """
from bench.runner import BenchmarkConfig, run_inference_benchmark

# Test ResNet-50 across many batch sizes
config = BenchmarkConfig(
    framework='pytorch',
    model_name='resnet50',
    batch_sizes=[1, 2, 4, 8, 16, 32, 64, 128],
    warmup_iterations=20,
    measurement_iterations=100
)

results = run_inference_benchmark(config)

# Analyze results
for result in results:
    print(f"Batch {result['batch_size']}: "
          f"{result['latency_p50_ms']:.2f}ms, "
          f"{result['throughput_ips']:.1f} img/s")
"""

DATA_LOADING = """
from utils.data import create_dataloader

# Use ImageNet-100 instead of synthetic data
config = BenchmarkConfig(
    framework='pytorch',
    model_name='resnet50',
    data_source='data/imagenet100'  # Path to dataset
)
"""

DEVICE_SELECTION = """
config = BenchmarkConfig(
    framework='pytorch',
    model_name='resnet50',
    device_prefer='cuda'  # Force CUDA even if MPS available
)
"""

MIXED_PRECISION = """
config = BenchmarkConfig(
    framework='pytorch',
    model_name='resnet50',
    dtype='float16'  # Use FP16 (requires GPU support)
)
"""

ANALYSIS = """
import pandas as pd
import matplotlib.pyplot as plt

# Load results
df = pd.read_csv('results/raw/benchmark_results_20250101_120000.csv')

# Plot latency vs batch size
pytorch_resnet = df[(df['framework'] == 'pytorch') & (df['model'] == 'resnet50')]
plt.plot(pytorch_resnet['batch_size'], pytorch_resnet['latency_p50_ms'])
plt.xlabel('Batch Size')
plt.ylabel('Latency (ms)')
plt.title('ResNet-50 Latency vs Batch Size')
plt.show()
"""

#: 2025-01-01 12:00:00 UTC, when the guide's CSV was written.
GUIDES_MOMENT = 1735732800.0


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with scripted_machine(tmp_path) as made:
        yield made


def run(snippet: str, **names: Any) -> dict[str, Any]:
    """Run a snippet; only the modules that it imports the guide's names from are changed."""
    ours = re.sub(
        r"^from (?:bench|utils)\.\w+ import", "from accelbench import", snippet, flags=re.MULTILINE
    )
    changed = [a for a, b in zip(snippet.splitlines(), ours.splitlines(), strict=True) if a != b]
    assert all(line.startswith("from ") for line in changed)
    namespace: dict[str, Any] = {"__name__": "__main__", **names}
    exec(compile(ours, "snippet", "exec"), namespace)
    return namespace


def measured(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The guide's CSV, of a suite that has more in it than the snippets filter for."""
    monkeypatch.setattr("accelbench.api.running.time.time", lambda: GUIDES_MOMENT)
    accelbench.run_benchmark_suite(
        ["resnet50", "vit_b_16"], ["pytorch", "jax"], [1, 8], measurement_iterations=50
    )
    path = Path("results/raw/benchmark_results_20250101_120000.csv")
    assert path.is_file()
    return path


def test_the_quick_start(machine):
    names = run(QUICK_START)
    assert [r["batch_size"] for r in names["results"]] == [1, 8, 32, 128]
    assert {r["sample_count"] for r in names["results"]} == {50}
    assert [(r["model"], r["framework"], r["status"]) for r in names["all_results"]] == [
        (model, framework, status)
        for model in ("resnet50", "vit_b_16")
        for framework, status in (("pytorch", "ok"), ("jax", "unsupported"))
        for _ in range(4)
    ]
    assert len(list(Path("results/raw").glob("benchmark_results_*.csv"))) == 2


def test_reading_results(machine, monkeypatch, capsys):
    measured(monkeypatch)
    names = run(READING)
    assert len(names["df"]) == 8
    chosen = names["pytorch_resnet"]
    assert list(chosen["batch_size"]) == [1, 8]
    assert list(chosen["latency_p50_ms"]) == pytest.approx([1.0, 8.0])
    assert "throughput_ips" in capsys.readouterr().out


def test_the_single_model_deep_dive(machine, capsys):
    run(DEEP_DIVE)
    lines = [x for x in capsys.readouterr().out.splitlines() if x.startswith("Batch ")]
    assert lines == [
        f"Batch {batch}: {batch:.2f}ms, 1000.0 img/s" for batch in (1, 2, 4, 8, 16, 32, 64, 128)
    ]


def test_custom_data_loading(machine):
    names = run(DATA_LOADING, BenchmarkConfig=accelbench.BenchmarkConfig)
    assert callable(names["create_dataloader"])
    assert names["config"].data_source == "data/imagenet100"


def test_custom_device_selection(machine):
    config = run(DEVICE_SELECTION, BenchmarkConfig=accelbench.BenchmarkConfig)["config"]
    results = accelbench.run_inference_benchmark(config)
    assert {(r["device_type"], r["status"]) for r in results} == {("cuda", "unsupported")}


def test_mixed_precision(machine):
    config = run(MIXED_PRECISION, BenchmarkConfig=accelbench.BenchmarkConfig)["config"]
    config.batch_sizes = [1]
    (result,) = accelbench.run_inference_benchmark(config)
    assert (result["dtype"], result["precision"]) == ("float16", "fp16")


def test_integration_with_analysis(machine, monkeypatch):
    import matplotlib

    matplotlib.use("Agg")  # nothing opens a window here; show() then returns at once
    import matplotlib.pyplot as plt

    measured(monkeypatch)
    plt.close("all")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plt, "show", lambda: None)  # Agg's would warn that it shows nothing
        run(ANALYSIS)
    (axes,) = plt.gcf().axes
    (line,) = axes.lines
    assert list(line.get_xdata()) == [1, 8]
    assert list(line.get_ydata()) == pytest.approx([1.0, 8.0])
    assert axes.get_title() == "ResNet-50 Latency vs Batch Size"
    plt.close("all")
