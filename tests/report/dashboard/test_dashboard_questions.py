"""Recommend and predict as forms: what the command says, and nothing that a visitor slips in."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from barriers import barriers
from chrome import Chrome
from dashboard_world import served
from starlette.testclient import TestClient

from accelbench.core.errors import UsageError
from accelbench.core.processes import ProcessEnd
from accelbench.report.dashboard.questions import pages as question_pages
from accelbench.report.dashboard.questions.forms import PREDICT, RECOMMEND
from accelbench.report.dashboard.questions.jobs import BusyError, QuestionJobs
from accelbench.store.database import Database


def commanded(database: Database, *words: str) -> Any:
    line = [sys.executable, "-P", "-m", "accelbench", *words, "--db", str(database.path), "--json"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=dict(os.environ))
    return json.loads(done.stdout)


def asked(site: TestClient, address: str) -> Any:
    """The answer, for which a page comes again until it is there."""
    while True:
        answer = site.get(address)
        if answer.status_code != 202:
            return answer
        assert answer.headers["refresh"] == "1"
        assert "Being worked on" in answer.text


def rows(page: str) -> list[dict[str, str]]:
    """The table of figures, by its headers."""
    table = page.partition("Figures of the answer")[2].partition("</table>")[0]
    heads = re.findall(r"<th scope=\"col\"[^>]*>(.*?)</th>", table)
    lines = re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2], re.DOTALL)
    return [
        dict(zip(heads, re.findall(r"<t[hd][^>]*><bdi>(.*?)</bdi>", line), strict=True))
        for line in lines
    ]


def test_recommend_answers_with_the_figures_of_the_command(
    site: TestClient, stored: Database
) -> None:
    page = asked(site, "/recommend?model=bert-tiny&batch-size=1").text
    answer = commanded(stored, "recommend", "bert-tiny", "--batch-size", "1")
    scores = answer["recommendations"][0]["all_scores"]
    known = {row["Hardware"]: row for row in rows(page)}
    assert set(known) == {name for name, score in scores.items() if score["compatible"]}
    assert (known["cuda"]["Latency, ms"], known["cuda"]["Statistic"]) == ("1.00", "mean")
    assert known["cpu"]["Throughput"] == f"{scores['cpu']['predictions']['throughput']:.0f}"
    assert known["rocm"]["Rests on"] == "rule: medium; figures predicted"
    said = page.partition('<pre class="terminal"')[2].partition("</pre>")[0].splitlines()
    assert said[0].endswith(">bert-tiny at batch 1: take cuda")
    assert any(line.split()[:1] == ["cuda"] for line in said)
    assert "U+000A" not in page
    assert "accelbench recommend bert-tiny --batch-size 1 --db" in page
    assert site.get("/recommend.json?model=bert-tiny&batch-size=1").json() == answer


def test_limits_are_kept_as_the_command_keeps_them(site: TestClient, stored: Database) -> None:
    page = asked(site, "/recommend?model=bert-tiny&max-latency-ms=20").text
    answer = commanded(stored, "recommend", "bert-tiny", "--max-latency-ms", "20")
    fits = answer["recommendations"][0]["fits"]
    assert [row["Hardware"] for row in rows(page)] == [one["hardware"] for one in fits]
    assert "under --max-latency-ms 20" in page
    none = asked(site, "/recommend?model=bert-tiny&max-latency-ms=0.0001")
    assert none.status_code == 200
    assert "The answer is no" in none.text


def test_predict_answers_with_the_figures_of_the_command(
    site: TestClient, stored: Database
) -> None:
    page = asked(site, "/predict?model=bert-tiny&hardware=cpu&batch-sizes=1,64").text
    answer = commanded(stored, "predict", "bert-tiny", "--hardware", "cpu", "--batch-sizes", "1,64")
    shown = [(row["Engine"], row["Batch"], row["Rests on"]) for row in rows(page)]
    told = [(p["runtime"], str(p["batch_size"]), p["basis"]) for p in answer["predictions"]]
    assert shown == told
    assert "Predicted, not measured; learned from" in page


def test_a_refusal_of_the_command_is_its_sentence(site: TestClient) -> None:
    answer = asked(site, "/recommend?model=bert-tiny&precision=fp3")
    assert answer.status_code == 400
    said = re.findall(r'role="alert">(.*?)</p>', answer.text)
    assert len(said) == 1
    assert "fp3" in said[0]
    assert "Traceback" not in answer.text


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The words of each command that would have been started."""
    words: list[list[str]] = []

    def run(_: str, given: list[str], __: float) -> ProcessEnd:
        words.append(given)
        return ProcessEnd(0, "{}", "")

    monkeypatch.setattr(question_pages.processes, "run_python", run)
    return words


