"""The model that a file is: its sizes, its inputs and their values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.free_dimensions import OPEN, format_sizes
from accelbench.core.model import FileFormat, FileOutput, InputSpec, ModelFile, ModelSpec
from accelbench.core.precision import PRECISIONS
from accelbench.core.processes import NoAnswerError, request_answers
from accelbench.core.safe_text import in_quotes, visible
from accelbench.core.vocabulary import Architecture, Family
from accelbench.models.file_models.given_inputs import (
    BATCH,
    IMAGE,
    OPTION,
    SEQUENCE,
    GivenInput,
    named_sizes,
    refuse_unknown_inputs,
    shape_text,
)
from accelbench.models.file_models.kinds import FileRefusedError, format_of, refuse_missing_reader

#: The set of models that are files.
FILES = "files"
#: Names that say nothing of what is in a file: its folder's is put before them.
_SAYS_NOTHING = {"model", "openvino_model", "graph", "network", "exported", "export", "saved_model"}
_DEFAULT_SEQUENCE, _DEFAULT_IMAGE = 128, 224
#: Of one item of an engine's matrix, where its file states no sizes.
_MOST_AXES = 4
#: A graph of 200,000 operators took 9 s; a file of 2 GB, 4 s.
_PATIENCE_SECONDS = 300.0
#: Of an input of which its owner said what it holds.
_GIVEN = "as given"


def model_of_file(word: str, given: Mapping[str, GivenInput] | None = None) -> ModelSpec:
    """Return the model of a file, PATH or NAME=PATH, or raise UsageError with the reason."""
    name, path = path_of(word)
    try:
        refuse_missing_reader(format_of(path), f"Measuring {path.suffix} files")
        found = _looked_at(path, given or {})
        _refuse_unknown(given or {}, found)
        spec = _spec(name or name_of(path), path, found, given or {})
        return replace(spec, aliases=() if word == spec.id else (word,))
    except FileRefusedError as error:
        raise UsageError(
            f"{in_quotes(str(path))} is not measured: {error.within}", error.advice
        ) from error


def _refuse_unknown(given: Mapping[str, GivenInput], found: Mapping[str, Any]) -> None:
    refuse_unknown_inputs(given, [entry["name"] for entry in found["inputs"]])


def describe_file_model(spec: ModelSpec) -> list[str]:
    """Return a sentence for each input of a model that is a file."""
    file = spec.file
    if file is None:
        return []
    return [
        f"{spec.id} reads {entry.name}, {entry.dtype} {shape_text(entry.shape)}: {held}."
        for entry in spec.inputs
        for held in (file.drawn[entry.name] if file.drawn[entry.name] != _GIVEN else _held(entry),)
    ]


def _held(entry: InputSpec) -> str:
    if entry.constant is not None:
        return f"{entry.constant:g} everywhere, as it was said"
    if entry.row is not None:
        return f"{', '.join(f'{value:g}' for value in entry.row)}, as it was said"
    return f"{entry.low} to {entry.high - 1}, as it was said"


def placed_in(word: str, folder: Path) -> str:
    """Return a file's word with its path, relative to a folder, made absolute."""
    name, path = path_of(word)
    whole = str((folder / path).absolute())
    return f"{name}={whole}" if name else whole


def path_of(word: str) -> tuple[str, Path]:
    """Return the name that a word gives to a file, or "", and the file."""
    path = Path(word).expanduser()
    name, given, rest = word.partition("=")
    if given and name and rest and not path.exists() and "/" not in name:
        return name.strip(), Path(rest).expanduser()
    return "", path


def name_of(path: Path) -> str:
    """Return the name of a file's model in results: the file's, with its folder's if needed."""
    stem = path.stem.lower().removesuffix(".ncnn")
    folder = path.absolute().parent.name
    says_nothing = stem in _SAYS_NOTHING or stem.rpartition("_")[0] in _SAYS_NOTHING
    return visible(f"{folder}/{path.name}" if says_nothing and folder else path.name)


def _looked_at(path: Path, given: Mapping[str, GivenInput]) -> dict[str, Any]:
    shapes = {name: entry.shape for name, entry in given.items() if entry.shape is not None}
    asked = ("accelbench.models.file_models.looking", [str(path), json.dumps(shapes)])
    try:
        answer, *counts = request_answers(*asked, _PATIENCE_SECONDS, "Looking at it")
    except NoAnswerError as error:
        raise FileRefusedError(str(error), error.advice) from error
    if "error" in answer:
        raise FileRefusedError(answer["error"], answer["advice"])
    return {**answer, **(counts[0] if counts else {"uncounted": "counting it failed"})}


