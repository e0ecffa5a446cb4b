"""Each quality is said in a phrase: “fixed” told a stranger nothing."""

import io

from accelbench.core.unusable_reasons import QUALITY_TEXTS
from accelbench.core.vocabulary import Quality
from accelbench.present.terminal.summary import print_summary

ROW = {
    "model": "bert-tiny", "runtime": "pytorch", "hardware": "cpu", "precision": "fp32",
    "batch_size": 1, "status": "ok", "latency_p50_ms": 8.0, "launch": 0,
}  # fmt: skip


def test_qualities():
    assert set(QUALITY_TEXTS) == set(Quality)
    # A summary says what fixed is where a figure is fixed.
    said = {}
    for quality in (Quality.FIXED, Quality.CONVERGED):
        stream = io.StringIO()
        print_summary([{**ROW, "quality": str(quality)}] * 2, stream)
        said[quality] = " ".join(stream.getvalue().split())
    assert said[Quality.FIXED].count("fixed: the requested number of samples") == 1
    assert "the requested number" not in said[Quality.CONVERGED]
