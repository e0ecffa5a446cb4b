"""What `from accelbench import …` gives, and what it costs."""

import subprocess
import sys

import pytest

import accelbench


def test_every_name_is_there_and_is_listed():
    for name in accelbench.__all__:
        assert getattr(accelbench, name) is not None
        assert name in dir(accelbench)


def test_another_name_is_an_error_as_everywhere():
    with pytest.raises(AttributeError, match="no attribute 'benchmarks'"):
        _ = accelbench.benchmarks


def test_the_api_imports_no_engine_and_no_pandas():
    code = (
        "import sys; from accelbench import *;"
        "sys.exit(bool({'torch', 'transformers', 'jax', 'pandas', 'duckdb'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
