"""A bundle: all links lead somewhere, nothing private is in it, and nothing else is overwritten."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import duckdb
import pytest
from dashboard_world import MACHINE, result, store

from accelbench.core.errors import UsageError
from accelbench.core.facts import node_run_id
from accelbench.fleet.fleet_nodes import format_node_name
from accelbench.present.dashboard.snapshot import taken
from accelbench.present.publishing import bundle as bundle_module
from accelbench.present.publishing.bundle import (
    MARKER,
    CrawlPace,
    WantedPages,
    check_folder,
    crawled,
    publish,
)
from accelbench.present.publishing.private_facts import PrivateFacts, copied
from accelbench.present.publishing.rewriting import (
    Address,
    Unled,
    address_of,
    relative,
    rewritten,
    silent,
)
from accelbench.present.terminal.watch import StatusOfPages
from accelbench.store.database import Database

SECRET = "/home/jane/secret-project/net.onnx"


class _Links(HTMLParser):
    """What a page leads to, by a reader that is not ours; ids, and words that lead nowhere."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.dead: list[str] = []
        self._dead = False
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        self.links += [said[name] for name in ("href", "src", "srcset") if name in said]
        self.ids |= {said["id"]} if "id" in said else set()
        self._dead = tag == "a" and "href" not in said

    def handle_data(self, data: str) -> None:
        if self._dead:
            self.dead.append(data)


#: Of each filter of the table the column that has its values.
_COLUMNS = {
    **{name: name for name in ("key", "family", "hardware", "runtime", "precision", "mode")},
    "cell": "key", "device": "device_name", "machine": "machine_id", "provenance": "kind",
    "status": "status",
}  # fmt: skip


@pytest.mark.parametrize("name", ["bundle", "bad_bundle", "large_bundle"])
def test_every_link_of_every_page_leads_somewhere(request, name):
    """To a file, to a place on its page, or to rows that the table in the browser has."""
    folder: Path = request.getfixturevalue(name)
    pages = {path.resolve(): _Links(path) for path in sorted(folder.rglob("*.html"))}
    table = duckdb.execute(f"FROM '{folder / 'results.parquet'}'").df().to_dict("list")
    assert len(pages) > 12

    @cache
    def target_of(beside, path):
        target = (beside / unquote(path)).resolve()
        return target if target.is_file() and target.is_relative_to(folder.resolve()) else None

    for page, read in pages.items():
        for link in read.links:
            parts = urlsplit(link)
            said = f"{page.name}: {link}"
            assert link, said
            assert not parts.scheme, said
            assert not parts.netloc, said
            target = target_of(page.parent, parts.path) if parts.path else page
            assert target, said
            assert not parts.fragment or parts.fragment in pages[target].ids, said
            asked = parse_qsl(parts.query, keep_blank_values=True)
            assert not asked or target.name == "results.html", said
            for filtered, value in asked:
                if filtered == "model":
                    assert value[1:-1] in table["model"], said
                elif (filtered, value) != ("compare", "yes"):
                    assert value in table[_COLUMNS[filtered]], said


@pytest.mark.parametrize("name", ["bundle", "large_bundle"])
def test_what_is_not_in_a_bundle_is_not_offered(request, name):
    """No word of a menu, a pager or a download stands there without leading anywhere."""
    folder: Path = request.getfixturevalue(name)
    offers = ("Recommend", "Predict", "Next", "Before", "PNG", "HTML", "Its history", "Figures")
    for page in folder.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "<gone>" not in text
        assert not re.search(r"· *(?:·|</(?:p|figcaption)>)|<(?:p|figcaption)[^>]*> *·", text), page
        for words in _Links(page).dead:
            assert not words.startswith(offers), (page, words)
    assert ">Recommend<" not in (folder / "index.html").read_text(encoding="utf-8")


