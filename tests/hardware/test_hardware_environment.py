"""What a run records of its surroundings, and that nothing heavy is imported for it."""

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError

from hardware_records import XEON_V2, RecordedCommands, RecordedFiles

from accelbench.hardware.environment import describe_environment, package_versions, read_git_state


def test_limits_and_machine_from_records(tmp_path):
    said = describe_environment(tmp_path, RecordedFiles(XEON_V2), RecordedCommands({}))
    if sys.platform == "linux":
        assert said["cpu"] == "Intel Xeon Platinum 8480+"
        assert said["limits"] == {
            "cpus": 1.5,
            "affinity": said["limits"]["affinity"],
            "memory_bytes": 2 * 2**30,
            "cgroup": "v2",
        }
        assert said["governor"] == "powersave"
        assert said["effective_memory"] == 2 * 2**30
    assert said["git"] is None
    assert json.loads(json.dumps(said)) == said


def test_only_installed_packages_are_listed():
    def version_of(name):
        if name == "torch":
            return "2.13.0"
        raise PackageNotFoundError(name)

    assert package_versions(version_of, ("accelbench", "torch")) == {"torch": "2.13.0"}


def repository(folder):
    def run(*words):
        subprocess.run(
            ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words],
            check=True,
            capture_output=True,
        )

    run("init", "-q", "-b", "trunk")
    (folder / "file").write_text("one")
    run("add", "file")
    run("commit", "-q", "-m", "first")
    return run


def test_git_tells_commit_branch_and_changes(tmp_path):
    run = repository(tmp_path)
    clean = read_git_state(tmp_path)
    assert clean["branch"] == "trunk"
    assert len(clean["commit"]) == 40
    assert clean["dirty"] is False
    (tmp_path / "file").write_text("two")
    assert read_git_state(tmp_path)["dirty"] is True
    run("checkout", "-q", "--detach")
    assert read_git_state(tmp_path)["branch"] is None


def test_outside_a_work_tree_there_is_no_git(tmp_path):
    assert read_git_state(tmp_path) is None
    assert read_git_state(tmp_path, RecordedCommands({})) is None


def test_nothing_heavy_is_imported_to_look_around():
    code = (
        "import sys\n"
        "from accelbench.hardware.detect import detect_all\n"
        "from accelbench.hardware.environment import describe_environment\n"
        "from accelbench.hardware.machine import take_snapshot\n"
        "import accelbench.hardware.hostmemory, accelbench.hardware.telemetry\n"
        "import accelbench.cli.commands.hardware\n"
        "take_snapshot(), describe_environment(), detect_all()\n"
        "heavy = {'torch', 'transformers', 'pandas', 'duckdb', 'pyarrow', 'numpy', 'rich',\n"
        "         'openvino', 'onnxruntime', 'jax', 'pynvml', 'amdsmi'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"
