"""The model that an owner's code makes: its sizes, its inputs and their values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.free_dimensions import OPEN, format_sizes
from accelbench.core.model import CodeKind, InputSpec, ModelCode, ModelSpec, Training
from accelbench.core.plugins import version_of
from accelbench.core.processes import NoAnswerError, request_answers
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import Architecture, Family
from accelbench.models.code_models.loading import (
    LIVE_OBJECT,
    REFERENCE,
    SUFFIX,
    CodeWord,
    builder_of,
)
from accelbench.models.file_models.given_inputs import (
    BATCH,
    IMAGE,
    OPTION,
    SEQUENCE,
    GivenInput,
    shape_text,
)
from accelbench.models.file_models.kinds import FileRefusedError
from accelbench.models.file_models.models import items_of
from accelbench.models.losses import OWN

#: The set of models that are code.
CODE = "code"
#: An owner may load weights of gigabytes before there is anything to look at.
_PATIENCE_SECONDS = 300.0
_DEFAULTS = {SEQUENCE: 128, IMAGE: 224}


def model_of_code(
    word: CodeWord, given: Mapping[str, GivenInput] | None = None, reference: str = ""
) -> ModelSpec:
    """Return the model of an attribute; its owner's code runs in a process that ends."""
    try:
        found = _looked_at(word, given or {}, reference)
        spec = model_found(word, found, given or {})
    except FileRefusedError as error:
        raise UsageError(
            f"{in_quotes(str(word))} is not measured: {error.within}", error.advice
        ) from error
    written = f"{word.name}={word}" if word.name else str(word)
    return replace(spec, aliases=() if written == spec.id else (written,))


def describe_code_model(spec: ModelSpec) -> list[str]:
    """Return lines about a model that is code: that it runs, and its inputs."""
    code = spec.code
    if code is None:
        return []
    where = Path(code.path).name if code.path else code.module
    package = code.package
    what = "a torch module" if code.kind is CodeKind.MODULE else "timed as it is"
    runs = f"{where} was run to look at it, and runs in every worker"
    if where == LIVE_OBJECT:  # written for it: its owner has no such file
        runs = "it was made again to look at it, and is in every worker"
    lines = [
        # On the search path without being installed, it has no version.
        f"{spec.id} is built by {' '.join(filter(None, (package, version_of(package))))},"
        " with random weights."
        if package
        else f"{spec.id} is your own code, {what}: {runs}.",
        *(
            f"{spec.id} reads {entry.name}, {entry.dtype} {shape_text(entry.shape)}:"
            f" {code.drawn.get(entry.name, 'as it was said')}."
            for entry in spec.inputs
        ),
    ]
    if code.kind is CodeKind.CALLABLE and not spec.inputs:
        lines.append(f"{spec.id} is called with its own inputs; a step is one call.")
    if code.reference:
        lines.append(f"{spec.id} is compared with {code.reference}.")
    return [*lines, *(f"{spec.id} {note}." for note in code.notes)]


def name_of(word: CodeWord) -> str:
    """Return the name of a model in results: as it was written, without folders."""
    place = word.path.name if word.is_file else word.place
    return word.name or f"{place}:{word.attribute}"


def _looked_at(word: CodeWord, given: Mapping[str, GivenInput], reference: str) -> dict[str, Any]:
    place = {**_place(word), "attribute": word.attribute}
    return _inspect_in_process({**place, "given": list(given), "reference": reference})


@dataclass(frozen=True)
class Elsewhere:
    """The place of code that was looked at here, and the process that runs it there."""

    path: str  # of the file; "" of a module that is imported by name
    folder: str  # on the search path
    environment: Mapping[str, str]  # of the process
    working: Path  # folder of the process
    here: Path  # must not be imported from