def test_lists_of_a_bundle(large_bundle):
    # A list has all its pages and other tables say where the rest is.
    models = [large_bundle / "models.html", *large_bundle.glob("models-*.html")]
    listed = "".join(path.read_text(encoding="utf-8") for path in models)
    assert all(f">model {n:03}<" in listed for n in range(101))
    (model,) = (
        path
        for path in (large_bundle / "model").glob("*.html")
        if "<h1><bdi>model 000<" in path.read_text(encoding="utf-8")
    )
    told = model.read_text(encoding="utf-8")
    assert "This copy has the first rows of this table." in told
    assert 'href="../results.html?model=%22model+000%22">All of them are in the table' in told
    # What was measured here has pages before what was imported.
    assert (large_bundle / "model" / "own.html").is_file()
    assert len(list((large_bundle / "model").glob("*.html"))) == 2
    said = "Pages of their own: 2 of 102 models, 2 of 144 configurations"
    for page in ("index.html", "results.html"):
        assert said in (large_bundle / page).read_text(encoding="utf-8")
    assert json.loads((large_bundle / MARKER).read_text())["left_out"].startswith(said)


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_same_store_is_the_same_bundle_to_the_byte(bundle, stored, tmp_path):
    publish(stored, tmp_path / "again", title="A lab's results", most=2)
    first, again = _files(bundle), _files(tmp_path / "again")
    assert first.keys() == again.keys()
    assert [name for name, body in first.items() if again[name] != body] == []


@pytest.mark.parametrize("step", ["write_results", "rename"])
def test_an_interrupted_publish_leaves_the_earlier_bundle_whole(
    reader, tmp_path, monkeypatch, step
):
    database = Database(tmp_path / "empty.duckdb")
    database.ensure()
    public = tmp_path / "served" / "public"
    publish(database, public, title="Earlier")
    earlier = _files(public)
    rename = Path.rename

    def interrupted(path: Path, *_: object) -> Path:
        raise KeyboardInterrupt

    def renamed(path: Path, target: Path) -> Path:
        return interrupted(path) if path.name == "bundle" else rename(path, target)

    if step == "rename":
        monkeypatch.setattr(Path, "rename", renamed)
    else:
        monkeypatch.setattr(bundle_module, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        publish(database, public, title="Later")
    assert _files(public) == earlier
    assert list(public.parent.iterdir()) == [public]


def test_publishing():
    # Who interrupts it waits for one page and not for all.
    asked: list[str] = []

    async def app(scope: Any, _: Any, send: Any) -> None:
        asked.append(scope["path"])
        if len(asked) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.05 if len(asked) >= 3 else 0)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    with pytest.raises(KeyboardInterrupt):
        crawled(app, WantedPages([Address(f"/charts/{n}") for n in range(100)], ()))
    assert 3 <= len(asked) < 50
    # Pages of models take ten times as long as those of devices, with their pictures.
    now = 0.0
    pace = CrawlPace(lambda: now)
    waiting = [Address(f"/model/{n}") for n in range(12)] + [
        Address(f"/device/{n}") for n in range(20)
    ]
    for n in range(8):
        assert pace.seconds_left is None
        pace.begun(waiting[n], waiting[n + 1 :])
        now += 1.5
        pace.begun(Address("/model-chart/pareto.svg"), waiting[n + 1 :])
        now += 0.5
    for n in range(12, 17):
        pace.begun(waiting[n], [*waiting[8:12], *waiting[n + 1 :]])
        now += 0.2
    assert pace.known == 32
    assert pace.seconds_left == pytest.approx(4 * 2.0 + 15 * 0.2, rel=0.01)
    said = io.StringIO()
    status = StatusOfPages(said, lambda: now)
    for seconds in (0.0, 10.0, 25.0, 5.0):
        now += seconds
        status.told(pace)
    assert said.getvalue() == "page 13 of 32 known, 52 s so far, about 11 s left\n"
    # What a picture shows stays to the letter.
    text = '<text x="1">net aria-label="b" 2</text>'
    said = (
        f'<g role="graphics-object" aria-label="a > b"><path aria-label="ms: 1" d="M0"/>{text}</g>'
    )
    assert silent(said).endswith(f'<path d="M0"/>{text}</g>')


