"""What the program makes of one more axis of sizes; `test_made_up_axis.py` starts it.

The axis is added to the registry before anything else of the program is imported, as an entry in
`core/axes.py` would be. What each place makes of it is written as JSON to the file that is named.
"""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelbench.core import axes

axes.AXES += (
    axes.Axis(
        field="depth_of_field",
        column="depth_slices",
        option="--depth-slices",
        label="{} slices",
        unit="slices of one volume",
        why_absent="the model takes no volume",
    ),
)

sys.path += [str(Path(__file__).parents[1] / room) for room in ("cli", "run")]
from fixed_machine import FOUND  # noqa: E402
from stored_rows import store  # noqa: E402

from accelbench.cli.main import main  # noqa: E402
from accelbench.core.columns import BY_NAME  # noqa: E402
from accelbench.core.model import InputSpec  # noqa: E402
from accelbench.core.run_command import OPTIONS  # noqa: E402
from accelbench.core.serial import case_from_json, case_to_json  # noqa: E402
from accelbench.core.vocabulary import (  # noqa: E402
    Outcome,
    Provenance,
    Status,
)
from accelbench.engines.scripted import ScriptedRuntime  # noqa: E402
from accelbench.exchange.imports.result_row import Source, _build_ids  # noqa: E402
from accelbench.exchange.result_schema import describe_column  # noqa: E402
from accelbench.exchange.titles import format_title  # noqa: E402
from accelbench.models.find import find  # noqa: E402
from accelbench.models.inputs import input_shapes  # noqa: E402
from accelbench.present.charts.words import cells  # noqa: E402
from accelbench.present.dashboard.words import size  # noqa: E402
from accelbench.recommend.query import SIZES  # noqa: E402
from accelbench.run.conduct.results import LaunchFacts, compose  # noqa: E402
from accelbench.run.plan import automatic  # noqa: E402
from accelbench.run.plan.expand import expand  # noqa: E402
from accelbench.run.plan.request import Plan, Planned, Request  # noqa: E402
from accelbench.store.opening import open_store  # noqa: E402

OUT = Path(sys.argv[1])
#: A model that takes volumes: so many slices of an image.
MODEL = replace(
    find("vit-tiny"),
    inputs=(InputSpec("volume", ("batch", "depth_of_field", "image", "image")),),
    depth_of_field=8,
)
WHEN = "2026-01-01T00:00:00.000000Z"


def asked(**sizes: tuple[int, ...]) -> Plan:
    request = Request(
        (MODEL, find("bert-tiny")),
        hardware=("cpu",),
        runtimes=("scripted",),
        batch_sizes=(1, 4),
        **sizes,
    )
    runtimes = {"scripted": ScriptedRuntime()}
    return expand(request, FOUND, runtimes, lambda case: None, lambda device: None)


def measured(planned: Planned) -> dict[str, Any]:
    """A result of a case, as a run leaves it."""
    batch = planned.case.shapes.batch
    metrics = {"latency_p50_ms": 2.0 * batch, "latency_mean_ms": 2.0 * batch, "throughput": 500.0}
    outcome = Outcome(Status.OK, measurement={"metrics": metrics})
    facts = LaunchFacts("r", 1)
    return compose(facts, planned, outcome, Provenance.MEASURED, None, WHEN, WHEN)


def printed(*words: str) -> str:
    """What a command prints."""
    out = io.StringIO()
    sys.argv = ["accelbench", *words]
    with redirect_stdout(out):
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise
    return out.getvalue()


def refused(*words: str) -> str:
    """What a command that is refused for its words prints."""
    out = io.StringIO()
    with redirect_stderr(out):
        try:
            printed(*words)
        except SystemExit as end:
            assert end.code == 2  # noqa: PT017
    return out.getvalue()


def found() -> dict[str, Any]:
    plan = asked(depth_slices=(4, 2))
    volumes = [one for one in plan.cases if one.case.model is MODEL]
    cases = [one.case for one in volumes]
    bodies = [measured(one) for one in plan.cases]
    rows = [body for body in bodies if body["model"] == MODEL.id and body["batch_size"] == 1]
    store(Path("r.duckdb"), *bodies)
    printed("db", "export", "all.csv", "--db", "r.duckdb")
    Path("plan.json").write_text(
        json.dumps({"models": "bert-tiny", "matrix": {"depth_slices": [2, 4]}}), encoding="utf-8"
    )
    printed("run", "plan.json", "--save-plan", "again.json")
    database = open_store("r.duckdb")
    with database.keep_open():
        _, types = database.query("SELECT column_name, column_type FROM (DESCRIBE fact_result)")
        _, kept = database.query(
            "SELECT depth_slices, count(*) FROM benchmark_results GROUP BY 1 ORDER BY 1"
        )
    return {
        "cases": [str(case) for case in cases],
        "ids": [case.case_id for case in cases],
        "again": [case_from_json(json.loads(json.dumps(case_to_json(c)))).case_id for c in cases],
        "own": [one.case.shapes.depth_of_field for one in asked().cases],  # type: ignore[attr-defined]
        "fed": [input_shapes(MODEL, case.shapes) for case in cases],
        "store": dict(types).get("depth_slices"),
        "kept": kept,
        "null": [body["nulls"].get("depth_slices") for body in bodies],
        "table": printed("compare", "--by", "batch", "--db", "r.duckdb"),
        "chart": cells(rows),
        "page": [size(row) for row in rows],
        "title": [format_title(row) for row in rows],
        "imported": [
            _build_ids(Source("a table"), {"model": "m", **said}, {})["case_id"]
            for said in ({}, {"depth_slices": 2}, {"depth_slices": 4})
        ],
        "csv": Path("all.csv").read_text(encoding="utf-8"),
        "document": printed("compare", "--by", "batch", "--json", "--db", "r.duckdb"),
        "schema": describe_column(BY_NAME["depth_slices"]),
        "plan": json.loads(Path("again.json").read_text(encoding="utf-8"))["matrix"],
        "plan schema": json.loads(printed("run", "--plan-schema")),
        "measured by": OPTIONS.get("depth_slices"),
        "selector": SIZES.get("depth_slices"),
        "chosen for": automatic.SIZES.get("depth_slices"),
        "help": printed("run", "--help"),
        "option": refused(
            *("run", "bert-tiny", "--framework", "scripted", "--hardware", "cpu"),
            *("--depth-slices", "2", "4", "--dry-run"),
        ),
    }


OUT.write_text(json.dumps(found()), encoding="utf-8")
