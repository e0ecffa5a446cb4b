"""The table of results: everything in the address, what was chosen kept, groups as SQL has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import pytest
from dashboard_world import result, store, stored_in, visitor
from starlette.testclient import TestClient

from accelbench.core.errors import UsageError
from accelbench.core.result_statistics import SpreadKind, Statistic
from accelbench.core.unusable_reasons import REASON_TEXTS, UnusableReason
from accelbench.judge.ratios import interval_within
from accelbench.measure.launch_verdicts import interval_of
from accelbench.present.dashboard import cells
from accelbench.present.dashboard import results_page as grouping
from accelbench.present.dashboard.cells import MOST_CHOICES, interval
from accelbench.present.dashboard.page_query import COLUMNS, GROUPS, PageQuery, asked
from accelbench.present.dashboard.snapshot import Snapshot, taken
from accelbench.present.dashboard.table_query import TableQuery, table_query
from accelbench.store.database import Database

KNOWN: Mapping[str, list[str]] = {"hardware": ["cpu", "cuda"], "device": ["A processor"]}
#: Milliseconds by engine and batch, of launches that are close or far apart.
TIMES = {
    ("pytorch", 1): (8.0, 8.1, 8.2),
    ("onnxruntime", 1): (4.0, 4.1, 4.05),
    ("openvino", 1): (3.9, 4.2, 4.0),
    ("pytorch", 4): (30.0, 30.5, 31.0),
    ("onnxruntime", 4): (14.0, 14.1, 14.2),
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    made = stored_in(tmp_path_factory.mktemp("table") / "a.duckdb")
    rows = [
        result(
            runtime=runtime,
            batch_size=batch,
            launch=launch,
            latency_p50_ms=ms,
            throughput=1e3 * batch / ms,
            memory_peak_mb=100.0 * batch,
            started_at=f"2026-01-02T03:04:0{launch}.000000Z",
        )
        for (runtime, batch), times in TIMES.items()
        for launch, ms in enumerate(times)
    ]
    rows += [
        result(model="vit-tiny", runtime="pytorch", latency_p50_ms=5.0, quality="unusable"),
        result(model="vit-tiny", runtime="onnxruntime", latency_p50_ms=0.1, provenance="predicted"),
        result(model="vit-tiny", runtime="openvino", status="failed", reason="fallback"),
    ]
    store(made, "run", *rows)
    return made


@pytest.fixture(scope="module")
def snapshot(database: Database) -> Snapshot:
    return taken(database, "now")


@pytest.fixture(scope="module")
def site(database: Database) -> TestClient:
    return visitor(database)


def query_of(address: str, known: Mapping[str, list[str]] = KNOWN) -> TableQuery:
    pairs = parse_qsl(address)
    return table_query(pairs, asked(pairs, known))


def keys(page: str) -> list[str]:
    return re.findall(r'id="pick-([0-9a-f]{16})"', page)


def link(page: str, text: str) -> str:
    """Where a link with such a text leads."""
    found = re.search(rf'<a [^>]*href="([^"]*)"[^>]*>(?:<[^>]+>)*{text}', page)
    assert found, text
    return unescape(found[1])


@pytest.mark.parametrize(
    "address",
    [
        "",
        "model=bert&hardware=cpu&hardware=cuda&device=A+processor&from=2026-01-01&to=2026-01-31",
        "batch-min=2&batch-max=8&latency-min=0.5&throughput-max=1e6",
        "sort=-weights&page=3",
        "col=hardware&col=run&col=options",
        "group=model&group=runtime&as=pivot&figure=memory&by=median",
        "group=hardware&order=-best&view=My+%3Cb%3E+view&cell=x&cell=y",
    ],
)
def test_an_address_is_read_as_it_was_written(address):
    query = query_of(address)
    assert query_of(query.query().removeprefix("?")) == query
    every = {name for name, _ in parse_qsl(address)}
    assert {name for name, _ in query.pairs()} == every
    if not address:
        assert query == query_of("as=list&by=best&order=group&figure=latency")
        assert (PageQuery().query(), query.query()) == ("", "")


def test_between_pages_go_the_filters_alone():
    query = query_of("model=b&latency-max=5&group=model&col=run&view=v&cell=x&sort=-memory")
    assert query.pairs(order=False, picked=False) == [("model", "b"), ("latency-max", "5")]


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("latency-min=much", "'much' is not a number for latency"),
        ("latency-min=nan", "'nan' is not a number for latency"),
        ("latency-min=3&latency-max=2", "No latency is 3 or more and 2 or less"),
        ("col=beauty", "There is no column 'beauty'"),
        ("group=latency", "There is no column to group by 'latency'"),
        ("as=cube", "There is no layout 'cube'"),
        ("figure=beauty", "There is no figure 'beauty'"),
        ("order=beauty", "There is no order 'beauty'"),
    ],
)
def test_a_wrong_word_is_told_with_those_there_are(address, sentence):
    with pytest.raises(UsageError, match=re.escape(sentence)):
        query_of(address)


@pytest.mark.parametrize("name", COLUMNS)
def test_every_column_can_be_ordered_by_both_ways(snapshot, name):
    rising, falling = (
        [cell["key"] for cell in cells.page(snapshot, query_of(f"sort={way}{name}"))]
        for way in ("", "-")
    )
    assert sorted(rising) == sorted(falling)
    assert len(rising) == 8


def test_columns_and_pivots(site):
    # Every column can be shown and grouped by.
    names = [name for name in COLUMNS if name != "cost"]
    page = site.get("/results?" + urlencode([("col", name) for name in names])).text
    for name in names:
        assert f'href="/results?{"sort=-model" if name == "model" else ""}' in page
        assert COLUMNS[name].label in page
    for name in GROUPS:
        assert site.get(f"/results?group={name}").status_code == 200
    # Columns are those in which rows differ and the rest is said once.
    page = site.get("/results?model=bert&batch-max=1").text
    headings = re.findall(r"<th scope=\"col\"[^>]*><a [^>]*>([^<]+)", page)
    assert headings == [
        *("Model", "Runtime", "Median latency, ms", "Items/s", "Peak memory, MB", "Launches"),
        "Newest",
    ]
    (alike,) = re.findall(r'<p class="alike">(.*?)</p>', page)
    said = re.sub("<[^>]+>", "", alike)
    for word in ("cpu", "fp32", "batch 1", "seq 128", "inference", "2 threads", "measured"):
        assert word in said
    assert "pytorch" not in said
    both = site.get("/results?model=bert").text
    assert re.search(r"<th [^>]*><a [^>]*>Batch", both)
    # No more are kept than can be compared.
    found = keys(site.get("/results").text)
    many = "&".join(f"cell={key}" for key in [*found, *(f"{n:016x}" for n in range(20))])
    assert "more configurations were chosen than are kept" in site.get(f"/results?{many}").text
    # A pivot is a page.
    page = site.get("/results?group=batch&group=runtime&as=pivot&model=bert").text
    assert page.count("best of the row</span>") == 1
    assert re.search(r"<strong>\s*<a href=\"/cell/", page)
    assert "batch down, runtime across" in page
    narrowed = link(page.partition('class="results pivot"')[2], "4<")
    assert "batch-min=4&batch-max=4" in narrowed
    assert len(keys(site.get(narrowed).text)) == 2
    # A view has a name in its address.
    name = "fast & <b>small</b>"
    page = site.get(f"/results?latency-max=5&view={quote(name)}").text
    assert "Results: <bdi>fast &amp; &lt;b&gt;small&lt;/b&gt;</bdi></h1>" in page
    assert "<b>small" not in page
    (form,) = re.findall(r'<form id="naming".*?</form>', page, re.DOTALL)
    assert '<input type="hidden" name="latency-max" value="5">' in form
    # Rows are blocks there, without a heading above each figure.
    table = site.get("/results").text.partition('<table class="results stacked">')[2]
    body = table.partition("<tbody>")[2].partition("</tbody>")[0]
    figures = re.findall(r'<td class="figure (?:dim|spare|measured|imported)[^>]*>', body)
    assert figures
    assert all("data-label=" in one for one in figures)


def test_a_device_is_a_filter_and_a_column(tmp_path):
    made = stored_in(tmp_path)
    cards = ("NVIDIA H100", "NVIDIA A100")
    rows = [
        result(hardware="cuda", device_name=name, device_fingerprint=name, latency_p50_ms=1.0)
        for name in cards
    ]
    store(made, "run", *rows)
    page = visitor(made).get("/results").text
    assert re.search(r"<th [^>]*><a [^>]*>Device", page)
    for name in cards:
        assert len(keys(visitor(made).get(f"/results?device={quote(name)}").text)) == 1
    # A narrow screen has no room for the column: the line below the model says what differs.
    narrow = r"<small class=\"narrow\"><bdi>([^<]+)</bdi>"
    lines = re.findall(narrow, page)
    assert sorted(line.rpartition(" · ")[2] for line in lines) == ["A100", "H100"]
    alone = visitor(made).get(f"/results?device={quote(cards[0])}").text
    assert "H100" not in re.findall(narrow, alone)[0]
    chosen = "&".join(f"cell={key}" for key in keys(page))
    compared = re.findall(narrow, visitor(made).get(f"/compare?{chosen}").text)
    assert sorted(line.rpartition(" · ")[2] for line in compared) == ["A100", "H100"]
    # The page of a cell names it in its heading.
    heading = visitor(made).get(f"/cell/{keys(alone)[0]}").text.partition("</h1>")[2]
    assert "<bdi>H100</bdi></a>" in heading.partition("</div>")[0]


def test_figures_stand_before_what_tells_few_rows_apart(tmp_path):
    """Scenario, threads and machine pushed them out of a page of 1440 pixels."""
    made = stored_in(tmp_path, result(), result(batch_size=2, threads=4, scenario="offline"))
    page = visitor(made).get("/results").text
    headings = re.findall(r"<th scope=\"col\"[^>]*><a [^>]*>([^<]+)", page)
    assert headings == [
        *("Model", "Batch", "Median latency, ms", "Items/s", "Peak memory, MB"),
        *("Scenario", "Threads", "Launches", "Newest"),
    ]


def test_what_was_chosen_stays_through_filters_sorts_and_pages(tmp_path):
    made = stored_in(tmp_path)
    rows = [result(batch_size=n + 1, latency_p50_ms=1.0 + n) for n in range(210)]
    store(made, "run", *rows)
    site = visitor(made)
    first = keys(site.get("/results?sort=batch").text)
    address = f"/results?sort=batch&cell={first[0]}&cell={first[1]}"
    page = site.get(address).text
    for text in ("Median latency", "Next →"):
        address = f"/results?{urlsplit(link(page, text)).query}"
        page = site.get(address).text
        assert parse_qsl(urlsplit(address).query).count(("cell", first[0])) == 1
    assert "page=2" in address
    # A filter is a form: what it sends along has them, whatever is on the page.
    page = site.get(f"{address}&batch-min=150").text
    assert first[0] not in keys(page)
    (form,) = re.findall(r'<form id="filters".*?</form>', page, re.DOTALL)
    assert re.findall(r'name="cell" value="([0-9a-f]{16})"', form) == first[:2]
    tray = page.partition('id="tray"')[2]
    assert "Chosen: 2" in tray
    # What is compared is what the form has when it is sent, and no list made before.
    assert 'form="filters" formaction="/compare">Compare</button>' in tray
    sent = f"/compare?batch-min=150&sort=batch&cell={first[0]}&cell={first[1]}&model=&from="
    compared = site.get(sent).text
    assert "2 configurations" in compared
    assert "batch-min" not in compared
    assert first[0] not in unescape(link(tray, "Clear"))
    assert unescape(link(tray, "remove")).count("cell=") == 1


def test_intervals_of_a_snapshot(snapshot):
    # An interval is that of the launches.
    for cell in snapshot.ask("SELECT * FROM cell WHERE launches = 3"):
        times = TIMES[str(cell["runtime"]), int(str(cell["batch_size"]))]
        known, rate = interval(cell, "latency"), interval(cell, "throughput")  # type: ignore[arg-type]
        assert known is not None and rate is not None  # noqa: PT018
        assert (known.spread.low, known.spread.high) == (min(times), max(times))
        assert known.sure == pytest.approx(interval_of(times))
        batch = int(str(cell["batch_size"]))
        rates = [1e3 * batch / ms for ms in times]
        assert (rate.spread.low, rate.spread.high) == pytest.approx((min(rates), max(rates)))
        assert rate.sure == pytest.approx(interval_of(rates))
        assert (known.spread.kind, known.spread.count) == (SpreadKind.RANGE, 3)

    # The best of a row is marked where it is apart and alike.
    def rows(address: str) -> list[grouping.PivotRow]:
        return list(grouping.grouped(snapshot, query_of(f"as=pivot&model=bert&{address}")).rows)

    # Of batch 1 two are too close, of batch 4 one is far ahead.
    one, four = rows("group=batch&group=runtime")
    assert (one.best, four.best) == ("", "onnxruntime")
    # Of a whole model the best are of one batch: alike, and not apart.
    (model,) = rows("group=model&group=runtime")
    assert (model.best, model.unlike) == ("", [])
    # The most items a second are at other batches: not alike.
    (rate,) = rows("group=model&group=runtime&figure=throughput")
    assert rate.unlike == ["batch size"]
    assert rate.best == ""


def test_an_interval_of_one_launch_is_that_within_it(tmp_path):
    made = stored_in(tmp_path)
    row = result(latency_std_ms=0.4, effective_sample_count=50.0, latency_mean_ms=8.5)
    store(made, "run", row)
    (cell,) = taken(made, "now").ask("SELECT * FROM cell")
    known = interval(cell, "latency")  # type: ignore[arg-type]
    assert known is not None
    assert known.sure == interval_within(row, Statistic.MEDIAN)
    assert known.spread.kind is SpreadKind.SAMPLES
    page = visitor(made).get("/results").text
    assert f"{known.text}</small>" in page
    assert "<small>mean 8.50</small>" in page


def test_a_single_figure_has_none(tmp_path):
    made = stored_in(tmp_path)
    nothing = dict.fromkeys(("latency_ci_low_ms", "latency_ci_high_ms"))
    store(made, "run", result(**nothing, sample_count=None))
    (cell,) = taken(made, "now").ask("SELECT * FROM cell")
    assert interval(cell, "latency") is None  # type: ignore[arg-type]
    assert 'class="sure"' not in visitor(made).get("/results").text


def test_a_pivot_of_many_rows_is_turned_and_keeps_what_nobody_said(tmp_path):
    made = stored_in(tmp_path / "many.duckdb")
    names = [f"model-{n:03d}" for n in range(105)]
    rows = [
        result(model=name, threads=threads, latency_p50_ms=1.0 + n + (threads or 0))
        for n, name in enumerate(names)
        for threads in (None, 1, 2)
    ]
    store(
        made,
        "run",
        *({**row, "case_id": f"{n}", "series_key": f"s{n}"} for n, row in enumerate(rows)),
    )
    snapshot = taken(made, "now")

    def pivot(address: str) -> grouping.GroupPage:
        return grouping.grouped(snapshot, query_of(f"as=pivot&{address}"))

    second = pivot("group=model&group=threads&page=2")
    assert (second.count, second.pages) == (105, 2)
    assert [row.value for row in second.rows] == names[100:]
    assert list(second.across) == [1, 2, None]
    assert [row.groups["None"].best for row in second.rows] == [101.0 + n for n in range(5)]
    # Down as well: numbers by size, and what nobody said last.
    turned = pivot("group=threads&group=model")
    assert [row.value for row in turned.rows] == [1, 2, None]
    assert (len(turned.across), turned.left_out) == (grouping.MOST_ACROSS, 105 - 24)
    assert turned.rows[2].groups["model-003"].count == 1
    beyond = pivot("group=model&group=threads&page=9")
    assert (beyond.count, list(beyond.rows)) == (105, [])


def test_rates_of_different_things_have_no_figure_in_common(tmp_path):
    made = stored_in(tmp_path)
    rows = [
        result(batch_size=n, throughput_unit=unit) for n, unit in ((1, "tokens/s"), (2, "images/s"))
    ]
    store(made, "run", *rows)
    found = grouping.grouped(taken(made, "now"), query_of("group=model&figure=throughput"))
    (group,) = found.groups
    assert (group.best, group.median, group.units) == (None, None, ["items", "token"])
    assert "can&#39;t tell" in visitor(made).get("/results?group=model&figure=throughput").text


def test_groups_never_mix_training_with_inference(tmp_path):
    made = stored_in(tmp_path)
    rows = [
        result(mode=mode, threads=threads, throughput=rate, series_key=f"{mode}{threads}")
        for mode, threads, rate in (
            ("inference", 1, 900.0),
            ("training", 1, 300.0),
            ("training", 2, 500.0),
        )
    ]
    store(made, "run", *(dict(row, case_id=f"{n}") for n, row in enumerate(rows)))
    snapshot, site = taken(made, "now"), visitor(made)
    listed = grouping.grouped(snapshot, query_of("group=model&group=runtime&figure=throughput"))
    assert [(group.values["mode"], group.best, group.count) for group in listed.groups] == [
        ("inference", 900.0, 1),
        ("training", 500.0, 2),
    ]
    pivot = "group=model&group=threads&as=pivot&figure=throughput"
    crossed = grouping.grouped(snapshot, query_of(pivot))
    assert [
        (row.mode, {at: group.best for at, group in row.groups.items()}) for row in crossed.rows
    ] == [("inference", {"1": 900.0}), ("training", {"1": 300.0, "2": 500.0})]
    # Each row says its mode and leads to its own configurations.
    page = site.get(f"/results?{pivot}").text
    assert "<small>inference</small>" in page
    assert "<small>training</small>" in page
    assert "mode=training" in page.partition('class="results pivot"')[2]
    table = site.get("/results?group=model&group=threads").text.partition("results groups")[2]
    assert table.index(">Threads<") < table.index(">Mode<") < table.index("<tbody>")
    # Where one mode was asked for, or is grouped by, nothing is said twice.
    for asked_for in ("mode=training&group=model&group=threads", "group=model&group=mode"):
        known = {**KNOWN, "mode": ["inference", "training"]}
        assert not grouping.grouped(snapshot, query_of(asked_for, known)).modes_apart


def test_hostile_names_in_headings_and_groups_are_text(bad_site):
    for address in (
        "group=model&group=hardware&as=pivot",
        "group=runtime&group=precision&as=pivot&figure=throughput",
        "group=device&group=reason",
        "group=unit&group=weights&as=pivot",
        "col=options&col=versions&col=unit&col=quality&col=reason&col=run",
        f"view={quote('</title><script>alert(1)</script>')}",
    ):
        page = bad_site.get(f"/results?{address}").text
        assert "<script>" not in page, address
        assert "<img src=x" not in page, address
        assert re.findall("<script[^>]*>", page) == re.findall(
            r'<script src="/static/[a-z]+\.js"[^>]*>', page
        )


#: A name that others have in them, and one that differs in a capital.
NAMES = ("bert", "bert-large", "distilbert", "Bert")


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    return visitor(
        stored_in(tmp_path_factory.mktemp("names"), *(result(model=name) for name in NAMES))
    )


def models(page: str) -> set[str]:
    return set(re.findall(r'<a href="/cell/[0-9a-f]+"><bdi>([^<]+)</bdi>', page))


def test_names_of_groups(named):
    # A group leads to its own rows and to no other model s.
    page = named.get("/results?group=model").text
    for name in NAMES:
        (address,) = re.findall(rf'<a href="([^"]+)"><bdi>{name}</bdi>', page)
        assert models(named.get(unescape(address)).text) == {name}
    assert models(named.get("/results?model=BERT").text) == set(NAMES)


@pytest.mark.parametrize("page", ["results", "history"])
def test_all_of_this_model_are_of_this_model(named, page):
    key = re.findall(r'<a href="/cell/([0-9a-f]+)"><bdi>bert</bdi>', named.get("/results").text)[0]
    addresses = re.findall(rf'href="(/{page}\?[^"]+)"', named.get(f"/cell/{key}").text)
    (address,) = {unescape(address) for address in addresses if "model=" in address}
    assert query_of(address.partition("?")[2]).where() == ("true AND model = ?", ["bert"])


def test_int8_that_nobody_verified_is_not_the_best_of_its_row(tmp_path):
    database = stored_in(tmp_path / "int8.duckdb")

    def launches(precision: str, ms: float, **changes: object) -> list[dict[str, object]]:
        return [
            result(launch=n, precision=precision, latency_p50_ms=ms * (1 + 0.001 * n), **changes)
            for n in range(3)
        ]

    int8 = {
        "bert": {"verification": "not_done", "verification_error": None},
        "net": {"verification_error": 0.01},
    }
    rows = [
        row
        for model, changes in int8.items()
        for row in (
            *launches("fp32", 8.0, model=model),
            *launches("int8", 2.0, model=model, **changes),
        )
    ]
    store(database, "r", *rows)
    query = query_of("group=model&group=precision&as=pivot")
    bert, net = grouping.grouped(taken(database, "2026-01-01T00:00:00Z"), query).rows
    assert (bert.best, bert.unlike) == ("", ["outputs not verified"])
    assert (net.best, net.unlike) == ("int8", [])


def test_every_device_can_be_chosen(tmp_path):
    """60 of 158 devices were offered, and the page did not mention the others."""
    database = stored_in(tmp_path)
    names = [f"Card {number:03d}" for number in range(MOST_CHOICES + 25)]
    rows = [
        result(hardware="cuda", device_name=name, device_fingerprint=name, case_id=name)
        for name in names
    ]
    store(database, "r", *rows)
    site = visitor(database)
    page = site.get("/results").text
    boxes = re.findall(r'name="device" value="([^"]+)"', page)
    (select,) = re.findall(r'<select id="device-more" name="device">(.*?)</select>', page)
    others = [value for value in re.findall(r'<option value="([^"]*)"', select) if value]
    assert len(boxes) == MOST_CHOICES
    assert sorted([*boxes, *others]) == names
    assert f"{MOST_CHOICES} of {len(names)}" in page
    chosen = site.get(f"/results?device={others[-1].replace(' ', '+')}").text
    assert f'value="{others[-1]}" checked' in chosen


def test_few_values_have_no_list_below_them(tmp_path):
    database = stored_in(
        tmp_path, result(), result(hardware="cuda", device_name="A card", case_id="b")
    )
    assert "device-more" not in visitor(database).get("/results").text


def test_an_implausible_result_is_listed_with_its_calculation(tmp_path):
    database = Database(tmp_path / "a.duckdb")
    about = {
        "provenance": "imported", "hardware": "vulkan", "flops": 8.18e9, "samples": {},
        "device_name": "Board, Rockchip RK3588S", "precision": "fp16",
    }  # fmt: skip
    bodies = [
        {**result(model="resnet-50", latency_mean_ms=ms, latency_p50_ms=ms, **about),
         "result_id": f"r{ms}", "throughput": 1e3 / ms, "case_id": f"c{ms}", "series_key": f"s{ms}"}
        for ms in (0.96, 38.0)
    ]  # fmt: skip
    database.bring_in("import-a", [], bodies)
    site = visitor(database)
    for address in ("/model/resnet-50", "/device/Board%2C%20Rockchip%20RK3588S"):
        table = site.get(address).text.partition('aria-label="Table of implausible results"')[2]
        cells = re.findall(r'<td class="figure"[^>]*>([^<]*)</td>', table)
        assert cells[1:6] == ["8.18", "0.960", "8.52", "1.02", "8.32"]
    (model,) = re.findall(r"<tbody>(.*?)</tbody>", site.get("/models").text, re.DOTALL)
    assert "26.3" in model  # 1,000 ÷ 38 items per second, and not 1,042


def test_an_unusable_cell_shows_its_own_reason_alone(tmp_path):
    database = stored_in(tmp_path, result(quality="unusable", unexplained_share=0.7))
    site = visitor(database)
    (address,) = set(re.findall(r'href="(/cell/[0-9a-f]{16})"', site.get("/results").text))
    for page in (site.get(address).text, site.get("/model/bert-tiny").text):
        assert REASON_TEXTS[UnusableReason.UNACCOUNTED] in page
        assert REASON_TEXTS[UnusableReason.TOO_NOISY] not in page
        assert REASON_TEXTS[UnusableReason.WAITED] not in page
