"""YAML, TOML and JSON documents that know their lines, and optimum-benchmark's configs as plans.

    defaults: [benchmark, scenario: inference, launcher: process, backend: pytorch, _self_]
    backend: {device: cpu, model: google-bert/bert-base-uncased, no_weights: true}
    scenario: {input_shapes: {batch_size: 1, sequence_length: 128}}

A config is one case. A setting that changes what is measured and has no counterpart is refused; one
that changes only isolation or reporting is skipped with a note.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from accelbench.core.jsonc import TOO_DEEP, Object, is_too_deep
from accelbench.core.safe_text import in_quotes
from accelbench.exchange.imports.aihub import yaml_of
from accelbench.exchange.imports.records import MalformedError, Record, object_of, text_of

_SECTIONS = ("backend", "scenario", "launcher")
_PRECISIONS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
#: Keys of a backend that say nothing of what is timed, or say what is so anyway.
_PASSED_OVER = frozenset({"task", "library", "model_type", "processor", "processor_kwargs",
                          "version", "eval_mode", "low_cpu_mem_usage", "_target_",
                          "inter_op_num_threads", "export", "hub_kwargs"})  # fmt: skip
_READ = frozenset({"name", "model", "device", "device_ids", "no_weights", "torch_dtype", "seed",
                   "torch_compile", "intra_op_num_threads", "autocast_enabled",
                   "autocast_dtype"})  # fmt: skip
#: Their sizes by ours; a batch of images has a height and a width.
_SHAPES = {"batch_size": "batch_sizes", "sequence_length": "sequence_lengths"}
_SCENARIO_PASSED_OVER = frozenset({"memory", "latency", "energy", "duration", "_target_", "name"})
_SCENARIO_READ = frozenset({"iterations", "warmup_runs", "input_shapes", "generate_kwargs",
                            "call_kwargs", "new_tokens", "max_steps", "warmup_steps",
                            "training_arguments", "dataset_shapes"})  # fmt: skip
_NOTHING = frozenset({"false", "null", "none", "{}", "[]", ""})


def is_config(whole: Record) -> bool:
    """Return whether a document is one of theirs."""
    return "backend" in whole.values and "matrix" not in whole.values


def as_plan(whole: Record) -> tuple[Record, tuple[str, ...]]:
    """Return the same as a plan, and notes of what is passed over."""
    config = _Config(whole)
    config.backend()
    config.scenario()
    config.rest()
    plan = Object(whole.line)
    for name, (part, key, value) in config.found.items():
        section, _, own = name.rpartition(".")
        target = plan if not section else plan.setdefault(section, Object(part.line))
        target[own] = value
        target.lines[own] = (part.lines or {}).get(key, part.line)
    if whole.has("name"):
        plan["name"] = whole.text("name")
    plan["description"] = "A config of optimum-benchmark."
    return Record(whole.file, whole.line, plan, plan.lines), tuple(config.notes)


class _Config:
    """One config on its way."""

    def __init__(self, whole: Record) -> None:
        self._whole = whole
        self._defaults = _defaults(whole)
        self.found: dict[str, tuple[Record, str, Any]] = {}
        self.notes: list[str] = []

    def _take(self, name: str, part: Record, key: str, value: Any) -> None:
        self.found[name] = (part, key, value)

    def backend(self) -> None:
        part = self._whole.of("backend")
        engine = part.text("name") if part.has("name") else self._defaults.get("backend", "")
        if not engine:
            part.wrong("name", "it is missing, and defaults name no backend")
        # Their engines that are here as well have the same names; others are no runtimes.
        self._take("matrix.framework", part, "name", engine)
        self._take("models", part, "model", part.text("model"))
        if part.has("device"):
            self._device(part, engine)
        dtype = part.text("torch_dtype") if part.has("torch_dtype") else "float32"
        if dtype not in _PRECISIONS:
            part.wrong("torch_dtype", f"{in_quotes(dtype)} is no precision that is measured here")
        self._take("matrix.precision", part, "torch_dtype", self._precision(part, dtype))
        if _set(part, "torch_compile"):
            self._take("matrix.compile", part, "torch_compile", "true")
        if part.has("intra_op_num_threads"):
            self._take("matrix.threads", part, "intra_op_num_threads",
                       part.text("intra_op_num_threads"))  # fmt: skip
        if part.has("seed"):
            self._take("run.seed", part, "seed", part.text("seed"))
        self._take("run.weights", part, "no_weights",
                   "random" if _set(part, "no_weights") else "hub")  # fmt: skip
        self._others(part, _READ, _PASSED_OVER, "backend")

    def _precision(self, part: Record, dtype: str) -> str:
        if not _set(part, "autocast_enabled"):
            return _PRECISIONS[dtype]
        word = part.text("autocast_dtype") if part.has("autocast_dtype") else "float16"
        if word not in _PRECISIONS or dtype != "float32":
            part.wrong("autocast_enabled", "autocast is measured here of weights in float32")
        return f"amp-{_PRECISIONS[word]}"

    def _device(self, part: Record, engine: str) -> None:
        device = part.text("device")
        ordinals = part.text("device_ids").split(",") if part.has("device_ids") else []
        if len(ordinals) > 1:
            part.wrong("device_ids", "one device is measured, not several at once")
        if engine == "openvino":
            unit = device.lower()
            device = "openvino" if unit == "cpu" else f"openvino:{unit}"
        elif ordinals and device != "cpu":
            device = f"{device}:{ordinals[0].strip()}"
        self._take("matrix.hardware", part, "device", device)

    def scenario(self) -> None:
        whole = self._whole
        part = whole.of("scenario") if whole.has("scenario") else Record(whole.file, whole.line, {})
        name = (
            part.text("name") if part.has("name") else self._defaults.get("scenario", "inference")
        )
        if name not in ("inference", "training"):
            part.wrong("name", f"the scenario {in_quotes(name)} is none that is measured here")
        self._take("matrix.mode", part, "name", name)
        if name == "training":
            self._training(part)
        else:
            self._inference(part)
        self._others(part, _SCENARIO_READ, _SCENARIO_PASSED_OVER, "scenario")

    def _inference(self, part: Record) -> None:
        for theirs, ours in (("iterations", "run.iterations"), ("warmup_runs", "run.warmup")):
            if part.has(theirs) and not (theirs == "iterations" and part.text(theirs) == "0"):
                self._take(ours, part, theirs, part.text(theirs))
        shapes = (
            part.of("input_shapes")
            if part.has("input_shapes")
            else Record(part.file, part.line, {})
        )
        self._take("matrix.batch_sizes", shapes, "batch_size",
                   shapes.text("batch_size") if shapes.has("batch_size") else "2")  # fmt: skip
        self._sizes(shapes)
        tokens = part.of("generate_kwargs") if part.has("generate_kwargs") else None
        word = "max_new_tokens"
        if tokens is not None and tokens.has(word):
            self._take("matrix.new_tokens", tokens, word, tokens.text(word))
        elif part.has("new_tokens"):
            self._take("matrix.new_tokens", part, "new_tokens", part.text("new_tokens"))
        if tokens is not None:
            self._others(tokens, {word}, {"min_new_tokens"}, "scenario.generate_kwargs")
        calls = part.of("call_kwargs") if part.has("call_kwargs") else None
        if calls is not None:
            word = "num_inference_steps"
            if calls.has(word):
                self._take("matrix.denoising_steps", calls, word, calls.text(word))
            self._others(calls, {word}, (), "scenario.call_kwargs")

    def _training(self, part: Record) -> None:
        if part.has("warmup_steps"):
            self._take("run.warmup", part, "warmup_steps", part.text("warmup_steps"))
        if part.has("max_steps"):
            timed = part.whole("max_steps") - (
                part.whole("warmup_steps", above=-1) if part.has("warmup_steps") else 0
            )
            self._take("run.iterations", part, "max_steps", str(timed))
        arguments = part.of("training_arguments") if part.has("training_arguments") else None
        word = "per_device_train_batch_size"
        if arguments is None or not arguments.has(word):
            self._take("matrix.batch_sizes", part, "training_arguments", "2")
        else:
            self._take("matrix.batch_sizes", arguments, word, arguments.text(word))
        if arguments is not None:
            self._others(arguments, {word}, {"output_dir"}, "scenario.training_arguments")
        if part.has("dataset_shapes"):
            shapes = part.of("dataset_shapes")
            self._sizes(shapes, {"dataset_size"})

    def _sizes(self, shapes: Record, passed_over: Iterable[str] = ()) -> None:
        if shapes.has("sequence_length"):
            self._take("matrix.sequence_lengths", shapes, "sequence_length",
                       shapes.text("sequence_length"))  # fmt: skip
        if shapes.has("height"):
            side = shapes.text("height")
            if shapes.has("width") and shapes.text("width") != side:
                shapes.wrong("width", "images are square here")
            self._take("matrix.image_sizes", shapes, "height", side)
        known = {*_SHAPES, "height", "width"}
        self._others(shapes, known, {"num_channels", *passed_over}, "shapes")

    def rest(self) -> None:
        ours = {"defaults", "name", *_SECTIONS}
        for name in self._whole.values:
            if name not in ours:
                self._note(name)
        if self._whole.has("launcher"):
            self._note("launcher")
        for base in self._defaults.get("", "").split():
            self._note(f"defaults: {base}")

    def _others(
        self, part: Record, known: Iterable[str], passed_over: Iterable[str], where: str
    ) -> None:
        """What is left of a part: told, or refused where it would change what is measured."""
        for name in part.values:
            if name in known or not _set(part, name):
                continue
            if name not in passed_over:
                _refuse(part, name, where)
            self._note(f"{where}.{name}")

    def _note(self, what: str) -> None:
        self.notes.append(f"{self._whole.file.name}: {what} of optimum-benchmark is passed over.")


def _refuse(part: Record, name: str, where: str) -> NoReturn:
    part.wrong(name, f"{where}.{name} changes what is measured, and has no counterpart here")


def _set(part: Record, name: str) -> bool:
    value = part.values.get(name)
    if isinstance(value, (Mapping, list)):
        return bool(value)
    return str(value).strip().lower() not in _NOTHING


def _defaults(whole: Record) -> dict[str, str]:
    """Hydra's list of defaults: of each group what is taken; under "" files of the user's own."""
    if not whole.has("defaults"):
        return {}
    taken: dict[str, str] = {}
    bases = []
    for entry in whole.list("defaults"):
        if isinstance(entry, Mapping):
            taken |= {str(group): str(name) for group, name in entry.items()}
        elif entry not in ("benchmark", "_self_"):
            bases.append(str(entry))
    return {**taken, "": " ".join(bases)}


#: What a plan file ends in.
SUFFIXES = (".yaml", ".yml", ".toml", ".json")
_TOML_LINE = re.compile(r" \(at line (\d+), column \d+\)$| \(at end of document\)$")
#: A key before its value, or the last of a table's name.
_TOML_KEY = re.compile(r"""(?:^|[{,\[.])\s*["']?([\w$-]+)["']?\s*(?:=|\])""")


def document_of(file: Path) -> tuple[Record, tuple[str, ...]]:
    """What a file says, in the form of a plan, and what was passed over on the way."""
    suffix = file.suffix.lower()
    if suffix == ".json":
        return object_of(file), ()
    if suffix == ".toml":
        return toml_of(file), ()
    whole = yaml_of(file)
    return as_plan(whole) if is_config(whole) else (whole, ())


def toml_of(file: Path) -> Record:
    """Return a document of TOML; a key that is there once knows its line."""
    import tomllib

    text = text_of(file)
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = _TOML_LINE.search(str(error))
        line = int(where[1]) if where and where[1] else None
        why = _TOML_LINE.sub("", str(error))
        raise MalformedError(file, line, None, why[:1].lower() + why[1:]) from error
    except RecursionError:
        raise MalformedError(file, None, None, TOO_DEEP) from None
    if is_too_deep(value):
        raise MalformedError(file, None, None, TOO_DEEP)
    made = _Lines(text, value).object(value, 1)
    return Record(file, 1, made, made.lines)


class _Lines:
    """The lines of keys, which tomllib does not tell: in order, where a text has each as often."""

    def __init__(self, text: str, value: Mapping[str, Any]) -> None:
        self._lines: dict[str, list[int]] = {}
        for number, line in enumerate(text.splitlines(), 1):
            for key in _TOML_KEY.findall(line):
                self._lines.setdefault(key, []).append(number)
        counts = Counter(_keys(value))
        self._known = {key for key, lines in self._lines.items() if len(lines) == counts[key]}
        self._next: Counter[str] = Counter()

    def object(self, value: Mapping[str, Any], line: int) -> Object:
        made = Object(line)
        for key, entry in value.items():
            if key in self._known:
                made.lines[key] = self._lines[key][self._next[key]]
                self._next[key] += 1
            made[key] = self._converted(entry, made.lines.get(key, line))
        made.line = min(made.lines.values(), default=line)
        return made

    def _converted(self, entry: Any, line: int) -> Any:
        if isinstance(entry, Mapping):
            return self.object(entry, line)
        return [self._converted(part, line) for part in entry] if isinstance(entry, list) else entry


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from value
    children = value.values() if isinstance(value, Mapping) else value
    for child in children:
        if isinstance(child, (Mapping, list)):
            yield from _keys(child)