def _spec(
    name: str, path: Path, found: Mapping[str, Any], given: Mapping[str, GivenInput]
) -> ModelSpec:
    if found["precision"] not in PRECISIONS:
        raise FileRefusedError(
            f"Most of its weights are stored in {found['precision']}, which is not measured.",
            f"Measured are {', '.join(p for p in PRECISIONS if '-' not in p)}: export it in one.",
        )
    inputs = tuple(
        _following(_input(entry, given.get(entry["name"])), found) for entry in found["inputs"]
    )
    sizes = {size for entry in inputs for size in entry.shape if isinstance(size, str)}
    return ModelSpec(
        id=name,
        family=Family.UNKNOWN,
        architecture=Architecture.UNKNOWN,
        modalities=(),
        task="",
        size="",
        builder=f"file:{found['format']}",
        config={},
        inputs=inputs,
        parameters=int(found["weights"]),
        sequence=_DEFAULT_SEQUENCE if SEQUENCE in sizes else None,
        image=_DEFAULT_IMAGE if IMAGE in sizes else None,
        dims=format_sizes(dict.fromkeys(sizes - {BATCH, SEQUENCE, IMAGE}, OPEN)) or None,
        sets=(FILES,),
        file=ModelFile(
            format=FileFormat(found["format"]),
            path=str(path.absolute()),
            digest=found["digest"],
            stamp=found["stamp"],
            precision=found["precision"],
            outputs=tuple(
                FileOutput(entry["name"], entry["dtype"], tuple(entry["shape"]))
                for entry in found["outputs"]
            ),
            beside=tuple(found["beside"]),
            fixed_batch=found.get("fixed_batch", None if BATCH in sizes else items_of(inputs)),
            drawn={
                entry["name"]: _told(given.get(entry["name"])) or entry["drawn"]
                for entry in found["inputs"]
            },
            counted=found.get("counted"),
            uncounted=found.get("uncounted", ""),
            least=found.get("least", {}),
            most=found.get("most", {}),
            casts=found.get("casts", True),
            custom=tuple(found.get("custom", ())),
            renamed=_renamed_sizes(found["inputs"], inputs),
        ),
    )


def _renamed_sizes(
    entries: Sequence[Mapping[str, Any]], inputs: Sequence[InputSpec]
) -> dict[str, str]:
    """Return the free sizes that inputs here call otherwise than the file, if it is only one."""
    names: dict[str, set[str]] = {}
    for entry, made in zip(entries, inputs, strict=True):
        own = entry["shape"] or ()
        for before, after in zip(own, made.shape, strict=False):
            if before and isinstance(before, str) and isinstance(after, str):
                names.setdefault(before, set()).add(after)
    return {name: made.pop() for name, made in names.items() if len(made) == 1 and name not in made}


#: What follows the precision of a program, in NumPy's words.
_FOLLOWS = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


def _following(entry: InputSpec, found: Mapping[str, Any]) -> InputSpec:
    """Return an input whose type follows the precision, if torch makes a module of the file."""
    follows = found["format"] == FileFormat.PT2 and entry.dtype == _FOLLOWS[found["precision"]]
    return replace(entry, dtype="float") if follows else entry


def _input(entry: Mapping[str, Any], given: GivenInput | None) -> InputSpec:
    name, dtype = entry["name"], entry["dtype"]
    if given is not None and given.dtype not in (None, dtype):
        raise FileRefusedError(
            f"Its input {in_quotes(name)} takes {dtype}, not {given.dtype}.", "Leave the type out."
        )
    shape = _shape(entry, given)
    if given is not None and given.holds:
        return given.input(name, shape, dtype)
    if "drawn" not in entry:
        raise FileRefusedError(
            f"What its input {in_quotes(name)}, whole numbers of {dtype}, may hold does not follow"
            " from its graph.",
            f"Say it: {OPTION} {name}=0..1000 draws from 0 to 999, {OPTION} {name}=1 holds ones,"
            f" {OPTION} {name}=3,1,6 these three.",
        )
    low, high = entry.get("low", 0), entry.get("high", 0)
    return InputSpec(name, shape, dtype, low, high, constant=entry.get("constant"))


def _told(given: GivenInput | None) -> str:
    if given is None:
        return ""
    return given.told or (_GIVEN if given.holds else "")


def _shape(entry: Mapping[str, Any], given: GivenInput | None) -> tuple[int | str, ...]:
    own, name = entry["shape"], entry["name"]
    if entry.get("sizes_free"):
        return _free_shape(name, own, given)
    if given is None or given.shape is None:
        return named_sizes(own)
    if len(given.shape) != len(own):
        raise FileRefusedError(
            f"Its input {in_quotes(name)} has {len(own)} axes, not {len(given.shape)}.",
            f"It is {shape_text(own)}.",
        )
    for size, wanted in zip(own, given.shape, strict=True):
        if isinstance(size, int) and size != wanted:
            raise FileRefusedError(
                f"Its input {in_quotes(name)} is fixed to {shape_text(own)}, not"
                f" {shape_text(given.shape)}.",
                "Export it with a free size there.",
            )
    return given.shape


def _free_shape(
    name: str, own: Sequence[int | str] | None, given: GivenInput | None
) -> tuple[int | str, ...]:
    """Return sizes of an input whose file binds none: given for one item, after the batch."""
    if given is not None and given.shape is not None:
        items = given.shape[1:] if given.shape[:1] == (BATCH,) else given.shape
        if not 1 <= len(items) <= _MOST_AXES:
            raise FileRefusedError(
                f"Its input {in_quotes(name)} has 1 to {_MOST_AXES} axes beside the batch, not"
                f" {len(items)}.",
                "Leave the batch out, or call it batch.",
            )
        return (BATCH, *items)
    if own is None:
        raise FileRefusedError(
            f"It does not say what sizes its input {in_quotes(name)} has.",
            f"Say those of one item: {OPTION} {name}=[3,224,224] for channels, height and width.",
        )
    return named_sizes(own)


def items_of(inputs: Sequence[InputSpec], usual: int = 1) -> int:
    """Return the items of inputs of fixed sizes: their first size, if it is one."""
    first = {entry.shape[0] for entry in inputs if len(entry.shape) > 1}
    only = first.pop() if len(first) == 1 else usual
    return only if isinstance(only, int) and only > 0 else 1
