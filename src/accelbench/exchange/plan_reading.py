"""YAML, TOML and JSON documents with line numbers, and optimum-benchmark's configs as plans.

    defaults: [benchmark, scenario: inference, launcher: process, backend: pytorch, _self_]
    backend: {device: cpu, model: google-bert/bert-base-uncased, no_weights: true}
    scenario: {input_shapes: {batch_size: 1, sequence_length: 128}}

A config is one case. A setting that changes the measurement and has no counterpart is refused; one
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
from accelbench.exchange.imports.aihub import read_yaml
from accelbench.exchange.imports.records import MalformedError, Record, read_object, read_text

_SECTIONS = ("backend", "scenario", "launcher")
_PRECISIONS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
#: Keys of a backend that do not change the timed work, or only state the default.
_IGNORED = frozenset({"task", "library", "model_type", "processor", "processor_kwargs",
                          "version", "eval_mode", "low_cpu_mem_usage", "_target_",
                          "inter_op_num_threads", "export", "hub_kwargs"})  # fmt: skip
_READ = frozenset({"name", "model", "device", "device_ids", "no_weights", "torch_dtype", "seed",
                   "torch_compile", "intra_op_num_threads", "autocast_enabled",
                   "autocast_dtype"})  # fmt: skip
#: optimum-benchmark's sizes and ours; a batch of images has a height and a width.
_SHAPES = {"batch_size": "batch_sizes", "sequence_length": "sequence_lengths"}
_SCENARIO_IGNORED = frozenset({"memory", "latency", "energy", "duration", "_target_", "name"})
_SCENARIO_READ = frozenset({"iterations", "warmup_runs", "input_shapes", "generate_kwargs",
                            "call_kwargs", "new_tokens", "max_steps", "warmup_steps",
                            "training_arguments", "dataset_shapes"})  # fmt: skip
_UNSET = frozenset({"false", "null", "none", "{}", "[]", ""})


def is_config(whole: Record) -> bool:
    """Return whether a document is a config of optimum-benchmark."""
    return "backend" in whole.values and "matrix" not in whole.values


def config_to_plan(whole: Record) -> tuple[Record, tuple[str, ...]]:
    """Return a config as a plan, with notes about ignored settings."""
    config = _Config(whole)
    config.read_backend()
    config.read_scenario()
    config.note_rest()
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
    """Conversion of one config."""

    def __init__(self, whole: Record) -> None:
        self._whole = whole
        self._defaults = _read_defaults(whole)
        self.found: dict[str, tuple[Record, str, Any]] = {}
        self.notes: list[str] = []

    def _take(self, name: str, part: Record, key: str, value: Any) -> None:
        self.found[name] = (part, key, value)

    def read_backend(self) -> None:
        part = self._whole.child("backend")
        engine = part.text("name") if part.has("name") else self._defaults.get("backend", "")
        if not engine:
            part.refuse("name", "it is missing, and defaults name no backend")
        # Engines that both programs support have the same names; others are not valid runtimes.
        self._take("matrix.framework", part, "name", engine)
        self._take("models", part, "model", part.text("model"))
        if part.has("device"):
            self._read_device(part, engine)
        dtype = part.text("torch_dtype") if part.has("torch_dtype") else "float32"
        if dtype not in _PRECISIONS:
            part.refuse(
                "torch_dtype", f"{in_quotes(dtype)} is not a precision that accelbench measures"
            )
        self._take("matrix.precision", part, "torch_dtype", self._read_precision(part, dtype))
        if _is_set(part, "torch_compile"):
            self._take("matrix.compile", part, "torch_compile", "true")
        if part.has("intra_op_num_threads"):
            self._take("matrix.threads", part, "intra_op_num_threads",
                       part.text("intra_op_num_threads"))  # fmt: skip
        if part.has("seed"):
            self._take("run.seed", part, "seed", part.text("seed"))
        self._take("run.weights", part, "no_weights",
                   "random" if _is_set(part, "no_weights") else "hub")  # fmt: skip
        self._check_others(part, _READ, _IGNORED, "backend")

    def _read_precision(self, part: Record, dtype: str) -> str:
        if not _is_set(part, "autocast_enabled"):
            return _PRECISIONS[dtype]
        word = part.text("autocast_dtype") if part.has("autocast_dtype") else "float16"
        if word not in _PRECISIONS or dtype != "float32":
            part.refuse("autocast_enabled", "autocast is only measured with float32 weights")
        return f"amp-{_PRECISIONS[word]}"

    def _read_device(self, part: Record, engine: str) -> None:
        device = part.text("device")
        ordinals = part.text("device_ids").split(",") if part.has("device_ids") else []
        if len(ordinals) > 1:
            part.refuse("device_ids", "one device is measured, not several at once")
        if engine == "openvino":
            unit = device.lower()
            device = "openvino" if unit == "cpu" else f"openvino:{unit}"
        elif ordinals and device != "cpu":
            device = f"{device}:{ordinals[0].strip()}"
        self._take("matrix.hardware", part, "device", device)

    def read_scenario(self) -> None:
        whole = self._whole
        part = (
            whole.child("scenario") if whole.has("scenario") else Record(whole.file, whole.line, {})
        )
        name = (
            part.text("name") if part.has("name") else self._defaults.get("scenario", "inference")
        )
        if name not in ("inference", "training"):
            part.refuse("name", f"the scenario {in_quotes(name)} is not supported")
        self._take("matrix.mode", part, "name", name)
        if name == "training":
            self._read_training(part)
        else:
            self._read_inference(part)
        self._check_others(part, _SCENARIO_READ, _SCENARIO_IGNORED, "scenario")

    def _read_inference(self, part: Record) -> None:
        for theirs, ours in (("iterations", "run.iterations"), ("warmup_runs", "run.warmup")):
            if part.has(theirs) and not (theirs == "iterations" and part.text(theirs) == "0"):
                self._take(ours, part, theirs, part.text(theirs))
        shapes = (
            part.child("input_shapes")
            if part.has("input_shapes")
            else Record(part.file, part.line, {})
        )
        self._take("matrix.batch_sizes", shapes, "batch_size",
                   shapes.text("batch_size") if shapes.has("batch_size") else "2")  # fmt: skip
        self._read_sizes(shapes)
        tokens = part.child("generate_kwargs") if part.has("generate_kwargs") else None
        word = "max_new_tokens"
        if tokens is not None and tokens.has(word):
            self._take("matrix.new_tokens", tokens, word, tokens.text(word))
        elif part.has("new_tokens"):
            self._take("matrix.new_tokens", part, "new_tokens", part.text("new_tokens"))
        if tokens is not None:
            self._check_others(tokens, {word}, {"min_new_tokens"}, "scenario.generate_kwargs")
        calls = part.child("call_kwargs") if part.has("call_kwargs") else None
        if calls is not None:
            word = "num_inference_steps"
            if calls.has(word):
                self._take("matrix.denoising_steps", calls, word, calls.text(word))
            self._check_others(calls, {word}, (), "scenario.call_kwargs")

    def _read_training(self, part: Record) -> None:
        if part.has("warmup_steps"):
            self._take("run.warmup", part, "warmup_steps", part.text("warmup_steps"))
        if part.has("max_steps"):
            timed = part.whole("max_steps") - (
                part.whole("warmup_steps", above=-1) if part.has("warmup_steps") else 0
            )
            self._take("run.iterations", part, "max_steps", str(timed))
        arguments = part.child("training_arguments") if part.has("training_arguments") else None
        word = "per_device_train_batch_size"
        if arguments is None or not arguments.has(word):
            self._take("matrix.batch_sizes", part, "training_arguments", "2")
        else:
            self._take("matrix.batch_sizes", arguments, word, arguments.text(word))
        if arguments is not None:
            self._check_others(arguments, {word}, {"output_dir"}, "scenario.training_arguments")
        if part.has("dataset_shapes"):
            shapes = part.child("dataset_shapes")
            self._read_sizes(shapes, {"dataset_size"})

    def _read_sizes(self, shapes: Record, ignored: Iterable[str] = ()) -> None:
        if shapes.has("sequence_length"):
            self._take("matrix.sequence_lengths", shapes, "sequence_length",
                       shapes.text("sequence_length"))  # fmt: skip
        if shapes.has("height"):
            side = shapes.text("height")
            if shapes.has("width") and shapes.text("width") != side:
                shapes.refuse("width", "images are square here")
            self._take("matrix.image_sizes", shapes, "height", side)
        known = {*_SHAPES, "height", "width"}
        self._check_others(shapes, known, {"num_channels", *ignored}, "shapes")

    def note_rest(self) -> None:
        ours = {"defaults", "name", *_SECTIONS}
        for name in self._whole.values:
            if name not in ours:
                self._note_ignored(name)
        if self._whole.has("launcher"):
            self._note_ignored("launcher")
        for base in self._defaults.get("", "").split():
            self._note_ignored(f"defaults: {base}")

    def _check_others(
        self, part: Record, known: Iterable[str], ignored: Iterable[str], where: str
    ) -> None:
        """Note the remaining keys of a part; refuse those that would change the measurement."""
        for name in part.values:
            if name in known or not _is_set(part, name):
                continue
            if name not in ignored:
                _refuse(part, name, where)
            self._note_ignored(f"{where}.{name}")

    def _note_ignored(self, what: str) -> None:
        self.notes.append(f"{self._whole.file.name}: {what} of optimum-benchmark is ignored.")


def _refuse(part: Record, name: str, where: str) -> NoReturn:
    part.refuse(name, f"{where}.{name} changes the measurement, and has no counterpart here")


def _is_set(part: Record, name: str) -> bool:
    value = part.values.get(name)
    if isinstance(value, (Mapping, list)):
        return bool(value)
    return str(value).strip().lower() not in _UNSET


def _read_defaults(whole: Record) -> dict[str, str]:
    """Return the choice of each group in Hydra's defaults; "" has the user's own files."""
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


#: Suffixes of plan files.
SUFFIXES = (".yaml", ".yml", ".toml", ".json")
_TOML_LINE = re.compile(r" \(at line (\d+), column \d+\)$| \(at end of document\)$")
#: A key before its value, or the last of a table's name.
_TOML_KEY = re.compile(r"""(?:^|[{,\[.])\s*["']?([\w$-]+)["']?\s*(?:=|\])""")


def read_document(file: Path) -> tuple[Record, tuple[str, ...]]:
    """Return a file's content in the form of a plan, and notes about ignored settings."""
    suffix = file.suffix.lower()
    if suffix == ".json":
        return read_object(file), ()
    if suffix == ".toml":
        return read_toml(file), ()
    whole = read_yaml(file)
    return config_to_plan(whole) if is_config(whole) else (whole, ())


def read_toml(file: Path) -> Record:
    """Parse a TOML document, with the line of each key that occurs once."""
    import tomllib

    text = read_text(file)
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
    made = _Lines(text, value).to_object(value, 1)
    return Record(file, 1, made, made.lines)


class _Lines:
    """Lines of keys, which tomllib does not report.

    A key's lines are known, in order, if the text has it as often as the parsed document.
    """

    def __init__(self, text: str, value: Mapping[str, Any]) -> None:
        self._lines: dict[str, list[int]] = {}
        for number, line in enumerate(text.splitlines(), 1):
            for key in _TOML_KEY.findall(line):
                self._lines.setdefault(key, []).append(number)
        counts = Counter(_iter_keys(value))
        self._known = {key for key, lines in self._lines.items() if len(lines) == counts[key]}
        self._next: Counter[str] = Counter()

    def to_object(self, value: Mapping[str, Any], line: int) -> Object:
        made = Object(line)
        for key, entry in value.items():
            if key in self._known:
                made.lines[key] = self._lines[key][self._next[key]]
                self._next[key] += 1
            made[key] = self._convert(entry, made.lines.get(key, line))
        made.line = min(made.lines.values(), default=line)
        return made

    def _convert(self, entry: Any, line: int) -> Any:
        if isinstance(entry, Mapping):
            return self.to_object(entry, line)
        return [self._convert(part, line) for part in entry] if isinstance(entry, list) else entry


def _iter_keys(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from value
    children = value.values() if isinstance(value, Mapping) else value
    for child in children:
        if isinstance(child, (Mapping, list)):
            yield from _iter_keys(child)