def looked_at_elsewhere(spec: ModelSpec, place: Elsewhere) -> tuple[ModelSpec, list[Path]]:
    """Return a model as its code lies elsewhere, and the files of here that it imports."""
    code = spec.code
    assert code is not None
    own = f"{code.attribute}.{REFERENCE}"
    question = {
        "module": code.module,
        "path": place.path,
        "folder": place.folder,
        "here": str(place.here),
        "attribute": code.attribute,
        "given": [entry.name for entry in spec.inputs],
        "reference": "" if code.reference == own else code.reference,
    }
    found = _inspect_in_process(question, place)
    if found["kind"] != code.kind:
        raise FileRefusedError(f"It is a {found['kind']} there, and a {code.kind} here.", "")
    there = replace(
        code,
        path=place.path,
        folder=place.folder,
        digest=str(found["digest"]),
        sources=tuple(found["sources"]),
        made_by=str(found["made_by"]),
        reference=str(found["reference"]),
        counted=found.get("counted"),
        uncounted=found.get("uncounted", ""),
    )
    files_of_here = [Path(file) for file in found["from_here"]]
    return replace(spec, parameters=int(found["parameters"]), code=there), files_of_here


def _inspect_in_process(
    question: Mapping[str, Any], place: Elsewhere | None = None
) -> dict[str, Any]:
    asked = ("accelbench.models.code_models.looking", [json.dumps(question)])
    where = (place.environment, place.working) if place is not None else ()
    try:
        answers = request_answers(*asked, _PATIENCE_SECONDS, "Running it to look at it", *where)
    except NoAnswerError as error:
        advice = "Run it in Python alone, and mend it: os._exit in it ends whoever measures it."
        raise FileRefusedError(str(error), error.advice or advice) from error
    answer = answers[-1]
    if not isinstance(answer, dict) or not ("error" in answer or answer.keys() >= _ANSWERED):
        raise FileRefusedError("Its code printed what looks like our answer.", "Leave that out.")
    if "error" in answer:
        raise FileRefusedError(str(answer["error"]), str(answer.get("advice", "")))
    return {**question, **answer}


#: What a look says of anything.
_ANSWERED = {"kind", "inputs", "parameters", "batch", "free_batch", "notes", "made_by", "sources"}


def _place(word: CodeWord) -> dict[str, str]:
    if not word.attribute:
        raise FileRefusedError(
            "It does not say which object of the file is meant.",
            f"Name it behind a colon: {word.path.name}:make, of a module, a function or a class.",
        )
    if not word.is_file:
        return {"module": word.place, "path": "", "folder": str(Path.cwd())}
    if not word.path.is_file():
        raise FileRefusedError("There is no such file.", "Check its path.")
    path = word.path.parent.resolve() / word.path.name  # as it lies there, if by a link
    name = path.name[: -len(SUFFIX)]
    return {"module": name, "path": str(path), "folder": str(path.parent)}


def model_found(
    word: CodeWord, found: Mapping[str, Any], given: Mapping[str, GivenInput]
) -> ModelSpec:
    """Return the model of a description; raise FileRefusedError if an input is unknown."""
    kind = CodeKind(found["kind"])
    entries = {entry["name"]: entry for entry in found["inputs"]}
    names = list(entries) or list(given)
    inputs = tuple(_input(name, entries.get(name), given.get(name), found) for name in names)
    own = _own_sizes(inputs, entries)
    free = any(BATCH in entry.shape for entry in inputs)
    shown = {
        name: entry["drawn"]
        for name, entry in entries.items()
        if "drawn" in entry and not given.get(name, GivenInput()).holds
    }
    shown |= {
        entry.name: "normal, mean 0 and deviation 1"
        for entry in inputs
        if entry.name not in shown and entry.dtype.startswith("float") and entry.constant is None
    }
    texts: dict[str, Any] = {name: str(found[name]) for name in _TEXTS}
    code = ModelCode(
        kind=kind,
        **texts,
        sources=tuple(found["sources"]),
        fixed_batch=None if free else items_of(inputs, found["batch"]),
        drawn=shown,
        notes=tuple(found["notes"]),
        counted=found.get("counted"),
        uncounted=found.get("uncounted", ""),
    )
    dims = {name: size for name, size in own.items() if name not in (SEQUENCE, IMAGE)}
    return ModelSpec(
        id=name_of(word),
        family=Family.UNKNOWN,
        architecture=Architecture.UNKNOWN,
        modalities=(),
        task="",
        size="",
        builder=builder_of(code),
        config={},
        inputs=inputs,
        parameters=int(found["parameters"]),
        item="calls" if kind is CodeKind.CALLABLE and not free else "items",
        sequence=_size(own, SEQUENCE),
        image=_size(own, IMAGE),
        dims=format_sizes(dims) or None,
        training=_training(found),
        sets=(CODE,),
        code=code,
    )


