"""Results as runs of MLflow: an experiment per model, a run per result.

The tag `accelbench.result_id` is written last: an interrupted run has none, and is exported again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import MissingExtraError, SurroundingsError
from accelbench.core.safe_text import visible
from accelbench.exchange.trackers.tracked_result import TrackedResult

if TYPE_CHECKING:
    from mlflow import MlflowClient

#: Prefix of our tags, and the tag that identifies a result.
_PREFIX = "accelbench."
_ID = f"{_PREFIX}result_id"
#: MLflow's own tags for the version in its table and the description on its page.
_COMMIT, _NOTE = "mlflow.source.git.commit", "mlflow.note.content"
#: Shortest limit of MLflow's stores for the value of a parameter or a tag.
_MAX_VALUE_LENGTH = 500
#: Characters of MLflow's error that a message contains.
_MAX_MESSAGE_LENGTH = 200
#: Runs per request.
_PAGE = 1000
#: Defaults for MLflow's client: no telemetry, seconds until it gives up an absent server, and
#: writing into a folder, although MLflow prefers a database.
_SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_ALLOW_FILE_STORE": "true",
}


def write_mlflow(place: str, results: Iterable[TrackedResult]) -> int:
    """Write results that MLflow does not have yet; return their number."""
    for name, known in _SETTINGS.items():
        os.environ.setdefault(name, known)
    try:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    except ModuleNotFoundError as error:
        raise MissingExtraError("mlflow-skinny", "mlflow", "Exporting to MLflow") from error
    address = place if "://" in place else Path(place).expanduser().resolve().as_uri()
    by_model = sorted(results, key=lambda result: result.model)
    try:
        client = MlflowClient(address)
        return sum(
            _write_model(client, model, list(group))
            for model, group in groupby(by_model, key=lambda result: result.model)
        )
    except (MlflowException, ModuleNotFoundError, OSError) as error:
        message = " ".join(str(error).split()) or type(error).__name__
        short = (
            message if len(message) <= _MAX_MESSAGE_LENGTH else f"{message[:_MAX_MESSAGE_LENGTH]}…"
        )
        raise SurroundingsError(
            f"MLflow did not take the results at {visible(address)}: {visible(short)}",
            "Name a folder, or the address of a server that runs."
            if address.startswith(("http:", "https:", "file:"))
            else "A database needs the whole of MLflow: pip install mlflow",
        ) from error


def _write_model(client: MlflowClient, model: str, results: list[TrackedResult]) -> int:
    experiment = _find_experiment(client, f"accelbench/{model}")
    known = _read_ids(client, experiment)
    new = [result for result in results if result.result_id not in known]
    for result in new:
        _write_run(client, experiment, result)
    return len(new)


def _find_experiment(client: MlflowClient, name: str) -> str:
    found = client.get_experiment_by_name(name)
    return str(found.experiment_id if found else client.create_experiment(name))


def _read_ids(client: MlflowClient, experiment: str) -> set[str]:
    ids: set[str] = set()
    token = None
    while True:
        page = client.search_runs([experiment], max_results=_PAGE, page_token=token)
        ids.update(run.data.tags[_ID] for run in page if _ID in run.data.tags)
        token = page.token
        if not token:
            return ids


def _write_run(client: MlflowClient, experiment: str, result: TrackedResult) -> None:
    from mlflow.entities import Metric, Param

    tags = {f"{_PREFIX}{name}": text for name, text in result.tags.items()}
    del tags[_ID]
    if commit := result.tags.get("git_commit"):
        tags[_COMMIT] = commit
    if result.notes:
        tags[_NOTE] = "\n\n".join(result.notes)
    began, ended = _to_ms(result.started), _to_ms(result.finished or result.started)
    made = client.create_run(
        experiment,
        start_time=began,
        run_name=result.name[:_MAX_VALUE_LENGTH],
        tags={name: text[:_MAX_VALUE_LENGTH] for name, text in tags.items()},
    )
    run = made.info.run_id
    client.log_text(run, _format_json(result.document), "result.json")
    if result.samples:
        client.log_text(run, _format_json(result.samples), "samples_ns.json")
    client.log_batch(
        run,
        metrics=[Metric(name, known, ended or 0, 0) for name, known in result.values.items()],
        params=[
            Param(name, str(known)[:_MAX_VALUE_LENGTH]) for name, known in result.parameters.items()
        ],
    )
    client.set_tag(run, _ID, result.result_id)
    client.set_terminated(run, "FINISHED" if result.is_ok else "FAILED", end_time=ended)


def _to_ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(1e3 * seconds)


def _format_json(known: Any) -> str:
    return json.dumps(known, indent=1, ensure_ascii=False, default=str) + "\n"
