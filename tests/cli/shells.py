"""accelbench as it is started: in a process of its own in a folder of its own, or in this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from accelbench.cli import main
from warm_start import warm_templates

SCRIPTED = ("--framework", "scripted", "--hardware", "cpu")
QUICK = (*SCRIPTED, "--iterations", "5", "--warmup", "1")


def ended(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    """The exit code of the program run in this process."""
    monkeypatch.setattr(sys, "argv", ["accelbench", *map(str, words)])
    try:
        main.main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


class Command:
    """One command run in this process: arguments in; exit code, output and errors out."""

    def __init__(
        self,
        name: str,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        schema: Mapping[str, Any] | None = None,
    ) -> None:
        self._name, self._schema = name, schema
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        code = ended(self._monkeypatch, self._name, *arguments)
        out, err = self._capsys.readouterr()
        return code, out, err

    def json(self, *arguments: object) -> Any:
        """The document of a command that ends well."""
        code, out, err = self(*arguments, "--json")
        assert code == 0, err
        found = json.loads(out)
        if self._schema is not None:
            jsonschema.validate(found, self._schema)
        return found


class Shell:
    """A folder of its own, and `accelbench run` started in it, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        # Beside the folder: a socket's path has to be short.
        self.temporary = Path(tempfile.mkdtemp(prefix="t", dir=folder.parent))
        assert len(str(self.temporary)) <= 70, "nothing would be looked for in there"
        self.script()
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("ACCELBENCH")},
            "ACCELBENCH_SCRIPT": str(folder / "script.json"),
            "TMPDIR": str(self.temporary),
        }

    def script(self, **script: Any) -> None:
        (self.folder / "script.json").write_text(json.dumps({"step_ns": 1_000_000, **script}))

    def start(self, *words: str, **more: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "accelbench", "run", *words],
            cwd=self.work,
            env={**self.environment, **more.pop("env", {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            **more,
        )

    def __call__(self, *words: str, code: int = 0, **more: Any) -> subprocess.CompletedProcess[str]:
        done = self.run(*words, **more)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stdout + done.stderr
        assert not self.left_behind()
        return done

    def run(self, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """The command from its start to its end, however it ends."""
        process = self.start(*words, **more)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def left_behind(self) -> list[Path]:
        """torch keeps a folder of its own there; ours are all gone."""
        return list(self.temporary.glob("accelbench-*"))

    def refused(self, *words: str, code: int, **more: Any) -> str:
        """What is said by a command that is refused: one line, nothing measured or written."""
        before = self.listing()
        done = self(*words, code=code, **more)
        assert done.stdout == ""
        lines = done.stderr.splitlines()
        assert len(lines) == 1, done.stderr
        assert lines[0].startswith("accelbench: ")
        assert self.listing() == before
        return lines[0]

    def listing(self) -> dict[str, bytes]:
        return {
            str(p.relative_to(self.work)): p.read_bytes()
            for p in sorted(self.work.rglob("*"))
            if p.is_file()
        }

    def journals(self) -> list[Path]:
        return sorted(self.work.rglob("*.jsonl"))


class Here(Shell):
    """The same in the process of the tests, but for what is asked of a process (`start`, `env`)."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        super().__init__(folder)
        self._monkeypatch, self._capfd = monkeypatch, capfd
        for name in [name for name in os.environ if name.startswith("ACCELBENCH")]:
            monkeypatch.delenv(name)
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("COLUMNS", "80")  # where a process of its own has no terminal
        monkeypatch.setattr(tempfile, "tempdir", str(self.temporary))
        monkeypatch.chdir(self.work)

    def run(self, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        if more:
            return super().run(*words, **more)
        self._capfd.readouterr()
        with warm_templates():
            code = ended(self._monkeypatch, "run", *words)
        return subprocess.CompletedProcess(words, code, *self._capfd.readouterr())
