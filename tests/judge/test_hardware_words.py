"""`platform:device` names the same results in SQL as in Python."""

import duckdb
import pytest

from accelbench.judge.filters import is_named, named_sql

ROWS = [
    {"hardware": "cuda", "device_name": "NVIDIA GeForce RTX 4090", "device": "cuda:0"},
    {"hardware": "cuda", "device_name": "NVIDIA GeForce RTX 4090 D", "device": "cuda:1"},
    {"hardware": "cuda", "device_name": "100%_card", "device": None},
    {"hardware": "openvino", "device_name": "A processor", "device": "cpu"},
    {"hardware": "openvino", "device_name": "Arc: the second", "device": "gpu"},
    {"hardware": "cpu", "device_name": None, "device": None},
    {"hardware": "rocm", "device_name": "MI300X", "device": "rocm:0"},
]


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("cuda", [0, 1, 2]),
        ("cpu", [5]),
        ("cuda:rtx 4090", [0, 1]),
        ("cuda:4090", [0, 1]),
        ("cuda:=NVIDIA GeForce RTX 4090", [0]),
        ("cuda:=nvidia", []),
        ("cuda:1", [1]),
        ("cuda:0%_c", [2]),
        ("cuda:_", [2]),
        ("cuda:%", [2]),
        ("openvino:cpu", [3]),
        ("openvino:gpu", [4]),
        ("openvino:arc: the", [4]),
        ("rocm:mi300", [6]),
        ("cuda:mi300", []),
        ("cpu:", [5]),
    ],
)
def test_a_word_names_the_same_results_in_sql_and_in_python(word, found):
    with duckdb.connect() as asked:
        asked.execute("CREATE TABLE t (n INT, hardware TEXT, device_name TEXT, device TEXT)")
        for number, row in enumerate(ROWS):
            asked.execute("INSERT INTO t VALUES (?, ?, ?, ?)", [number, *row.values()])
        sql = f"SELECT n FROM t WHERE {named_sql(word)} ORDER BY n"
        assert [n for (n,) in asked.execute(sql, [word]).fetchall()] == found
    assert [n for n, row in enumerate(ROWS) if is_named(row, word)] == found
