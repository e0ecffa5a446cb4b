"""Importer of Qualcomm AI Hub's `perf.yaml`: a model per folder, measured on phones and boards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from accelbench.core.jsonc import DEEPEST, TOO_DEEP, Object
from accelbench.core.ranges import COUNT, MEMORY_MB
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import Family
from accelbench.exchange.imports.records import MalformedError, Record, read_text, to_record
from accelbench.exchange.imports.result_row import Source, build_result

_NULL = "tag:yaml.org,2002:null"


def read_yaml(file: Path) -> Record:
    """Parse a YAML document that is one object, with lines of keys and all values as text."""
    import yaml

    # The C loader, if it is installed, is ten times as fast.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = read_text(file)
    try:
        _refuse_hostile(file, yaml.parse(text, Loader=loader))
        root = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + 1
        raise MalformedError(file, line, None, error.problem or "it is not YAML") from error
    except yaml.YAMLError as error:
        raise MalformedError(file, None, None, f"it is not YAML: {error}") from error
    if not isinstance(root, yaml.MappingNode):
        raise MalformedError(file, 1, None, "an object was expected")
    return to_record(file, _convert_node(file, root))


def _refuse_hostile(file: Path, events: Iterable[Any]) -> None:
    """Refuse aliases and nesting before anything is built.

    A deeply nested document can end the process in C without a message. Ten lines of aliases can
    stand for a billion values.
    """
    depth = 0
    for event in events:
        kind = type(event).__name__
        line = event.start_mark.line + 1
        if kind == "AliasEvent":
            raise MalformedError(
                file, line, None, "aliases are not supported: write the value instead"
            )
        depth += kind in ("SequenceStartEvent", "MappingStartEvent")
        depth -= kind in ("SequenceEndEvent", "MappingEndEvent")
        if depth > DEEPEST:
            raise MalformedError(file, line, None, TOO_DEEP)


def _convert_node(file: Path, node: Any) -> Any:
    if isinstance(node.value, str):
        return None if node.tag == _NULL else node.value
    if node.id == "sequence":
        return [_convert_node(file, child) for child in node.value]
    made = Object(node.start_mark.line + 1)
    for key, value in node.value:
        line = key.start_mark.line + 1
        name = str(key.value)
        if name in made:
            raise MalformedError(file, line, name, "it occurs twice")
        made.lines[name] = line
        made[name] = _convert_node(file, value)
    return made


PATTERN = "perf.yaml"

_INFO_FILE = "info.yaml"
#: Platform of the unit that did most of the work.
_HARDWARE = {"NPU": "qnn", "CPU": "cpu", "GPU": "qualcomm-gpu"}
_FAMILIES = {
    "Computer Vision": Family.VISION, "Audio": Family.AUDIO, "Multimodal": Family.MULTIMODAL,
    "Generative AI": Family.TEXT_GENERATION,
}  # fmt: skip
_PASSED = "Passed"
#: Keys of every job that passed.
_JOB_KEYS = (
    *("job_id", "inference_time_milliseconds", "estimated_peak_memory_range_mb"),
    *("primary_compute_unit", "layer_counts", "tool_versions"),
)
_FAILED = {
    "status": "failed",
    "reason": "job_failed",
    "advice": "Look at the job where it was run.",
}
_PARAMETERS = re.compile(r"(\d{1,9}(?:\.\d+)?)\s*([KMB])", re.ASCII)
_SCALE = {"K": 1e3, "M": 1e6, "B": 1e9}
_SQUARE = re.compile(r"(\d{1,9})x\1", re.ASCII)


def read_rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield a row for each precision, component, device and runtime."""
    whole = read_yaml(file)
    model = _describe_model(file)
    for precision, of_precision in _iter_parts(whole.child("precisions")):
        components = of_precision.child("components")
        several = len(components.values) > 1
        for component, part in _iter_parts(components):
            if "performance_metrics" not in part.values:
                continue
            name = f"{model['model']}/{component}" if several else model["model"]
            for device, runtimes in _iter_parts(part.child("performance_metrics")):
                for runtime, job in _iter_parts(runtimes):
                    target = {"precision": precision, "device_name": device, "runtime": runtime}
                    columns = {**model, "model": name, **target, **_read_values(job)}
                    yield build_result(source, columns, _read_conditions(job), at=job)


def _read_values(job: Record) -> dict[str, Any]:
    unit = job.optional_text("primary_compute_unit") or "NPU"
    if unit not in _HARDWARE:
        job.refuse("primary_compute_unit", f"{in_quotes(unit)} is not a known unit")
    row: dict[str, Any] = {"hardware": _HARDWARE[unit], "batch_size": 1}
    status = job.text("job_status")
    if status != _PASSED:
        return {**row, **_FAILED, "message": f"its job ended as {status}"}
    for name in _JOB_KEYS:  # a file that was cut off may still be valid YAML
        if not job.values.get(name):
            job.refuse(name, "it is missing from a job that passed; the file may be cut off")
    ms = job.number("inference_time_milliseconds", above=0)
    row |= {"latency_mean_ms": ms, "throughput": 1e3 / ms, "throughput_unit": "inferences/s"}
    memory = job.child("estimated_peak_memory_range_mb")
    least, most = (memory.number(end, within=MEMORY_MB) for end in ("min", "max"))
    if least > most:
        memory.refuse("max", f"{most:g} is below min, {least:g}")
    if most > 0:  # 0 means that none was seen
        row["memory_peak_mb"] = most
        row["memory_source"] = "the upper end of AI Hub's estimate"
    counts = job.child("layer_counts")
    row["evidence"] = {"layers": {name: counts.whole(name, -1, COUNT) for name in counts.values}}
    return row


def _read_conditions(job: Record) -> dict[str, Any]:
    versions = job.child_or_empty("tool_versions")
    return job.texts("job_id") | {name: versions.text(name) for name in versions.values}


def _describe_model(file: Path) -> dict[str, Any]:
    info_file = file.with_name(_INFO_FILE)
    description: dict[str, Any] = {"model": file.resolve().parent.name}
    if not info_file.is_file():
        return description
    info = read_yaml(info_file)
    description["model"] = info.optional_text("id") or description["model"]
    if info.has("domain"):
        family = _FAMILIES.get(info.text("domain"))
        description["family"] = None if family is None else family.value
    if info.has("technical_details"):
        details = info.child("technical_details")
        description |= _parse_details({name: str(value) for name, value in details.values.items()})
    return description


def _parse_details(details: Mapping[str, str]) -> dict[str, Any]:
    size = _SQUARE.fullmatch(details.get("Input resolution", ""))
    count = _PARAMETERS.fullmatch(details.get("Number of parameters", ""))
    return {
        "image_size": int(size[1]) if size else None,
        "parameters": round(float(count[1]) * _SCALE[count[2]]) if count else None,
    }


def _iter_parts(record: Record) -> Iterator[tuple[str, Record]]:
    for name in record.values:
        yield str(name), record.child(name)
