"""Names that the documents write for scripts and options name the command that does their work."""

import sys

import pytest

from accelbench.cli import main as program
from accelbench.cli.arguments.shared_options import command_for_option, command_for_script
from accelbench.cli.main import COMMANDS
from accelbench.core.errors import EXIT_USAGE


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("hardware_selector",), "accelbench recommend"),
        (("hardware_selector.py", "--model-family", "embedding"), "accelbench recommend"),
        (("run_hardware_benchmark",), "accelbench run"),
        (("test/benchmark_all_key_models.py",), "accelbench run --set key"),
        (("create_hardware_model_benchmark_database.py", "--analyze"), "accelbench compare"),
        (("run", "bert-tiny", "--analyze"), "accelbench compare"),
        (("--visualize",), "accelbench plot"),
        (("run", "--recommendations"), "accelbench recommend"),
        (("compare", "--visualize"), "accelbench plot"),
    ],
)
def test_an_old_name_is_refused_with_the_command(words, command, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["accelbench", *words])
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert ended.value.code == EXIT_USAGE
    assert f"Use: {command}" in " ".join(capsys.readouterr().err.split())


def test_every_command_that_is_named_exists():
    for script in ("runner", "setup_benchmark_db", "hardware_model_predictor"):
        command = command_for_script(script)
        assert command is not None
        assert command.split()[1] in COMMANDS
    assert command_for_script("run") is None
    assert command_for_script("hardware") is None
    assert command_for_option("--analyse-nothing") is None
