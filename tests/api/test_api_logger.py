"""BenchmarkLogger: the guide's CSV, read back as a DataFrame."""

from __future__ import annotations

import math
import sys
from typing import Any

import pandas as pd
import pytest

from accelbench import BenchmarkLogger
from accelbench.core.errors import MissingExtraError, StoreError, UsageError
from accelbench.exchange.guide_csv import COLUMNS, guide_result

NAME = "benchmark_results_20250101_120000.csv"


def result(batch: int = 1, **more: Any) -> dict[str, Any]:
    body = {
        "result_id": f"r{batch}", "model": "resnet-50", "runtime": "pytorch", "hardware": "cpu",
        "device": "cpu:0", "precision": "fp32", "batch_size": batch,
        "input_shape": f'{{"pixel_values": [{batch}, 3, 224, 224]}}', "status": "ok",
        "latency_p50_ms": 0.1 + batch, "latency_p95_ms": None, "throughput": 10.0,
        "memory_peak_mb": 100.5, "started_at": "2025-01-01T12:00:00.000000Z", **more,
    }  # fmt: skip
    return guide_result(body, "resnet50", "abc")


def test_what_is_logged_is_read_back(tmp_path):
    logger = BenchmarkLogger(tmp_path / "new" / "folder", NAME)
    logger.log_result(result(1))
    logger.log_results([result(8), result(32, status="failed", message='a "quoted", text\nof two')])
    frame = BenchmarkLogger(
        output_dir=str(tmp_path / "new" / "folder"), filename=NAME
    ).read_results()
    assert tuple(frame.columns) == COLUMNS
    assert list(frame["batch_size"]) == [1, 8, 32]
    assert list(frame["latency_p50_ms"]) == [1.1, 8.1, 32.1]
    assert frame["latency_p95_ms"].isna().all()
    assert frame["compilation_time_ms"].isna().all()
    assert list(frame["input_shape"]) == [(b, 3, 224, 224) for b in (1, 8, 32)]
    assert set(frame["dtype"]) == {"float32"}
    assert frame["message"][2] == 'a "quoted", text<U+000A>of two'
    assert math.isclose(frame["memory_mb"].mean(), 100.5)


def test_without_a_name_the_first_result_begins_a_dated_file(tmp_path, monkeypatch):
    monkeypatch.setattr("accelbench.api.running.time.time", lambda: 1735732800.0)
    loggers = [BenchmarkLogger(tmp_path), BenchmarkLogger(tmp_path)]
    assert [logger.path for logger in loggers] == [None, None]
    for batch, logger in enumerate(loggers, 1):
        logger.log_result(result(batch))
    assert [logger.path for logger in loggers] == [
        tmp_path / NAME,
        tmp_path / NAME.replace(".csv", "-2.csv"),
    ]
    assert [list(logger.read_results()["batch_size"]) for logger in loggers] == [[1], [2]]


def test_only_what_is_missing_is_missing(tmp_path):
    """A result of one's own may have fewer keys, or others."""
    logger = BenchmarkLogger(tmp_path)
    logger.log_result({"framework": "mine", "batch_size": 4, "something": "else"})
    (row,) = logger.read_results().to_dict("records")
    assert (row["framework"], row["batch_size"]) == ("mine", 4)
    assert all(pd.isna(row[name]) for name in COLUMNS if name not in ("framework", "batch_size"))


def test_a_file_of_other_columns_is_not_added_to(tmp_path):
    path = tmp_path / "theirs.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UsageError, match="other columns"):
        BenchmarkLogger(tmp_path, "theirs.csv").log_result(result())
    assert path.read_text() == "a,b\n1,2\n"
    assert list(BenchmarkLogger(tmp_path, "theirs.csv").read_results()["b"]) == [2]


def test_reading_what_is_not_there_says_what_is(tmp_path):
    with pytest.raises(UsageError, match="has written nothing yet"):
        BenchmarkLogger(tmp_path).read_results()
    with pytest.raises(UsageError, match="That folder has no CSV"):
        BenchmarkLogger(tmp_path, NAME).read_results()
    BenchmarkLogger(tmp_path, "other.csv").log_result(result())
    with pytest.raises(UsageError, match=r"There is no file .*12\d*\.csv.* other\.csv"):
        BenchmarkLogger(tmp_path, NAME).read_results()


def test_a_filename_is_a_plain_one(tmp_path):
    with pytest.raises(UsageError, match="not a plain file name"):
        BenchmarkLogger(tmp_path, "../x.csv")


def test_a_place_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="something else exists"):
        BenchmarkLogger(tmp_path / "file").log_result(result())


def test_reading_without_pandas_names_the_extra(tmp_path, monkeypatch):
    logger = BenchmarkLogger(tmp_path)
    logger.log_result(result())  # writing needs no pandas
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="accelbench setup frames"):
        logger.read_results()
