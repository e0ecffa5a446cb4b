"""Results as runs of Weights & Biases, written into a folder: `wandb sync` sends them.

accelbench sends nothing, and no account is needed. A run's id is its result's, so that a server
stores it once. A mark in its folder shows that the run is complete.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import MissingExtraError, SurroundingsError, UsageError
from accelbench.core.safe_text import visible
from accelbench.exchange.trackers.tracked_result import TrackedResult

if TYPE_CHECKING:
    import wandb

PROJECT = "accelbench"
#: File in the folder of a complete run, with the result.
_MARK = "accelbench-result.json"
#: Limits of its server for a run's name and group, and for a tag.
_MAX_NAME_LENGTH, _MAX_TAG_LENGTH = 128, 64
#: Without these, wandb reports errors to its makers.
_SETTINGS = {"WANDB_ERROR_REPORTING": "false", "WANDB_SILENT": "true"}


def write_wandb(place: str, results: Iterable[TrackedResult]) -> int:
    """Write results that the folder does not have yet; return their number."""
    if "://" in place:
        raise UsageError(
            f"Runs of Weights & Biases are written into a folder, not to {visible(place)}.",
            "Name a folder; then `wandb sync` sends its content.",
        )
    for name, known in _SETTINGS.items():
        os.environ.setdefault(name, known)
    try:
        import wandb
    except ModuleNotFoundError as error:
        raise MissingExtraError("wandb", "wandb", "Exporting to Weights & Biases") from error
    folder = Path(place).expanduser().resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        known_ids = _read_ids(folder)
        new = [result for result in results if result.result_id not in known_ids]
        for result in new:
            _write_run(wandb, folder, result)
    except (OSError, wandb.errors.Error) as error:
        raise SurroundingsError(
            f"Weights & Biases did not write into {folder}: {visible(str(error))}",
            "Name another folder.",
        ) from error
    return len(new)


def _read_ids(folder: Path) -> set[str]:
    marks = (folder / "wandb").glob(f"offline-run-*/{_MARK}")
    return {mark.parent.name.rpartition("-")[2] for mark in marks}


def _write_run(module: Any, folder: Path, result: TrackedResult) -> None:
    settings = module.Settings(
        console="off",
        silent=True,
        disable_git=True,
        disable_code=True,
        x_disable_meta=True,
        x_disable_stats=True,
        x_disable_machine_info=True,
        x_save_requirements=False,
    )
    run: wandb.Run = module.init(
        mode="offline",
        dir=str(folder),
        project=PROJECT,
        id=result.result_id,
        name=result.name[:_MAX_NAME_LENGTH],
        group=result.configuration[:_MAX_NAME_LENGTH],
        job_type=str(result.parameters.get("mode") or ""),
        notes="\n".join(result.notes),
        tags=_build_tags(result),
        config={**result.parameters, "accelbench": dict(result.tags)},
        settings=settings,
    )
    try:
        if result.samples:
            table = module.Table(columns=["phase", "sample", "ns"])
            for phase, samples in result.samples.items():
                for number, sample in enumerate(samples):
                    table.add_data(phase, number, sample)
            run.log({"samples": table})
        run.summary.update(dict(result.values))
        place = Path(run.dir).parent
    finally:
        run.finish(exit_code=0 if result.is_ok else 1)
    text = json.dumps(result.document, indent=1, ensure_ascii=False, default=str)
    (place / _MARK).write_text(f"{text}\n", encoding="utf-8")


def _build_tags(result: TrackedResult) -> list[str]:
    words = [result.tags.get(name, "") for name in ("provenance", "quality", "source", "label")]
    if result.tags.get("emulated") == "true":
        words.append("emulated")
    if result.tags.get("verification") == "failed":
        words.append("wrong outputs")
    return list(dict.fromkeys(word[:_MAX_TAG_LENGTH] for word in words if word))
