"""Recommend and predict as forms: what the command says, and nothing that a visitor slips in."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import typer
from dashboard_world import visitor
from starlette.testclient import TestClient

from accelbench.cli.commands import predict, recommend
from accelbench.core.errors import UsageError
from accelbench.core.processes import ProcessEnd
from accelbench.exchange.prices import load_prices
from accelbench.judge.costs import money
from accelbench.present.dashboard import questions as question_pages
from accelbench.present.dashboard.questions import (
    PREDICT,
    RECOMMEND,
    BusyError,
    QuestionJob,
    QuestionJobs,
    StoppedError,
    answer_sentences,
)
from accelbench.present.dashboard.routes import application
from accelbench.present.dashboard.snapshot import SnapshotKeeper
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
        assert '<noscript><meta http-equiv="refresh"' in answer.text
        assert 'data-part data-live="1"' in answer.text
        assert f'<button type="submit" name="{question_pages.STOP}"' in answer.text


def rows(page: str) -> list[dict[str, str]]:
    """The table of figures, by its headers."""
    table = page.partition("Figures of the answer")[2].partition("</table>")[0]
    heads = re.findall(r"<th scope=\"col\"[^>]*>(.*?)</th>", table)
    lines = re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2], re.DOTALL)
    cells = r"<t[hd][^>]*><(?:bdi|span class=\"none\")>(.*?)</(?:bdi|span)>"
    return [dict(zip(heads, re.findall(cells, line), strict=True)) for line in lines]


def test_recommend_answers_with_the_figures_of_the_command(site, stored):
    page = asked(site, "/recommend?model=bert-tiny&batch-size=1").text
    answer = commanded(stored, "recommend", "bert-tiny", "--batch-size", "1")
    scores = answer["recommendations"][0]["all_scores"]
    known = {row["Hardware"]: row for row in reversed(rows(page))}
    assert set(known) == {name for name, score in scores.items() if score["compatible"]}
    assert (known["cuda"]["Latency, ms"], known["cuda"]["Statistic"]) == ("1.00", "mean")
    assert known["cpu"]["Throughput"] == f"{scores['cpu']['predictions']['throughput']:.0f}"
    assert known["rocm"]["Rests on"] == "predicted"
    assert known["cpu"]["Best with"].endswith("%")
    # Others measured it, and the page says who; what no row has is no empty field.
    assert known["cuda"]["Rests on"] == "measured by others: s"
    assert known["cpu"]["Rests on"] == "measured"
    assert all(value for row in known.values() for value in row.values())
    said = page.partition('<pre class="terminal"')[2].partition("</pre>")[0].splitlines()
    assert ">bert-tiny at batch 1, seq 128: " in said[0]
    assert any("cuda" in line.split()[:2] for line in said)
    assert "U+000A" not in page
    assert "accelbench recommend bert-tiny --batch-size 1 --db" in page
    assert site.get("/recommend.json?model=bert-tiny&batch-size=1").json() == answer


def test_limits_are_kept_as_the_command_keeps_them(site, stored):
    page = asked(site, "/recommend?model=bert-tiny&max-latency-ms=20").text
    answer = commanded(stored, "recommend", "bert-tiny", "--max-latency-ms", "20")
    fits = answer["recommendations"][0]["fits"]
    assert [row["Hardware"] for row in rows(page)] == [one["hardware"] for one in fits]
    assert "under --max-latency-ms 20" in page
    none = asked(site, "/recommend?model=bert-tiny&max-latency-ms=0.0001")
    assert none.status_code == 200
    assert "The answer is no" in none.text


def test_predict_answers_with_the_figures_of_the_command(site, stored):
    page = asked(site, "/predict?model=bert-tiny&hardware=cpu&batch-sizes=1,64").text
    answer = commanded(stored, "predict", "bert-tiny", "--hardware", "cpu", "--batch-sizes", "1,64")
    shown = [(row["Engine"], row["Batch"], row["Rests on"]) for row in rows(page)]
    told = [(p["runtime"], str(p["batch_size"]), p["basis"]) for p in answer["predictions"]]
    assert shown == told
    assert "Predicted, not measured; learned from" in page


def test_a_refusal_of_the_command_is_its_sentence(site):
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

    def run(_: str, given: list[str], __: float, **___: Any) -> ProcessEnd:
        words.append(given)
        (document,) = (word for word in given if word.startswith("--document="))
        Path(document.partition("=")[2]).write_text("{}")
        return ProcessEnd(0, "Said.", "")

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
def test_nothing_is_started_for_what_is_no_question(site, started, address):
    assert asked(site, address).status_code == 400
    assert started == []


def test_of_a_model_that_results_alone_know_it_is_said_how_much_is_measured(
    site, started, monkeypatch
):
    """mobilenet_v2, with 319 configurations in a store, was “no model of the catalogue”."""
    monkeypatch.setattr(question_pages, "in_catalogue", lambda _: False)
    page = asked(site, "/predict?model=bert-tiny")
    assert page.status_code == 400
    assert "its operators are not known" in page.text
    assert re.search(r"[1-9][0-9,]* configurations? of it (is|are) measured here", page.text)
    assert started == []


def test_words_of_a_visitor_are_values_and_no_options(site, started):
    asked(site, "/recommend?model=bert-tiny&hardware=--verify&verify=1&output=/tmp/x")
    for words in started:
        assert words[-2:] == ["--", "bert-tiny"]
        assert "--hardware=--verify" in words
        assert not [word for word in words if word.startswith(("--verify", "--output"))]
    assert len(started) == 1  # one process says both the document and the words


def test_a_page_without_a_question_is_its_form(site, started):
    for form in (RECOMMEND, PREDICT):
        page = site.get(f"/{form.command}").text
        assert started == []
        for field in form.every:
            assert f'<label for="{field.name}">' in page


_OF_SERVERS = (
    "serving", "tables", "measured", "tensor-parallel", "pipeline-parallel", "data-parallel",
    "expert-parallel", "concurrency", "rate", "prefill-workers", "decode-workers",
    "prefill-tensor-parallel",
)  # fmt: skip
#: Options of the commands that no form has, and why.
_NOT_ASKED = {
    "verify": "it measures", "budget": "of --verify", "create-map": "a map is no answer of a page",
    "config": "a file", "matrix-file": "a file", "prices": "the dashboard's own", "db": "likewise",
    "anywhere": "the field of hardware takes all",
    "explain": "shows more of the same", "output": "a file", "json": "the page links it",
    "document": "how the page asks", "matrix": "every model at once", "retrain": "learns the same",
    "suggest-anchors": "no answer of figures", "plot": "a file", "evaluate": "a page of its own",
    "train": "of --evaluate", "test": "of --evaluate", "graph-features": "a file",
    "anchors": "of --evaluate", "target": "of --evaluate", "help": "words",
    "model": "the first field", "model-name": "the first field", "db-path": "as --db",
    "database-path": "as --db",
    **dict.fromkeys(_OF_SERVERS, "of servers, by operator tables"),
}  # fmt: skip


_COMMANDS = {"recommend": recommend.app, "predict": predict.app}


@pytest.mark.parametrize("form", [RECOMMEND, PREDICT])
def test_every_option_that_decides_an_answer_is_a_field(form):
    command = typer.main.get_command(_COMMANDS[form.command])
    fields = {field.option for field in form.every}
    for option in command.params:
        names = {name.lstrip("-") for name in (*option.opts, *option.secondary_opts)}
        if option.param_type_name != "option":
            continue
        assert fields & names or names & _NOT_ASKED.keys(), names
        assert not (fields & names and names & _NOT_ASKED.keys() - {"model"}), names


def test_a_price_is_the_dashboards_own(stored, started, tmp_path):
    prices = tmp_path / "prices.json"
    prices.write_text('{"per_hour": {"cpu": 1.0}}')
    with SnapshotKeeper(stored, prices=load_prices(prices)) as keeper:
        keeper.begin()
        app = application(stored, None, keeper)
        site = TestClient(app, base_url="http://127.0.0.1:8501", follow_redirects=False)
        page = asked(site, "/recommend?model=bert-tiny&max-cost=2")
    (words,) = started
    assert f"--prices={prices}" in words
    assert "--max-cost=2" in words
    assert f"--max-cost 2 --prices {prices}" in page.text


def test_an_answer_begins_with_its_sentence_and_says_what_costs_least(stored, tmp_path):
    prices = tmp_path / "prices.json"
    prices.write_text('{"per_hour": {"cpu": 1.0, "cuda": 90.0}, "currency": "EUR"}')
    with SnapshotKeeper(stored, prices=load_prices(prices)) as keeper:
        keeper.begin()
        app = application(stored, None, keeper)
        site = TestClient(app, base_url="http://127.0.0.1:8501", follow_redirects=False)
        page = asked(site, "/recommend?model=bert-tiny").text
        answer = site.get("/recommend.json?model=bert-tiny").json()["recommendations"][0]
    top = page.partition('<form method="get"')[0]
    assert answer["explanation"].splitlines()[0] in unescape(top)
    cpu = answer["all_scores"]["cpu"]["cost_per_million"]
    assert cpu < answer["all_scores"]["cuda"]["cost_per_million"]
    assert f"Lowest cost of a million items: €{money(cpu)}, cpu" in top
    known = {row["Hardware"]: row["Cost of a million"] for row in reversed(rows(page))}
    assert known["cpu"] == f"€{money(cpu)}"
    assert known["rocm"] == "no data"


def test_the_lowest_cost_is_measured_and_of_like_items():
    def score(cost: float, basis: str = "measured", unit: str = "images/s") -> dict[str, Any]:
        figures = {"throughput_unit": unit, "latency": 1.0}
        return {
            "compatible": True,
            "basis": basis,
            "cost_per_million": cost,
            "predictions": figures,
        }

    def said(**scores: Any) -> list[str]:
        answers = [{"explanation": "Take a.\nElse b.", "all_scores": scores, "currency": "USD"}]
        return answer_sentences({"recommendations": answers})

    assert said(a=score(2.0), b=score(1.0, "extrapolated"), c=score(3.0)) == [
        "Take a.",
        (
            "Lowest cost of a million items: $2.00, a; 2 of 3 candidates have a price and a"
            " measured result."
        ),
    ]
    assert said(a=score(2.0), b=score(1.0, unit="tokens/s")) == ["Take a."]
    assert said(b=score(1.0, "predicted")) == ["Take a."]


def test_rows_of_a_long_answer_are_folded(stored, monkeypatch):
    figures = {"model": "m", "hardware": "cpu", "runtime": "pytorch", "precision": "fp32"}
    figures |= dict.fromkeys(("latency_low_ms", "latency_high_ms", "throughput", "memory_mb"), 1.0)
    every = [{**figures, "batch_size": n, "latency_ms": 1.0, "basis": "b"} for n in range(1, 31)]
    answer = question_pages.CommandAnswer(json.dumps({"predictions": every}), "", 0)
    monkeypatch.setattr(question_pages.QuestionPages, "_asked", lambda *_: answer)
    page = asked(visitor(stored), "/predict?model=bert-tiny").text
    seen, _, folded = page.partition("18 more rows</summary>")
    assert (seen.count('scope="row"'), folded.count('scope="row"')) == (12, 18)


def test_questions_wait_for_each_other_and_too_many_are_refused():
    jobs, begun, go = QuestionJobs[int](), threading.Semaphore(0), threading.Event()

    def slow(_: QuestionJob[int]) -> int:
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


def test_what_was_lost_is_asked_again_and_a_slip_is_not():
    jobs = QuestionJobs[int]()

    def fails(error: Exception) -> Callable[[QuestionJob[int]], int]:
        def work(_: QuestionJob[int]) -> int:
            raise error

        return work

    with pytest.raises(UsageError):
        jobs.of("slip", fails(UsageError("No."))).result(30)
    with pytest.raises(UsageError):
        jobs.of("slip", lambda _: 1).result(30)
    with pytest.raises(OSError, match="full"):
        jobs.of("lost", fails(OSError("full"))).result(30)
    assert jobs.of("lost", lambda _: 1).result(30) == 1


def test_work_says_what_it_does_and_ends_where_it_is_stopped():
    jobs, heard, go = QuestionJobs[int](), threading.Event(), threading.Event()

    def slow(job: QuestionJob[int]) -> int:
        job.hear("Learning …")
        heard.set()
        go.wait(30)
        job.hear("Answering …")
        return 7

    working, waiting = jobs.of("a", slow), jobs.of("b", slow)
    assert heard.wait(30)
    assert (working.stage, working.waits, waiting.waits) == ("Learning …", False, True)
    for key, job in (("b", waiting), ("a", working)):
        assert jobs.stopped(key) is job
    with pytest.raises(StoppedError):
        waiting.result(30)  # what waits for its turn needs no turn to end
    go.set()
    with pytest.raises(StoppedError):
        working.result(30)
    assert jobs.stopped("a") is None
    assert jobs.of("a", lambda _: 1).result(30) == 1  # it is asked anew


def test_a_page_that_waits_says_what_is_done_and_stop_ends_it(site, monkeypatch):
    ended, moment = threading.Event(), 0.05

    def run(
        _: str, __: list[str], ___: float, *, on_line: Callable[[str], None], **____: Any
    ) -> Any:
        try:
            while True:
                on_line("Learning from 3 measured cases …")
                time.sleep(0.01)
        finally:
            ended.set()

    monkeypatch.setattr(question_pages, "_MOMENT_SECONDS", moment)
    monkeypatch.setattr(question_pages.processes, "run_python", run)
    address = "/predict?model=bert-tiny&batch-sizes=3"
    page = site.get(address)
    while "Learning from" not in page.text:
        page = site.get(address)
    assert page.status_code == 202
    assert re.search(r"<span class=\"figure\">\d+ s</span> of at most 120 s", page.text)
    assert 'id="batch-sizes" name="batch-sizes" value="3"' in page.text  # the form stays
    stopped = site.get(f"{address}&{question_pages.STOP}=yes")
    assert (stopped.status_code, ended.wait(30)) == (200, True)
    assert "Stopped after" in stopped.text
    assert 'name="batch-sizes" value="3"' in stopped.text
