"""The example's runtime, installed as a package of its own: measured, verified, in every table."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "new-runtime"
PIP_INSTALL = [sys.executable, "-m", "pip", "install", "--quiet"]
PIP_INSTALL += ["--no-index", "--no-deps", "--no-build-isolation"]


def test_a_runtime_of_another_package_is_one_as_any_other(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    shutil.copytree(EXAMPLE, source)
    install = [*PIP_INSTALL, "--target", str(target), str(source)]
    subprocess.run(install, check=True, capture_output=True, timeout=240)
    path = os.pathsep.join(filter(None, (str(target), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "ACCELBENCH_CACHE": str(tmp_path / "cache")}

    def said(*words):
        done = subprocess.run(
            [sys.executable, "-m", "accelbench", *words, "--json"],
            capture_output=True,
            text=True,
            timeout=240,
            env=environment,
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    command = "run resnet-tiny --framework onnxreference --hardware cpu --batch-sizes 1"
    found = said(*command.split(), "--iterations", "3", "--warmup", "1", "--threads", "1")
    (row,) = found["results"]
    assert (row["status"], row["verification"]) == ("ok", "ok")
    assert row["verification_error"] < row["verification_tolerance"]
    assert row["latency_p50_ms"] > 0
    assert row["evidence"]["engine"].startswith("onnx ")
    (model,) = said("matrix")["models"].values()
    assert model["hardware_compatibility"]["cpu"]["runtimes"] == ["onnxreference"]
    listed = said("hardware", "cpu")["hardware"]["cpu"]["runtimes"]
    assert "onnxreference" in {one["name"] for one in listed}
