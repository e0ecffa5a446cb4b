"""Readers and throw-away processes: missing, failing, hanging, chattering."""

import sys

import pytest

from accelbench.hardware.common import (
    ProbeFailedError,
    ProbeTimeoutError,
    SystemFiles,
    ToolMissingError,
    filter_visible,
    number,
    probe_in_process,
    run_command,
)


def test_files_that_cannot_be_read_are_none(tmp_path):
    files = SystemFiles()
    (tmp_path / "a").write_text(" 12\n")
    assert files.text(str(tmp_path / "a")) == "12"
    assert files.text(str(tmp_path / "missing")) is None
    assert files.text(str(tmp_path)) is None
    assert files.names(str(tmp_path)) == ["a"]
    assert files.names(str(tmp_path / "missing")) == []


def test_commands_and_numbers():
    with pytest.raises(ToolMissingError, match="no-such-tool"):
        run_command(["no-such-tool"], 5)
    code = "import sys; print('first', file=sys.stderr); sys.exit('the driver is too old')"
    with pytest.raises(ProbeFailedError, match="the driver is too old"):
        run_command([sys.executable, "-c", code], 30)

    assert [number(t) for t in ("12", "0x1ae0", "max", "", None)] == [12, 0x1AE0, None, None, None]


def test_a_command_that_hangs_is_killed_with_its_children():
    code = (
        "import subprocess, sys, time;"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        "time.sleep(600)"
    )
    # Its child holds the pipe open: waiting for the end of output would take 600 s, more
    # than a test may.
    with pytest.raises(ProbeTimeoutError, match="did not answer within"):
        run_command([sys.executable, "-c", code], 0.5)


def test_a_throw_away_process_may_chatter(tmp_path, monkeypatch):
    (tmp_path / "chatty_probe.py").write_text(
        "print('banner')\ndef main():\n    print('more', end='')\n    return {'cards': [1, 2]}\n"
    )
    (tmp_path / "mute_probe.py").write_text("import os\ndef main():\n    os._exit(0)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "json.py").write_text("raise SystemExit('the user\\'s own json.py')\n")
    monkeypatch.chdir(tmp_path / "user")
    assert probe_in_process("chatty_probe", 60) == {"cards": [1, 2]}
    with pytest.raises(ProbeFailedError, match="no readable answer"):
        probe_in_process("mute_probe", 60)


CARDS = [{"uuid": "GPU-aa11"}, {"uuid": "GPU-ab22"}, {"uuid": "GPU-cc33"}]


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        (None, [0, 1, 2]),
        ("2,0", [2, 0]),
        ("GPU-cc,GPU-aa11", [2, 0]),
        ("GPU-a", []),  # the beginning of two
        ("0,9,1", [0]),  # what follows a bad entry is ignored
        ("0,0", [0]),
        ("", []),
        ("-1", []),
    ],
)
def test_visible_devices(wanted, chosen):
    assert filter_visible(CARDS, wanted) == [CARDS[i] for i in chosen]
