"""What the table of results leads to and marks: one model and no other, and no best that is not."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from dashboard_world import result, store, visitor
from starlette.testclient import TestClient
from test_dashboard_results import query_of

from accelbench.report.dashboard.results import page as grouping
from accelbench.report.dashboard.snapshots.snapshot import taken
from accelbench.store.database import Database

#: A name that others have in them, and one that differs in a capital.
NAMES = ("bert", "bert-large", "distilbert", "Bert")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    made = Database(tmp_path_factory.mktemp("names") / "results.duckdb")
    made.ensure()
    store(made, "r", *(result(model=name) for name in NAMES))
    return made


@pytest.fixture(scope="module")
def site(database: Database) -> TestClient:
    return visitor(database)


def models(page: str) -> set[str]:
    return set(re.findall(r'<a href="/cell/[0-9a-f]+"><bdi>([^<]+)</bdi>', page))


def test_a_group_leads_to_its_own_rows_and_to_no_other_model_s(site: TestClient) -> None:
    page = site.get("/results?group=model").text
    for name in NAMES:
        (address,) = re.findall(rf'<a href="([^"]+)"><bdi>{name}</bdi>', page)
        assert models(site.get(unescape(address)).text) == {name}


@pytest.mark.parametrize("page", ["results", "history"])
def test_all_of_this_model_are_of_this_model(site: TestClient, page: str) -> None:
    key = re.findall(r'<a href="/cell/([0-9a-f]+)"><bdi>bert</bdi>', site.get("/results").text)[0]
    addresses = re.findall(rf'href="(/{page}\?[^"]+)"', site.get(f"/cell/{key}").text)
    (address,) = {unescape(address) for address in addresses if "model=" in address}
    assert query_of(address.partition("?")[2]).where() == ("true AND model = ?", ["bert"])


def test_letters_are_letters_all_the_same(site: TestClient) -> None:
    assert models(site.get("/results?model=BERT").text) == set(NAMES)


def test_int8_that_nobody_verified_is_not_the_best_of_its_row(tmp_path: Path) -> None:
    database = Database(tmp_path / "int8.duckdb")
    database.ensure()

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