def test_pages_of_a_bundle(bundle, stored):
    # The parquet file has the cells and which have a page.
    rows = duckdb.execute(
        f"SELECT key, page FROM '{bundle / 'results.parquet'}' ORDER BY 1"
    ).fetchall()
    assert rows
    for key, page in rows:
        assert (bundle / "cell" / f"{key}.html").is_file() == page
    cells = taken(stored, "2026-01-01T00:00:00Z").ask("SELECT count(*) AS n FROM cell")
    assert len(rows) == cells[0]["n"]
    # Pages run no script but the table s and have a policy.
    for page in bundle.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        scripts = re.findall(r"<script[^>]*>", text)
        expected = 1 if page.name == "results.html" else 0
        assert len(scripts) == expected, page
        assert 'http-equiv="Content-Security-Policy" content="default-src ' in text, page
        assert not re.search("<(form|input|button)", text), page
    # Within a page nobody hears it, and it is half of a picture.
    shown = "".join(path.read_text(encoding="utf-8") for path in (bundle / "model").glob("*.html"))
    pictures = re.findall(r'(srcset|src|href)="\.\./(model-chart/[^"]+\.svg)"', shown)
    assert {kind for kind, _ in pictures} == {"srcset", "src", "href"}
    for kind, name in pictures:
        picture = (bundle / name).read_text(encoding="utf-8")
        assert ("aria-label" in picture) == (kind != "srcset"), name
        assert "<path" in picture
    assert "being worked out" not in (bundle / "index.html").read_text(encoding="utf-8")


def test_hostile_names_are_text_and_no_paths(bad_bundle):
    for path in bad_bundle.rglob("*"):
        assert re.fullmatch(r"[A-Za-z0-9._-]+", path.name), path
    for page in bad_bundle.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"<(?:script>|img src=x|b>x)", text), page


def private(tmp_path: Path) -> Database:
    database = Database(tmp_path / "private.duckdb")
    database.ensure()
    store(
        database,
        "told",
        result(
            warnings=[f"{SECRET} was read on lab-7.example"],
            evidence={"file": SECRET, "node": "lab-7.example", "graph": [1]},
            conditions={"versions": {"torch": "2.13"}, "note": r"C:\Users\jane\net.onnx"},
        ),
        result(batch_size=2, status="failed", reason="error", message=f"{SECRET}: no such file"),
        machine={
            **MACHINE,
            "machine": "lab-7.example",
            "python_executable": "/home/jane/venv/bin/python",
        },
        command=f"accelbench run {SECRET} --db /srv/data/lab.duckdb",
        git_branch="jane/secret",
    )
    return database


@pytest.mark.parametrize("as_recorded", [False, True])
def test_what_is_private_is_in_no_table_of_the_copy(tmp_path, as_recorded):
    copy = copied(private(tmp_path), tmp_path, "Lab", as_recorded=as_recorded)
    told = json.dumps(
        [copy.query(f"FROM {table}")[1] for table in ("fact", "fact_result")], default=str
    )
    secrets = ("jane", "lab-7", "/srv/", "secret-project", "venv")
    assert [word for word in secrets if word in told] == (list(secrets) if as_recorded else [])
    assert "net.onnx" in told, "a path keeps its last part"
    assert copy.name == "Lab"


def test_what_was_private_stays_in_the_store_itself(tmp_path):
    database = private(tmp_path)
    before = database.path.read_bytes()
    copied(database, tmp_path, "Lab", as_recorded=False)
    assert database.path.read_bytes() == before


HOST = "secret-lab.corp.example"


