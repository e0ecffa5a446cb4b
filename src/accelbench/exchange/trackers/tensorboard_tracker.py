"""Results as event files of TensorBoard, written by tensorboardX in two trees.

`by_batch_size/` has a curve over batch sizes per series of a run. `configurations/` has each result
as a session of the HPARAMS page, with the launches of a configuration as one group. A folder is
created completely or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.errors import MissingExtraError, SurroundingsError, UsageError
from accelbench.core.jsonc import loads
from accelbench.core.safe_text import visible
from accelbench.exchange.result_file import safe_name
from accelbench.exchange.trackers.tracked_result import TrackedResult

if TYPE_CHECKING:
    from tensorboardX import SummaryWriter
    from tensorboardX.proto.plugin_hparams_pb2 import HParamsPluginData

CURVES, SESSIONS = "by_batch_size", "configurations"
#: File with the ids of a folder's results.
_MARK = "accelbench.json"
#: Characters of a series' name in a folder's name, which also has a digest.
_MAX_NAME_LENGTH = 150
_PLUGIN = "hparams"
#: Name prefix of the files that TensorBoard reads.
_EVENTS_PREFIX = "events.out.tfevents"
#: Values shown as curves; the table of sessions has all values.
_CURVES = ("latency", "throughput", "memory", "tokens", "energy", "ttft", "tpot")


def write_tensorboard(place: str, results: Iterable[TrackedResult]) -> int:
    """Write results that the folder does not have yet; return their number."""
    if "://" in place:
        raise UsageError(
            f"Event files are written into a folder, not to {visible(place)}.", "Name a folder."
        )
    try:
        import tensorboardX  # noqa: F401 — before anything is created
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "tensorboardX", "tensorboard", "Exporting to TensorBoard"
        ) from error
    folder = Path(place).expanduser().resolve()
    every = list(results)
    try:
        new = sum(_write_session(folder / SESSIONS, result) for result in every)
        for group in _group_by_series(every):
            _write_curves(folder / CURVES, group)
    except OSError as error:
        raise SurroundingsError(
            f"Event files cannot be written into {folder}: {error.strerror}", "Name another folder."
        ) from error
    return new


def _group_by_series(results: Iterable[TrackedResult]) -> list[list[TrackedResult]]:
    def key(result: TrackedResult) -> tuple[str, ...]:
        return (result.series, *(result.tags.get(n, "") for n in ("run_id", "arm", "launch")))

    known = [result for result in results if result.batch and result.values]
    return [list(group) for _, group in groupby(sorted(known, key=key), key=key)]


def _write_curves(parent: Path, group: list[TrackedResult]) -> None:
    first = group[0]
    tags = first.tags
    identity = [tags.get(name, "") for name in ("run_id", "arm", "launch")]
    place = parent / _folder_name(first.series, *identity)
    written_ids = _read_ids(place)
    new = sorted(
        (r for r in group if r.result_id not in written_ids), key=lambda result: result.batch
    )
    if not new:
        return

    def write(writer: SummaryWriter) -> None:
        for result in new:
            for name, known in result.values.items():
                if name.startswith(_CURVES):
                    writer.add_scalar(f"{CURVES}/{name}", known, result.batch, result.started)
            for phase, samples in result.samples.items():
                import numpy as np

                values = np.asarray(samples, dtype=np.float64) / 1e6
                if len(values):
                    writer.add_histogram(
                        f"samples/{phase}_ms", values, result.batch, walltime=result.started
                    )

    _write_folder(place, write, [*written_ids, *(result.result_id for result in new)])


def _write_session(parent: Path, result: TrackedResult) -> bool:
    place = parent / _folder_name(result.name, result.result_id)
    if result.result_id in _read_ids(place):
        return False

    def write(writer: SummaryWriter) -> None:
        figures = {f"{SESSIONS}/{name}": known for name, known in result.values.items()}
        for tag, about in _session_messages(result, list(figures)):
            _add_summary(writer, tag, about, result.started)
        for name, known in figures.items():
            writer.add_scalar(name, known, 0, result.started)
        if result.notes:
            writer.add_text("notes", "\n\n".join(result.notes), 0, result.started)

    _write_folder(place, write, [result.result_id])
    return True


def _session_messages(
    result: TrackedResult, figures: list[str]
) -> list[tuple[str, HParamsPluginData]]:
    """Return the three messages of a session of the HPARAMS page."""
    from tensorboardX.proto.api_pb2 import Experiment, HParamInfo, MetricInfo, MetricName, Status
    from tensorboardX.proto.plugin_hparams_pb2 import (
        HParamsPluginData,
        SessionEndInfo,
        SessionStartInfo,
    )

    began, ended = result.started or 0.0, result.finished or result.started or 0.0
    group = " ".join(
        (result.configuration, *(result.tags.get(name, "") for name in ("run_id", "arm")))
    ).strip()
    start = SessionStartInfo(group_name=group, start_time_secs=began)
    asked = {
        **result.parameters,
        **{f"accelbench.{k}": v for k, v in _session_facts(result).items()},
    }
    for name, known in asked.items():
        if isinstance(known, bool):
            start.hparams[name].bool_value = known
        elif isinstance(known, (int, float)):
            start.hparams[name].number_value = known
        else:
            start.hparams[name].string_value = known
    experiment = Experiment(
        hparam_infos=[HParamInfo(name=name) for name in asked],
        metric_infos=[MetricInfo(name=MetricName(tag=tag)) for tag in figures],
    )
    status = Status.Value("STATUS_SUCCESS" if result.is_ok else "STATUS_FAILURE")
    end = SessionEndInfo(status=status, end_time_secs=ended)
    return [
        ("_hparams_/experiment", HParamsPluginData(experiment=experiment, version=0)),
        ("_hparams_/session_start_info", HParamsPluginData(session_start_info=start, version=0)),
        ("_hparams_/session_end_info", HParamsPluginData(session_end_info=end, version=0)),
    ]


def _session_facts(result: TrackedResult) -> dict[str, str]:
    names = ("status", "provenance", "source", "emulated", "quality", "verification", "label")
    return {name: result.tags[name] for name in (*names, "git_commit") if name in result.tags}


def _add_summary(
    writer: SummaryWriter, tag: str, about: HParamsPluginData, moment: float | None
) -> None:
    from tensorboardX.proto.summary_pb2 import Summary, SummaryMetadata

    data = SummaryMetadata.PluginData(plugin_name=_PLUGIN, content=about.SerializeToString())
    value = Summary.Value(tag=tag, metadata=SummaryMetadata(plugin_data=data))
    writer.file_writer.add_summary(Summary(value=[value]), walltime=moment)


def _folder_name(name: str, *identity: str) -> str:
    mark = hashlib.sha256("\0".join([name, *identity]).encode()).hexdigest()[:10]
    return f"{safe_name(name)[:_MAX_NAME_LENGTH]}-{mark}"


def _read_ids(place: Path) -> list[str]:
    mark = place / _MARK
    if not mark.is_file():
        return []
    try:
        return [str(known) for known in loads(mark.read_text(encoding="utf-8"))]
    except ValueError:
        return []


def _write_folder(place: Path, write: Callable[[SummaryWriter], None], ids: list[str]) -> None:
    """Let a writer fill a temporary folder, whose files then move to the place."""
    from tensorboardX import SummaryWriter

    part = place.with_name(f".{place.name}.{os.getpid()}.part")
    part.mkdir(parents=True)
    try:
        writer = SummaryWriter(str(part))
        try:
            write(writer)
        finally:
            writer.close()
        for file in part.glob(f"{_EVENTS_PREFIX}*"):  # their names contain the host name
            file.rename(part / f"{_EVENTS_PREFIX}.{time.time_ns()}.{os.urandom(4).hex()}")
        (part / _MARK).write_text(json.dumps(ids) + "\n", encoding="utf-8")
        if not place.exists():
            part.rename(place)
            return
        for file in sorted(part.iterdir(), key=lambda file: file.name == _MARK):
            file.replace(place / file.name)
    finally:
        shutil.rmtree(part, ignore_errors=True)
