"""Names of scripts and options in the documents, and the commands that do their work. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

_SCRIPTS = {
    "benchmark_all_key_models": "run --set key",
    "benchmark_visualizer": "plot",
    "create_hardware_model_benchmark_database": "run",
    "enhanced_hardware_benchmark_runner": "run",
    "hardware_model_predictor": "predict",
    "hardware_selector": "recommend",
    "model_benchmark_runner": "run",
    "run_benchmark_suite": "run --set key",
    "run_hardware_benchmark": "run",
    "run_model_benchmarks": "run --set key",
    "runner": "run",
    "setup_benchmark_db": "db init",
    "visualize_benchmarks": "plot",
}
_OPTIONS = {
    "--analyze": "compare",
    "--compare-training-inference": "compare --by mode",
    "--init-db": "db init",
    "--recommendations": "recommend",
    "--status": "db status",
    "--visualize": "plot",
}


def command_for_script(word: str, more: Iterable[str] = ()) -> str | None:
    """Return the command that does a script's work; None if no document names the script.

    Args:
        word: the script, with or without folder and suffix.
        more: the words after it, whose options may mean another command.
    """
    name = PurePosixPath(word.lower().replace("\\", "/")).name.removesuffix(".py")
    command = _SCRIPTS.get(name.replace("-", "_"))
    if command is None:
        return None
    by_option = (known for option in more if (known := command_for_option(option)))
    return f"accelbench {next(by_option, command).removeprefix('accelbench ')}"


def command_for_option(option: str) -> str | None:
    """Return the command that does what an option of a script did; None if it is not known."""
    command = _OPTIONS.get(option.partition("=")[0])
    return None if command is None else f"accelbench {command}"