def test_a_fleets_runs_do_not_name_the_machines_of_its_nodes(tmp_path):
    database = Database(tmp_path / "fleet.duckdb")
    database.ensure()
    fleet, node = "20260101-000000-abcdef0123", format_node_name("f00dbabe", HOST)
    machine = {**MACHINE, "machine": HOST}
    store(
        database,
        node_run_id(fleet, node),
        result(warnings=[f"{node} was cut off", "ssh root@SECRET-LAB refused", f"{HOST}:6379"]),
        machine=machine,
        fleet=fleet,
    )
    copy = copied(database, tmp_path, "Lab", as_recorded=False)
    tables = ("fact", "fact_result", "fact_samples", "journal_state")
    told = json.dumps([copy.query(f"FROM {table}")[1] for table in tables], default=str).lower()
    assert "secret" not in told
    assert "root@" not in told
    joined = "FROM benchmark_results JOIN benchmark_runs USING (run_id) JOIN fact_samples USING"
    _, ((run,),) = copy.query(f"SELECT DISTINCT benchmark_runs.run_id {joined} (result_id)")
    assert run == f"{fleet}.machine-1-f00dba"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("git clone https://bob:hunter2@git.corp/x", "git clone https://…@git.corp/x"),
        ("401 for https://hub/x?token=abc&rev=1", "401 for https://hub/x?token=…&rev=1"),
        ("HF_TOKEN=hf_abcdefghijklmnop", "HF_TOKEN=…"),
        ("used hf_abcdefghijklmnop", "used …"),
        ("ask jane.doe@lab.example.org", "ask …"),
        ("no route to 10.1.2.3", "no route to …"),
        ("refused by 203.0.113.9:6379", "refused by …:6379"),
        ("eth0 52:54:00:12:34:56", "eth0 …"),
        ("on GPU-5f3a1c22-9d1e-4b7a-8c6d-001122334455", "on …"),
        (
            "cudnn 9.1.0.70, torch 2.13.0+cpu, 12:34:56",
            "cudnn 9.1.0.70, torch 2.13.0+cpu, 12:34:56",
        ),
        ("10.1.0.12", "10.1.0.12"),
        ("new_tokens=64, task-oriented, risk-free-estimate", None),
    ],
)
def test_what_is_secret_wherever_it_stands_goes(text, told):
    assert PrivateFacts().text(text) == (text if told is None else told)


def test_what_is_secret_by_its_key_goes_from_every_table(tmp_path):
    secrets = {"User": "jane", "serial-number": "S3CR", "uuid": "GPU-12345678", "ip": "203.0.113.9"}
    database = Database(tmp_path / "keys.duckdb")
    database.ensure()
    store(database, "r", result(conditions=secrets), machine={**MACHINE, **secrets})
    copy = copied(database, tmp_path, "Lab", as_recorded=False)
    for table in ("fact", "fact_result"):
        told = json.dumps(copy.query(f"FROM {table}")[1], default=str)
        assert [value for value in secrets.values() if value in told] == [], table


def test_texts_keep_what_is_no_path():
    facts = PrivateFacts({"lab": "machine 1"})
    for text in (
        "read https://example.org/a/b/c, images/s, 1/2, n/a",
        "/proc/driver/nvidia/version",
        "label and collab",
        "2.13.0+cpu",
    ):
        assert facts.text(text) == text
    assert facts.text("on lab: /data/x y/net.onnx failed") == "on machine 1: …/net.onnx failed"
    assert facts.text("~/a/b.txt, /home/jane/c") == "…/b.txt, …/c"


