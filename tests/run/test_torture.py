"""kill -9 of the conductor, of a template or of a worker at random instants of real runs.

A run is killed again and again and gone on with until it is complete. What a
conductor has announced on its standard output must then be in the journal and
in the database exactly once.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from accelbench.core.facts import RESULT, RUN_STARTED
from accelbench.engines.scripted import SCRIPT_VARIABLE
from accelbench.run.conduct import lifecycle
from accelbench.store.database import Database
from accelbench.store.journal import read

TORTURED = Path(__file__).with_name("tortured.py")
PLANNED = 12  # two models, three batches, two launches
KILLS_A_RUN = 5
LONGEST_LIFE = 1.5  # seconds: about what a run takes from its start to its end


@dataclass
class Figures:
    """What happened, for the report."""

    runs: int = 0
    kills: int = 0
    of: Counter[str] = field(default_factory=Counter)  # conductor, or a process of its
    hit: Counter[str] = field(default_factory=Counter)  # where a conductor stood
    announced: int = 0
    unannounced: int = 0  # durable, killed before it was said
    torn: int = 0
    lost: int = 0
    doubled: int = 0
    statuses: Counter[str] = field(default_factory=Counter)


class Torture:
    """One run, cut off and resumed until it is complete."""

    def __init__(self, folder, source, figures):
        self.folder = folder
        self.temporary = Path(tempfile.mkdtemp(prefix="t"))  # short enough for sockets
        self.database = Database(folder / "t.duckdb")
        self.announced = []
        self._source = source
        self._figures = figures
        script = {"real": True, "step_ns": 2_000_000, "load_ns": 1}
        (folder / "script.json").write_text(json.dumps(script))
        self._environment = {
            **os.environ,
            SCRIPT_VARIABLE: str(folder / "script.json"),
            "TMPDIR": str(self.temporary),
        }

    def run(self, kills):
        for _ in range(kills):
            over = self._live(killed=True)
            self.database.fill()
            if over:
                break  # a run that is complete cannot be hurt any more
        self._live(killed=False)
        self.database.fill()

    def _live(self, killed):
        """One life of a conductor; True where it came to the end of the plan."""
        journals = self.database.journals
        run_id = lifecycle.last_unfinished(journals) or self._begun()
        words = ["resume", str(journals), run_id] if run_id else ["begin", str(journals), "fast"]
        conductor = subprocess.Popen(
            [sys.executable, str(TORTURED), *words],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        victim = self._kill(conductor) if killed else ""
        text, _ = conductor.communicate(timeout=120)
        lines = [line.split() for line in text.splitlines(keepends=True) if line.endswith("\n")]
        self.announced += [line[0] for line in lines if line[0] != "ended"]
        ended = any(line[0] == "ended" for line in lines)
        if victim == "conductor":
            moment = "after" if ended else "while" if lines else "before"
            self._figures.hit[f"{moment} it announced"] += 1
        else:
            assert ended, "a conductor that nobody kills comes to its end"
        return ended

    def _begun(self):
        """A run killed between its last word in the journal and its own end is complete."""
        for path in self.database.journals.glob("*.jsonl"):
            if any(fact.kind == RUN_STARTED for fact in read(path)):
                return path.stem
        return None

    def _kill(self, conductor):
        """Let it live for a random while, then kill it or one of its processes."""
        kind = "nobody: it had ended"
        try:
            conductor.wait(self._source.uniform(0.0, LONGEST_LIFE))
        except subprocess.TimeoutExpired:
            family = psutil.Process(conductor.pid).children(recursive=True)
            if family and self._source.random() < 0.3:
                victim, kind = self._source.choice(family), "template or worker"
            else:
                victim, kind = psutil.Process(conductor.pid), "conductor"
            try:
                victim.kill()
            except psutil.NoSuchProcess:
                kind = "nobody: it had just ended"
            self._figures.kills += 1
        self._figures.of[kind] += 1
        return kind

    def judge(self):
        """Everything announced is there once; everything planned is there; nothing else is left."""
        deadline = time.monotonic() + 10
        while any(self.temporary.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.temporary.rmdir()
        figures = self._figures
        stored = []
        for path in self.database.journals.glob("*.jsonl"):
            stored += [fact.id for fact in read(path) if fact.kind == RESULT]
        rows = self.database.results()
        filled = [row["result_id"] for row in rows]
        figures.runs += 1
        figures.announced += len(self.announced)
        figures.unannounced += len(set(stored) - set(self.announced))
        figures.torn += len(list(self.database.journals.glob("*.torn-*")))
        figures.statuses.update(row["status"] for row in rows)
        for kept in (stored, filled):
            figures.lost += len(set(self.announced) - set(kept))
            figures.doubled += len(kept) - len(set(kept))
        figures.doubled += len(self.announced) - len(set(self.announced))
        assert len(stored) == PLANNED
        assert sorted(stored) == sorted(filled)


def tortured(base, kills, seed):
    source, figures = random.Random(seed), Figures()
    while figures.kills < kills:
        folder = base / str(figures.runs)
        folder.mkdir()
        torture = Torture(folder, source, figures)
        torture.run(min(KILLS_A_RUN, kills - figures.kills))
        torture.judge()
    print(json.dumps(vars(figures)))
    return figures


def check(figures, kills):
    assert figures.kills == kills
    assert figures.lost == 0
    assert figures.doubled == 0
    assert figures.announced + figures.unannounced == figures.runs * PLANNED
    # A killed worker's case is failed; nothing else may have gone wrong.
    assert set(figures.statuses) <= {"ok", "failed"}


def test_ten_kills_lose_and_double_nothing(tmp_path):
    check(tortured(tmp_path, kills=10, seed=20), 10)


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_two_hundred_kills_lose_and_double_nothing(tmp_path):
    check(tortured(tmp_path, kills=200, seed=200), 200)
