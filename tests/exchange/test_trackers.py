"""Results in experiment trackers: what is known and nothing else, each result once."""

from __future__ import annotations

import json
import math
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_reports import FAILED as WITHOUT_FIGURES
from test_reports import row

from accelbench.core.errors import MissingExtraError, SurroundingsError, UsageError
from accelbench.core.facts import node_run_id
from accelbench.exchange.trackers.tensorboard_tracker import CURVES, SESSIONS
from accelbench.exchange.trackers.tracked_result import TrackedResult, to_tracked_result
from accelbench.exchange.trackers.trackers import (
    TRACKERS,
    TrackedExport,
    export_to_tracker,
    find_tracker,
)
from accelbench.fleet.fleet_nodes import format_node_name
from hostile_names import ACTING, NAMES

FAILED = {**WITHOUT_FIGURES, "latency_ci_low_ms": None, "latency_ci_high_ms": None}
RUN = {"label": "nightly", "git_commit": "c0ffee", "git_branch": "main"}


def launch(number: int = 0, batch: int = 8, **changes: Any) -> dict[str, Any]:
    median = 4.0 + number + batch / 8
    return row(
        result_id=f"id{number}x{batch}",
        launch=number,
        batch_size=batch,
        threads=2,
        device_name="A processor",
        finished_at="2026-01-01T00:00:02.000000Z",
    ) | {
        "latency_p50_ms": median,
        "latency_ci_low_ms": median - 0.1,
        "latency_ci_high_ms": median + 0.1,
        "latency_p99_rough": True,
        "samples": {"step": [4_000_000, 5_000_000]},
        **changes,
    }


def test_rows_of_a_tracker():
    # A figure that is not known is left out and is no zero.
    known = to_tracked_result(
        row(latency_p99_ms=None, latency_mean_ms=math.nan, extra={"x": 0.0}), RUN
    )
    assert known.values == {
        "latency_p50_ms": 4.0,
        "throughput": 2000.0,
        "memory_peak_mb": 100.0,
        "extra.x": 0.0,
    }
    # Parameters are what was asked and tags what came of it.
    known = to_tracked_result(launch(options={"jax.flag": True}, quality="converged"), RUN)
    asked = known.parameters
    assert {name: asked[name] for name in ("model", "batch_size", "threads", "device_name")} == {
        "model": "bert-tiny",
        "batch_size": 8,
        "threads": 2,
        "device_name": "A processor",
    }
    assert asked["option.jax.flag"] is True
    assert {"label", "git_commit", "git_branch"} <= known.tags.keys()
    assert (known.tags["quality"], known.tags["latency_p99_rough"]) == ("converged", "true")
    assert "batch 8" not in known.series
    assert known.name == f"{known.configuration} launch 0"
    # The run of a fleets node does not name its machine.
    fleet, node = "20260101-000000-abcdef0123", format_node_name("f00dbabe", "her-laptop.corp")
    result = to_tracked_result(row(run_id=node_run_id(fleet, node)), {})
    assert result.tags["run_id"] == result.document["run_id"] == f"{fleet}.f00dba"
    assert (
        to_tracked_result(row(run_id="import-v1.2-abcdef"), {}).tags["run_id"]
        == "import-v1.2-abcdef"
    )
    # Neither a person nor a host goes along.
    run = {**RUN, "environment": {"machine": "her-laptop"}, "command": "accelbench run secret"}
    path = "/home/ada/nets/secret.onnx"
    known = to_tracked_result(launch(weights=path, conditions={"file": path}, message=path), run)
    text = json.dumps([dict(known.parameters), dict(known.tags), known.notes, known.document])
    assert "her-laptop" not in text
    assert "accelbench run" not in text
    assert "ada" not in text
    assert text.count("~/nets/secret.onnx") == 5
    # Outputs that were wrong in one launch are no good in its neighbour.
    given: list[TrackedResult] = []
    kept = type(TRACKERS["mlflow"])("Kept", lambda _, every: len(given.extend(every) or given), str)
    wrong = {"status": "failed", "reason": "wrong_outputs", "verification": "failed"}
    alike = {"run_id": "r1", "case_id": "c"}
    rows = [launch(0, verification="ok", **alike), launch(1, **alike) | FAILED | wrong]
    export_to_tracker(kept, "", rows, {})
    assert [result.tags["verification"] for result in given] == ["failed", "failed"]