@pytest.mark.parametrize(
    "address",
    [
        "/predict?model=/etc/passwd",
        "/predict?model=model.onnx",
        "/recommend?model=--verify",
        "/recommend?mode=--verify&task=training",
        "/predict?mode=inference",
        "/recommend?hardware=cpu",
    ],
)
def test_nothing_is_started_for_what_is_no_question(
    site: TestClient, started: list[list[str]], address: str
) -> None:
    assert asked(site, address).status_code == 400
    assert started == []


def test_words_of_a_visitor_are_values_and_no_options(
    site: TestClient, started: list[list[str]]
) -> None:
    asked(site, "/recommend?model=bert-tiny&hardware=--verify&verify=1&output=/tmp/x")
    for words in started:
        assert words[-2:] == ["--", "bert-tiny"]
        assert "--hardware=--verify" in words
        assert not [word for word in words if word.startswith(("--verify", "--output"))]
    assert [("--json" in words) for words in started] == [True, False]


def test_a_page_without_a_question_is_its_form(site: TestClient, started: list[list[str]]) -> None:
    for form in (RECOMMEND, PREDICT):
        page = site.get(f"/{form.command}").text
        assert started == []
        for field in form.every:
            assert f'<label for="{field.name}">' in page


def test_questions_wait_for_each_other_and_too_many_are_refused() -> None:
    jobs, begun, go = QuestionJobs[int](), threading.Semaphore(0), threading.Event()

    def slow() -> int:
        begun.release()
        go.wait(30)
        return 7

    first = jobs.of("a", slow)
    assert jobs.of("a", slow) is first
    others = [jobs.of(name, slow) for name in "bcd"]
    assert begun.acquire(timeout=30)
    assert not begun.acquire(blocking=False)  # one at a time
    with pytest.raises(BusyError, match="Other questions"):
        jobs.of("e", slow)
    go.set()
    assert [job.result(30) for job in (first, *others)] == [7] * 4


def test_what_was_lost_is_asked_again_and_a_slip_is_not() -> None:
    jobs = QuestionJobs[int]()

    def fails(error: Exception) -> Callable[[], int]:
        def work() -> int:
            raise error

        return work

    with pytest.raises(UsageError):
        jobs.of("slip", fails(UsageError("No."))).result(30)
    with pytest.raises(UsageError):
        jobs.of("slip", lambda: 1).result(30)
    with pytest.raises(OSError, match="full"):
        jobs.of("lost", fails(OSError("full"))).result(30)
    assert jobs.of("lost", lambda: 1).result(30) == 1


@pytest.fixture(scope="module")
def address(stored: Database) -> Iterator[str]:
    with served(stored) as one:
        yield one


@pytest.mark.parametrize(("scheme", "wide"), [("light", 400), ("dark", 1280)])
def test_a_form_and_its_answer_leave_nobody_out(
    tab: Chrome, axe: str, address: str, scheme: Any, wide: int
) -> None:
    tab.look(scheme, wide)
    for at in ("/recommend?model=bert-tiny", "/predict"):
        urllib.request.urlopen(f"{address}/recommend.json?model=bert-tiny", timeout=240).close()
        tab.go(f"{address}{at}")
        assert tab.complaints() == [], at
        assert barriers(tab, axe) == [], at
        assert tab.js("document.documentElement.scrollWidth - window.innerWidth") <= 0, at
