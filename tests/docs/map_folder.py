"""Where commands of the map are run: the files that they name, and what was measured before."""

from __future__ import annotations

from pathlib import Path

from map_commands import quickened
from map_running import in_process

MODELS_FILE = """{
  "bert_tiny": {
    "name": "prajjwal1/bert-tiny", "family": "embedding", "size": "tiny", "modality": "text"
  }
}
"""

#: In the documents' own shapes.
CONFIG = """{
  "selection_criteria": {"inference": {"latency_weight": 0.4, "throughput_weight": 0.3}},
  "hardware_preferences": {
    "cpu": {"cost_factor": 1.0, "availability_factor": 1.0, "power_factor": 0.8}
  },
  "batch_size_thresholds": {"small": 1, "medium": 8, "large": 32}  // as the guide has them
}
"""
MATRIX = """| Model Family | CUDA | CPU | OpenVINO |
| --- | --- | --- | --- |
| Embedding (BERT) | ✅ High | ✅ Medium | ⚠️ Low |
"""


def furnish(folder: Path) -> None:
    """The files that the documents' commands name: models, images in classes, what chooses."""
    from PIL import Image

    (folder / "my_config.json").write_text(CONFIG, encoding="utf-8")
    (folder / "CLAUDE.md").write_text(MATRIX, encoding="utf-8")
    (folder / "lake").mkdir()
    (folder / "path" / "to").mkdir(parents=True)
    (folder / "path" / "to" / "models.json").write_text(MODELS_FILE)
    for number, name in enumerate(("cat", "dog")):
        images = folder / "data" / "imagenet100" / name
        images.mkdir(parents=True)
        for i in range(3):
            Image.new("RGB", (90, 70), (40 * i, 80 * number, 120)).save(images / f"{i}.png")


#: What looks at stored results is run after something was measured; what they name is there. The
#: newest run has all that the baseline has, so that a check has something to judge.
_NEWEST = (
    "accelbench run bert resnet50 --hardware cpu,openvino:cpu --mode inference,training"
    " --batch-sizes 1,2 --output-dir benchmark_results"
)
BEFORE = (
    "accelbench run bert --hardware cpu",
    "accelbench db export baseline.csv",
    _NEWEST,
    "accelbench db export results.json",
    "accelbench db merge accelbench.duckdb --db benchmark_db.duckdb",
)
LOOKING = ("check", "plot", "report", "dashboard", "recommend", "matrix", "compare", "history")


def prepare(folder: Path) -> None:
    """Measure what the commands that only look at results are then shown."""
    for before in BEFORE:
        done = in_process(folder, *quickened(before))
        assert done.returncode == 0, done.stderr
