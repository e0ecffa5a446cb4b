"""What a command of the map has to come to: figures, files and words, or a refusal."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from guides_map import lines_with
from map_commands import places_in, prints_results
from map_trials import Tried

from accelbench.core.errors import EXIT_INCONCLUSIVE

#: How a command may end: three iterations on a busy machine may well differ by more than a
#: tenth, and a check that says that one launch does not tell works. That something was judged at
#: all is seen in its table.
ENDS = {"check": (0, 1, 4)}
#: What no result without a figure may hold.
FIGURES = ("latency_mean_ms", "latency_p50_ms", "throughput", "memory_peak_mb", "sample_count")


def check_results(shown: str, places: set[str], present: set[str]) -> None:
    """A run is no proof where nothing ran: on each platform that is here there must be figures."""
    results = json.loads(shown)["results"]
    assert results
    for result in results:
        assert result["status"] in {"ok", "unsupported"}, result["message"]
        if result["status"] == "ok":
            untimed = result["latency_mean_ms"] is None  # where nothing but outputs was asked for
            assert result["nulls"]["latency_mean_ms"] if untimed else result["latency_mean_ms"] > 0
        else:
            check_refusal(result)
    measured = {result["hardware"] for result in results if result["status"] == "ok"}
    assert (places & present) - measured == set()
    assert measured or not places & present


def check_refusal(result: dict[str, Any]) -> None:
    """It says why and what to do, and has no figure."""
    assert result["reason"]
    assert result["advice"]
    assert [name for name in FIGURES if result[name] is not None] == []


def check_what_came(command: str, tried: Tried, present: set[str]) -> None:
    """It ended well, and wrote and showed what the map says."""
    said, done = " ".join(tried.words), tried.done
    ended = ENDS.get(tried.words[0], (0,))
    if prints_results(command) and "unmeasured" in json.loads(done.stdout):
        ended = (3,)  # it names a platform that is not here
    if "--verify" in tried.words and done.stderr.rstrip().endswith("· unusable"):
        # What was measured is too unsteady to choose by, as three iterations on a busy machine
        # may be: then nothing is known, and that is how it ends.
        ended = (*ended, EXIT_INCONCLUSIVE)
    if tried.words[0] in ("compare", "history") and "unusable" in done.stderr:
        ended = (*ended, EXIT_INCONCLUSIVE)  # likewise
    assert done.returncode in ended, f"{said}\n{done.stdout}\n{done.stderr}"
    if tried.words[0] == "check":
        # Beside other processes a launch may wait longer than it runs: its times are unusable.
        assert "latency, ms" in done.stdout or "unusable" in done.stdout, done.stdout
    if prints_results(command):
        named = places_in(shlex.join(["accelbench", *tried.words]))
        places = {place.partition(":")[0] for place in named} or {"cpu"}
        if "auto" in places:  # which platform that is depends on what is predicted
            results = json.loads(done.stdout)["results"]
            places = {result["hardware"] for result in results}
        check_results(done.stdout, places, present)
    check_promises(command, tried)


def check_promises(command: str, tried: Tried) -> None:
    """Files that the map says it writes, and words that it prints."""
    said, shown = " ".join(tried.words), (tried.done.stdout + tried.done.stderr).lower()
    for name in lines_with(command, "writes"):
        assert list(tried.folder.glob(name)), f"{said} wrote no {name}"
    for word in lines_with(command, "prints"):
        assert word.lower() in shown, f"{said} does not show {word}"


def check_what_was_refused(command: str, tried: Tried, platform: str) -> None:
    """It ended as a platform that is absent is documented to end, and measured nothing."""
    check_promises(command, tried)
    if not prints_results(command):  # `accelbench hardware`, which answers a question
        assert tried.done.returncode == 0
        assert re.search(rf"^{platform} +no\b", tried.done.stdout, re.MULTILINE)
        assert "Absent, and what would bring it" in tried.done.stdout
        return
    assert tried.done.returncode == 3
    assert "Nothing was measured on " + platform in tried.done.stderr
    shown = json.loads(tried.done.stdout)
    lacking = shown["unmeasured"]
    assert ("hardware", platform) in [(one["kind"], one["name"]) for one in lacking]
    assert all(f"{platform} is not present" in one["why"] for one in lacking)
    for result in shown["results"]:
        assert (result["status"], result["reason"]) == ("unsupported", "hardware_absent")
        check_refusal(result)