@pytest.mark.parametrize(
    ("changes", "mark"),
    [
        ({"emulated": True}, "(emulated)"),
        ({"provenance": "simulated"}, "(simulated)"),
        (
            {"provenance": "imported", "conditions": {"source": {"name": "a lab"}}},
            "(imported from a lab)",
        ),
    ],
)
def test_what_was_not_measured_on_that_device_says_so_in_its_name(changes, mark):
    known = to_tracked_result(row(**changes), {})
    assert known.name.endswith(mark)
    told = known.tags
    assert told.get("emulated") == "true" or told["provenance"] == changes["provenance"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_text_in_every_field_that_a_page_shows(name):
    known = to_tracked_result(
        row(model=name, device_name=name, warnings=[name], options={name: name}), {}
    )
    shown = [known.name, known.configuration, *map(str, known.parameters.values()), *known.notes]
    shown += [*known.parameters, *known.tags.values()]
    assert all(text.isprintable() for text in shown)
    assert name not in ACTING or name not in shown


def test_what_never_ran_is_left_out_and_counted(monkeypatch):
    given: list[TrackedResult] = []
    monkeypatch.setitem(
        TRACKERS,  # type: ignore[arg-type]
        "kept",
        type(TRACKERS["mlflow"])("Kept", lambda _, every: len(given.extend(every) or given), str),
    )
    rows = [
        launch(),
        launch(1, **FAILED),
        launch(2, status="unsupported"),
        launch(3, status="skipped"),
    ]
    done = export_to_tracker(TRACKERS["kept"], "here", rows, {"r1": RUN})
    assert done == TrackedExport(written=2, known=0, never_run=2)
    assert [result.is_ok for result in given] == [True, False]
    assert given[1].values == {}


def test_a_tracker_that_there_is_not_is_refused_with_the_near_one():
    with pytest.raises(UsageError, match=r"Did you mean mlflow\?"):
        find_tracker("mlfow")


@pytest.mark.parametrize(
    ("name", "package"), [("mlflow", "mlflow"), ("wandb", "wandb"), ("tensorboard", "tensorboardX")]
)
def test_a_package_that_is_missing_is_named_with_its_extra(name, package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=f"accelbench setup {name}"):
        export_to_tracker(TRACKERS[name], str(tmp_path / "x"), [launch()], {})
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", ["wandb", "tensorboard"])
def test_nothing_is_sent_to_an_address_from_here(name):
    with pytest.raises(UsageError, match="into a folder"):
        export_to_tracker(TRACKERS[name], "https://example.org", [launch()], {})


ROWS = [launch(n, batch) for n in range(2) for batch in (1, 8)]


def test_tensorboard_reads_curves_over_batch_sizes(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    done = export_to_tracker(TRACKERS["tensorboard"], str(tmp_path), ROWS, {"r1": RUN})
    assert done.written == 4
    curves = sorted((tmp_path / CURVES).iterdir())
    assert len(curves) == 2  # a launch each
    found = EventAccumulator(str(curves[0])).Reload()
    points = [(p.step, p.value) for p in found.Scalars(f"{CURVES}/latency_p50_ms")]
    number = int(points[0][1] - 4.125)
    assert points == [(1, 4.125 + number), (8, 5.0 + number)]
    assert found.Histograms("samples/step_ms")[0].histogram_value.num == 2
    assert not any("99" in tag for tag in found.Tags()["scalars"])
    assert {p.wall_time for p in found.Scalars(f"{CURVES}/throughput")} == {1767225600.0}


def test_tensorboard_reads_sessions_with_their_launches_in_one_group(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import metadata

    failed = launch(2, 1, **FAILED)
    export_to_tracker(TRACKERS["tensorboard"], str(tmp_path), [*ROWS, failed], {"r1": RUN})
    sessions = {}
    for folder in (tmp_path / SESSIONS).iterdir():
        found = EventAccumulator(str(folder)).Reload()
        content = found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
        about = metadata.parse_session_start_info_plugin_data(content)
        known = [t for t in found.Tags()["scalars"] if t.startswith(f"{SESSIONS}/latency")]
        sessions[folder.name] = about, known
    assert len(sessions) == 5
    groups = [about.group_name for about, _ in sessions.values()]
    assert sorted(map(groups.count, set(groups))) == [2, 3]  # the failed launch is one of batch 1
    for about, known in sessions.values():
        assert about.hparams["threads"].number_value == 2
        assert about.hparams["accelbench.provenance"].string_value == "measured"
        worked = about.hparams["accelbench.status"].string_value == "ok"
        assert (f"{SESSIONS}/latency_p50_ms" in known) is worked


def test_tensorboard_gets_each_result_once(tmp_path):
    tracker = TRACKERS["tensorboard"]
    assert export_to_tracker(tracker, str(tmp_path), ROWS[:1], {"r1": RUN}).written == 1
    assert export_to_tracker(tracker, str(tmp_path), ROWS[:2], {"r1": RUN}).written == 1
    before = sorted(tmp_path.rglob("*"))
    assert export_to_tracker(tracker, str(tmp_path), ROWS[:2], {"r1": RUN}) == TrackedExport(
        0, 2, 0
    )
    assert sorted(tmp_path.rglob("*")) == before
    (curve,) = (tmp_path / CURVES).iterdir()
    assert len(list(curve.glob("events.*"))) == 2
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(curve)).Reload()
    assert {p.step for p in found.Scalars(f"{CURVES}/latency_p50_ms")} == {1, 8}


def test_the_name_of_the_machine_is_in_no_name_of_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "her-laptop")
    export_to_tracker(TRACKERS["tensorboard"], str(tmp_path), ROWS[:1], {"r1": RUN})
    assert list(tmp_path.rglob("events.*"))
    assert not [path for path in tmp_path.rglob("*") if "her-laptop" in path.name]


def test_a_folder_that_cannot_be_written_is_said_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SurroundingsError, match="cannot be written"):
        export_to_tracker(TRACKERS["tensorboard"], str(tmp_path / "file"), ROWS[:1], {})


