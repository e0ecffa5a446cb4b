"""Qualcomm AI Hub's `perf.yaml`: one model per folder, measured on phones and boards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from accelbench.core.jsonc import DEEPEST, TOO_DEEP, Object
from accelbench.core.ranges import COUNT, MEMORY_MB
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import Family
from accelbench.exchange.imports.records import MalformedError, Record, record, text_of
from accelbench.exchange.imports.result_row import Source, imported

_NULL = "tag:yaml.org,2002:null"


def yaml_of(file: Path) -> Record:
    """Parse a YAML document that is one object, with lines of keys and all values as text."""
    import yaml

    # Written in C where it is there: ten times as fast.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = text_of(file)
    try:
        _refuse_hostile(file, yaml.parse(text, Loader=loader))
        root = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + 1
        raise MalformedError(file, line, None, error.problem or "it is no YAML") from error
    except yaml.YAMLError as error:
        raise MalformedError(file, None, None, f"it is no YAML: {error}") from error
    if not isinstance(root, yaml.MappingNode):
        raise MalformedError(file, 1, None, "an object was expected")
    return record(file, _value(file, root))


def _refuse_hostile(file: Path, events: Iterable[Any]) -> None:
    """Refuse aliases and nesting before anything is built.

    A nested document can end the process in C without a message. An alias stands for as much as it
    names: ten lines of them for a billion values.
    """
    depth = 0
    for event in events:
        kind = type(event).__name__
        line = event.start_mark.line + 1
        if kind == "AliasEvent":
            raise MalformedError(file, line, None, "an alias is not read: write what it stands for")
        depth += kind in ("SequenceStartEvent", "MappingStartEvent")
        depth -= kind in ("SequenceEndEvent", "MappingEndEvent")
        if depth > DEEPEST:
            raise MalformedError(file, line, None, TOO_DEEP)


def _value(file: Path, node: Any) -> Any:
    if isinstance(node.value, str):
        return None if node.tag == _NULL else node.value
    if node.id == "sequence":
        return [_value(file, child) for child in node.value]
    made = Object(node.start_mark.line + 1)
    for key, value in node.value:
        line = key.start_mark.line + 1
        name = str(key.value)
        if name in made:
            raise MalformedError(file, line, name, "it is there twice")
        made.lines[name] = line
        made[name] = _value(file, value)
    return made


PATTERN = "perf.yaml"

_BESIDE = "info.yaml"
#: The platform by the unit that did most of the work.
_HARDWARE = {"NPU": "qnn", "CPU": "cpu", "GPU": "qualcomm-gpu"}
_FAMILIES = {
    "Computer Vision": Family.VISION, "Audio": Family.AUDIO, "Multimodal": Family.MULTIMODAL,
    "Generative AI": Family.TEXT_GENERATION,
}  # fmt: skip
_PASSED = "Passed"
#: What every job has that has passed.
_WHOLE_JOB = (
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


def rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield a row for each precision, component, device and runtime."""
    whole = yaml_of(file)
    model = _described(file)
    for precision, of_precision in _parts(whole.of("precisions")):
        components = of_precision.of("components")
        several = len(components.values) > 1
        for component, part in _parts(components):
            if "performance_metrics" not in part.values:
                continue
            name = f"{model['model']}/{component}" if several else model["model"]
            for device, runtimes in _parts(part.of("performance_metrics")):
                for runtime, job in _parts(runtimes):
                    target = {"precision": precision, "device_name": device, "runtime": runtime}
                    columns = {**model, "model": name, **target, **_figures(job)}
                    yield imported(source, columns, _conditions(job), at=job)


def _figures(job: Record) -> dict[str, Any]:
    unit = job.text_if("primary_compute_unit") or "NPU"
    if unit not in _HARDWARE:
        job.wrong("primary_compute_unit", f"no unit is called {in_quotes(unit)}")
    row: dict[str, Any] = {"hardware": _HARDWARE[unit], "batch_size": 1}
    status = job.text("job_status")
    if status != _PASSED:
        return {**row, **_FAILED, "message": f"its job ended as {status}"}
    for name in _WHOLE_JOB:  # a file may end anywhere, and what is left be YAML all the same
        if not job.values.get(name):
            job.wrong(name, "it is missing: a job that has passed has it, the file may be cut off")
    ms = job.number("inference_time_milliseconds", above=0)
    row |= {"latency_mean_ms": ms, "throughput": 1e3 / ms, "throughput_unit": "inferences/s"}
    memory = job.of("estimated_peak_memory_range_mb")
    least, most = (memory.number(end, within=MEMORY_MB) for end in ("min", "max"))
    if least > most:
        memory.wrong("max", f"{most:g} is below min, {least:g}")
    if most > 0:  # 0 is written where none was seen
        row["memory_peak_mb"] = most
        row["memory_source"] = "the upper end of AI Hub's estimate"
    counts = job.of("layer_counts")
    row["evidence"] = {"layers": {name: counts.whole(name, -1, COUNT) for name in counts.values}}
    return row


def _conditions(job: Record) -> dict[str, Any]:
    versions = job.part("tool_versions")
    return job.texts("job_id") | {name: versions.text(name) for name in versions.values}


def _described(file: Path) -> dict[str, Any]:
    beside = file.with_name(_BESIDE)
    description: dict[str, Any] = {"model": file.resolve().parent.name}
    if not beside.is_file():
        return description
    info = yaml_of(beside)
    description["model"] = info.text_if("id") or description["model"]
    if info.has("domain"):
        family = _FAMILIES.get(info.text("domain"))
        description["family"] = None if family is None else family.value
    if info.has("technical_details"):
        details = info.of("technical_details")
        description |= _details({name: str(value) for name, value in details.values.items()})
    return description


def _details(details: Mapping[str, str]) -> dict[str, Any]:
    size = _SQUARE.fullmatch(details.get("Input resolution", ""))
    count = _PARAMETERS.fullmatch(details.get("Number of parameters", ""))
    return {
        "image_size": int(size[1]) if size else None,
        "parameters": round(float(count[1]) * _SCALE[count[2]]) if count else None,
    }


def _parts(record: Record) -> Iterator[tuple[str, Record]]:
    for name in record.values:
        yield str(name), record.of(name)