def test_an_earlier_bundle_is_replaced_and_nothing_else(bundle, tmp_path):
    check_folder(bundle)
    check_folder(tmp_path)
    check_folder(tmp_path / "not there")
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="not empty"):
        check_folder(tmp_path)
    with pytest.raises(UsageError, match="is a file"):
        check_folder(tmp_path / "thesis.tex")
    (tmp_path / MARKER).write_text('{"files": ["index.html"]}')
    with pytest.raises(UsageError, match="no bundle wrote"):
        check_folder(tmp_path)


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "empty"])
def test_a_bundle_with_anything_else_in_it_is_not_replaced(tmp_path, kind):
    (tmp_path / "index.html").write_text("")
    (tmp_path / MARKER).write_text('{"files": ["index.html"]}')
    check_folder(tmp_path)
    other = tmp_path / "other"
    if kind in ("link", "dangling"):
        other.symlink_to(tmp_path.parent if kind == "link" else tmp_path / "gone")
    elif kind == "pipe":
        os.mkfifo(other)
    else:
        other.mkdir()
    with pytest.raises(UsageError, match="no bundle wrote"):
        check_folder(tmp_path)


def test_of_a_link_what_it_leads_to_is_replaced(tmp_path, reader):
    """A server has the folder: with the link replaced it would go on to show the old one."""
    served, link = tmp_path / "served", tmp_path / "public"
    served.mkdir()
    link.symlink_to(served)
    database = Database(tmp_path / "empty.duckdb")
    database.ensure()
    publish(database, link, title="Lab")
    assert link.is_symlink()
    assert (served / MARKER).is_file()


def test_addresses_and_text():
    # Addresses become files that hold anywhere.
    assert Address("/").file == "index.html"
    assert Address("/cell/ab12.json").file == "cell/ab12.json"
    assert Address("/static/app.css").file == "static/app.css"
    filtered = address_of("/chart/pareto.svg?model=a%26b&download=1")
    assert filtered is not None
    assert filtered.query == (("model", "a&b"),)
    assert re.fullmatch(r"chart/pareto-[0-9a-f]{12}\.svg", filtered.file)
    assert Address("/run/../../etc/passwd").file.count("..") == 0
    assert address_of("https://example.org/") is None
    assert address_of("//example.org") is None
    assert Address("/model/net.svg").file == "model/net.svg.html"
    assert Address("/model/Net").file != Address("/model/net").file.upper()
    assert relative("run/a.html", "cell/b.html") == "../cell/b.html"
    # Text passes to the letter and forms go.
    page = (
        '<!doctype html><head><meta charset="utf-8"></head><aside class="side">gone</aside>'
        '<form action="/explore"><p>gone</p></form>'
        '<form action="/compare"><input name="a"><button>Go</button><p title="&quot;">'
        'a &lt;b&gt; &#8203; <a href="/x?y=1&amp;z">x</a></p></form><script>gone</script>'
    )
    led = {"/x?y=1&z": "y.html?a=1&b"}
    made = rewritten(page, lambda link: led.get(link, Unled.TEXT), "<meta name='policy'>")
    assert made.endswith(
        '<p title="&quot;">a &lt;b&gt; &#8203; <a href="y.html?a=1&amp;b">x</a></p>'
    )
    assert "gone" not in made
    assert made.startswith("<!doctype html><head><meta charset=\"utf-8\"><meta name='policy'>")


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ('<p><a href="/gone">a</a> · <a href="/there">b</a></p>', '<p><a href="f.html">b</a></p>'),
        ('<p><a href="/there">b</a> · <a href="/gone">a</a></p>', '<p><a href="f.html">b</a></p>'),
        (
            '<p><a href="/there">b</a> · <a href="/gone">a</a> · <a href="/gone">c</a> · d</p>',
            '<p><a href="f.html">b</a> · d</p>',
        ),
        (
            '<div><p class="links"><a href="/gone">a</a> · <a href="/gone">b</a></p></div>',
            "<div></div>",
        ),
        ("<p>&lt;gone&gt; · a</p>", "<p>&lt;gone&gt; · a</p>"),
    ],
)
def test_what_leads_nowhere_goes_with_its_words_and_what_separates_them(page, told):
    led = {"/there": "f.html"}
    assert rewritten(page, lambda link: led.get(link, Unled.GONE)) == told
