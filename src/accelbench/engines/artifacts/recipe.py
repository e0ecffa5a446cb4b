"""The recipe of an artefact: everything that would make another one of it, and its manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from accelbench.core.case import Case
from accelbench.core.identity import digest, non_default_values, to_plain
from accelbench.core.model import FileFormat, ModelSpec
from accelbench.core.protocols import ArtifactFormat
from accelbench.hardware.environment import package_versions
from accelbench.models.find import snapshot

#: Raised whenever artefacts are made in another way.
VERSION = 7

#: What all are made from, and what holds for one batch though its base is for any.
BASE, SETTLED = "onnx", "onnx-folded"

#: Whose versions decide what comes out, by format.
_PACKAGES = {
    "onnx": ("torch", "transformers", "diffusers", "onnxscript", "onnx"),
    "onnx-folded": ("torch", "transformers", "diffusers", "onnxscript", "onnx", "onnxruntime"),
    "onnx-fp16": ("torch", "transformers", "diffusers", "onnxscript", "onnx", "onnxruntime"),
    "onnx-int8": ("torch", "transformers", "diffusers", "onnxscript", "onnx", "onnxruntime"),
    "onnx-qnn-int8": ("torch", "transformers", "diffusers", "onnxscript", "onnx", "onnxruntime"),
    "ir": ("torch", "transformers", "diffusers", "onnxscript", "onnx", "openvino"),
    "ir-int8": ("torch", "transformers", "diffusers", "onnxscript", "onnx", "openvino", "nncf"),
}
FORMATS = tuple(_PACKAGES)
#: Files that are artefacts of another name than their format's.
_OF_FILES = {FileFormat.OPENVINO: "ir", FileFormat.PT2: BASE, FileFormat.CALLABLE: BASE}


def format_of_file(kind: FileFormat) -> str:
    """Return the format of the artefact that a file is."""
    return _OF_FILES.get(kind, kind)


@dataclass(frozen=True)
class Recipe:
    """A recipe of one artefact."""

    case: Case
    wanted: ArtifactFormat
    seed: int = 0
    weights: str = "random"
    trust_remote_code: bool = False
    workarounds: Sequence[str] = ()

    @property
    def static(self) -> bool:
        """Return whether the batch is fixed: the engine's wish, or a workaround's price."""
        from accelbench.engines.artifacts.workarounds import fixes_batch

        return self.wanted.static or fixes_batch(self.workarounds)

    @property
    def key(self) -> str:
        shapes = self.case.shapes
        # What is fed between two calls of the model is not part of the model.
        kept = replace(
            shapes, batch=shapes.batch if self.static else 0, new_tokens=None, steps=None
        )
        return digest(
            {
                "v": VERSION,
                "format": self.wanted.format,
                "model": self.case.model.id,
                "config": self.case.model.config_digest,
                "shapes": non_default_values(kept),
                "static": self.static,
                "seed": self.seed,
                "weights": _fingerprint(self.weights, self.case.model),
                **self._file,
                "workarounds": sorted(self.workarounds),
                "versions": versions(self.wanted.format),
            },
            24,
        )

    @property
    def _file(self) -> dict[str, str]:
        file, code = self.case.model.file, self.case.model.code
        if code is not None:
            return {"file": code.path or code.folder, "digest": code.digest}
        return {} if file is None else {"file": file.path, "digest": file.digest}

    @property
    def _first(self) -> str:
        file = self.case.model.graph
        return BASE if file is None else format_of_file(file.format)

    @property
    def base(self) -> Recipe:
        first = self._first
        if self.wanted.format == first:
            return self
        # Whatever batch a graph is settled for, it is settled from the same one. Sizes of a file
        # have any names: they are fixed before.
        of_file = self.case.model.graph is not None
        static = self.wanted.static and (of_file or self.wanted.format != SETTLED)
        return replace(self, wanted=replace(self.wanted, format=first, static=static))


def versions(format: str) -> dict[str, str]:  # noqa: A002
    """Return the installed packages that decide what a format becomes."""
    return package_versions(version, _PACKAGES.get(format) or FileFormat(format).packages)


@cache
def all_versions() -> Mapping[str, str]:
    """Return those that decide what any format becomes, or open it."""
    known = (*_PACKAGES.values(), *(kind.packages for kind in FileFormat.all_formats()))
    return package_versions(version, sorted({name for names in known for name in names}))


def _fingerprint(weights: str, model: ModelSpec) -> Any:
    # Random weights by name, the hub's by commit, a folder's by its files: new ones are seen.
    folder = Path(weights)
    if weights == "hub" and model.hub_ids:
        commit = snapshot(model.hub_ids[0])
        return weights if commit is None else [weights, commit]
    if weights in ("random", "hub") or not folder.is_dir():
        return weights
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    stats = [(str(path.relative_to(folder)), path.stat()) for path in files]
    return [weights, *([name, stat.st_size, stat.st_mtime_ns] for name, stat in stats)]


FILE = "manifest.json"
#: What a graph in ONNX is called, and its weights beside it.
GRAPH, WEIGHTS = "model.onnx", "model.data"


@dataclass(frozen=True)
class Tensor:
    """One input or output: its name in the catalogue, and what the file calls it."""

    name: str
    file_name: str
    dtype: str  # NumPy's name
    shape: Sequence[int | str]  # "batch" where it may be any


@dataclass(frozen=True)
class Manifest:
    """An artefact as its readers need it."""

    key: str
    format: str
    model: str
    file: str  # within the folder
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    batch: int | None  # what it is fixed to; None: any
    weights_digest: str
    workarounds: Sequence[str] = ()
    other_way: str = ""  # the line of code whose value decides for another way, not in the graph
    quantiser: Mapping[str, Any] | None = None  # which, how calibrated
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)  # of each stage

    def save(self, folder: Path) -> None:
        text = json.dumps(to_plain(self), indent=1, sort_keys=True)
        (folder / FILE).write_text(text + "\n", encoding="utf-8")


def load(folder: Path) -> Manifest:
    """Return the manifest of a folder."""
    body = json.loads((folder / FILE).read_text(encoding="utf-8"))
    for side in ("inputs", "outputs"):
        body[side] = tuple(Tensor(**entry) for entry in body[side])
    return Manifest(**body)