#: It asks for importlib_metadata below 10, and constraints.txt has 10.
_NO_MLFLOW = "mlflow-skinny takes older packages than the other extras are tested with"
_NO_WANDB = "wandb brings 62 MB and clients of telemetry, which nothing else here needs"


def test_mlflow_finds_the_runs(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason=_NO_MLFLOW)
    place = str(tmp_path / "runs")
    rows = [*ROWS, launch(2, **FAILED)]
    assert export_to_tracker(TRACKERS["mlflow"], place, rows[:3], {"r1": RUN}).written == 3
    again = export_to_tracker(TRACKERS["mlflow"], place, rows, {"r1": RUN})
    assert again == TrackedExport(2, 3, 0)
    client = mlflow.MlflowClient(Path(place).as_uri())
    experiment = client.get_experiment_by_name("accelbench/bert-tiny")
    runs = client.search_runs([experiment.experiment_id], "params.batch_size = '8'")
    by_launch = {run.data.tags["accelbench.launch"]: run for run in runs}
    assert sorted(by_launch) == ["0", "1", "2"]
    first = by_launch["0"]
    assert first.data.metrics["latency_p50_ms"] == 5.0
    assert first.data.metrics["latency_ci_low_ms"] == 4.9
    assert "latency_p99_ms" not in first.data.metrics
    assert first.data.tags["mlflow.source.git.commit"] == "c0ffee"
    assert first.info.start_time == 1767225600000
    assert by_launch["2"].info.status == "FAILED"
    assert "latency_p50_ms" not in by_launch["2"].data.metrics
    kept = mlflow.artifacts.load_text(f"{first.info.artifact_uri}/samples_ns.json")
    assert json.loads(kept) == {"step": [4_000_000, 5_000_000]}


def test_mlflow_says_in_a_sentence_that_nobody_answers(monkeypatch):
    pytest.importorskip("mlflow", reason=_NO_MLFLOW)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(SurroundingsError, match="MLflow did not take the results at http"):
        export_to_tracker(TRACKERS["mlflow"], "http://127.0.0.1:9", ROWS, {})


def logged(data: bytes) -> Iterator[bytes]:
    """The records of a file of wandb's: LevelDB's log behind a header of seven bytes."""
    at, whole = 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a whole record, or the last part of one
            yield whole
            whole = b""


def test_wandb_writes_runs_that_can_be_sent(tmp_path):
    pytest.importorskip("wandb", reason=_NO_WANDB)
    from wandb.proto.wandb_internal_pb2 import Record

    assert export_to_tracker(TRACKERS["wandb"], str(tmp_path), ROWS[:2], {"r1": RUN}).written == 2
    again = export_to_tracker(TRACKERS["wandb"], str(tmp_path), ROWS[:2], {"r1": RUN})
    assert again == TrackedExport(0, 2, 0)
    (file,) = tmp_path.glob("wandb/offline-run-*-id0x8/run-id0x8.wandb")
    records = [Record.FromString(data) for data in logged(file.read_bytes())]
    about = next(record.run for record in records if record.WhichOneof("record_type") == "run")
    config = {item.key: json.loads(item.value_json) for item in about.config.update}
    assert (about.project, config["batch_size"]) == ("accelbench", 8)
    assert config["accelbench"]["provenance"] == "measured"
    summary = {
        item.key or ".".join(item.nested_key): json.loads(item.value_json)
        for record in records
        for item in record.summary.update
    }
    assert summary["latency_p50_ms"] == 5.0
    assert "latency_p99_ms" not in summary
    assert summary["samples._type"] == "table-file"
    assert not list(tmp_path.rglob("requirements.txt"))
    assert not list(tmp_path.rglob("wandb-metadata.json"))
