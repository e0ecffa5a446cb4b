"""A metric is one entry: what is judged, drawn over time and asked for knows it by that alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("made_up_metric.py")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("metric")
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_metric(made):
    assert "first-token" in "".join(made["help"].split())  # a line may end within it
    assert "first-token" in made["history"]
    assert "+200" in made["history"].replace(" ", "")
    # A check judges it beside the others.
    assert "first-token, ms" in made["check"]
    figures = {one["metric"]: one for one in json.loads(made["json"])["questions"][0]["figures"]}
    assert figures["first-token"]["answer"] == "worse"
    assert figures["latency"]["answer"] != "worse"