_TEXTS = ("module", "attribute", "path", "folder", "digest", "made_by", "reference")


def _training(found: Mapping[str, Any]) -> Training | None:
    how = found.get("training")
    if not how:
        return None
    return Training(OWN, tuple(_input(e["name"], e, None, found) for e in how["labels"]))


def _size(own: Mapping[str, int | str], name: str) -> int | None:
    size = own.get(name)
    return _DEFAULTS[name] if size == OPEN else None if size is None else int(size)


def _own_sizes(
    inputs: Sequence[InputSpec], entries: Mapping[str, Mapping[str, Any]]
) -> dict[str, int | str]:
    own: dict[str, int | str] = {}
    for entry in inputs:
        example: Sequence[int] = entries.get(entry.name, {}).get("shape", ())
        for place, name in enumerate(entry.shape):
            if isinstance(name, str) and name != BATCH:
                own.setdefault(name, example[place] if len(example) > place else OPEN)
    return own


def _input(
    name: str, entry: Mapping[str, Any] | None, given: GivenInput | None, found: Mapping[str, Any]
) -> InputSpec:
    dtype = (given.dtype if given is not None else None) or (entry or {}).get("dtype")
    if dtype is None:
        raise FileRefusedError(
            f"Nothing says of which type its input {in_quotes(name)} is.",
            f"Say it: {OPTION} {name}=float32[batch,64]",
        )
    if found["kind"] == CodeKind.MODULE and dtype == "float32":
        dtype = "float"  # it follows the precision, as the weights do
    shape = _shape(name, entry, given, found)
    if given is not None and given.holds:
        return given.input(name, shape, dtype)
    if entry is not None and ("high" in entry or "constant" in entry):
        low, high = entry.get("low", 0), entry.get("high", 0)
        return InputSpec(name, shape, dtype, low, high, constant=entry.get("constant"))
    if dtype.startswith(("int", "uint")):
        raise FileRefusedError(
            f"Nothing says what its input {in_quotes(name)}, whole numbers of {dtype}, may hold.",
            f"Say it: {OPTION} {name}={dtype}[batch,64]:0..1000 draws from 0 to 999.",
        )
    return InputSpec(name, shape, dtype)


def _shape(
    name: str, entry: Mapping[str, Any] | None, given: GivenInput | None, found: Mapping[str, Any]
) -> tuple[int | str, ...]:
    own = None if entry is None else entry["shape"]
    if given is not None and given.shape is not None:
        if own is not None and len(own) != len(given.shape):
            raise FileRefusedError(
                f"Its input {in_quotes(name)} has {len(own)} axes in its example, not"
                f" {len(given.shape)}.",
                "Give it as many.",
            )
        return given.shape
    if own is None:
        raise FileRefusedError(
            f"Nothing says which shape its input {in_quotes(name)} has.",
            f"Say it: {OPTION} {name}=float32[batch,64]",
        )
    free = found["free_batch"] and len(own) > 0 and own[0] == found["batch"]
    return (BATCH, *own[1:]) if free else tuple(own)
