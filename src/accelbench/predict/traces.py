"""Traces of cases: taken once by torch, kept on disk, and read without it.

A trace is of a model's config at sizes, a batch of one. `catalogue_traces.json` has those of the
catalogue at its default sizes and at published ones. `python -m accelbench.predict.traces` names
outdated entries, and writes the file with --write. Without torch and a kept trace, the analytic
cost stands in: operations and bytes, not told apart by operator.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.case import Shapes
from accelbench.core.errors import EXIT_NO, CaseError
from accelbench.core.identity import digest
from accelbench.core.jsonc import JsonError, loads
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import Mode
from accelbench.models.cost import cost, parts
from accelbench.models.find import every_model, find
from accelbench.models.graph_files.steps import OperatorSignature, UntracedError
from accelbench.models.inputs import settle
from accelbench.predict.cases import SIZES_WITHOUT_BATCH, PredictedCase, sizes_of
from accelbench.predict.signatures import PassTrace, holds_pairs
from accelbench.predict.terms import TracedCase
from accelbench.store.files import default_folder

if TYPE_CHECKING:
    from accelbench.predict.graph_file_models import FileModel

#: Raised whenever what a trace notes changes: kept ones are taken anew.
TRACE_VERSION = 1
CATALOGUE_FILE = Path(__file__).with_name("catalogue_traces.json")
_FP32_BYTES = 4


class Traces:
    """Traces by model and sizes.

    Args:
        folder: where they are kept; this user's cache by default.
        trace: take those that are not kept, which imports torch.
        own: models of files, by their names. Those of tables may follow in `tables`.
        hear: told what takes seconds, before it does.

    Attributes:
        coarse: models whose analytic cost stands in, as torch is not installed.
        left_out: those whose analytic cost stands in, as nothing is to be traced.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        trace: bool = True,
        own: Mapping[str, FileModel] | None = None,
        hear: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._folder = folder or default_folder() / "traces"
        self._known: dict[tuple[object, ...], dict[str, PassTrace]] = {}
        self._trace = trace
        self.own = dict(own or {})
        self.tables: Mapping[str, FileModel] = {}
        self._hear = hear
        self.coarse: set[str] = set()
        self.left_out: set[str] = set()

    @property
    def takes(self) -> bool:
        """Whether operators that are not kept are traced."""
        return self._trace

    def of(self, model: str, shapes: Shapes, mode: str = Mode.INFERENCE) -> dict[str, PassTrace]:
        """The passes of a case, by name.

        Of a training step that cannot be traced they are those of its forward pass.

        Raises:
            UntracedError: the model's operators are not known at these sizes.
        """
        key = (model, mode, SIZES_WITHOUT_BATCH(shapes))
        if key not in self._known:
            entry, single = self.entry(model), replace(shapes, batch=1)
            if entry is not None and entry.passes is not None:
                self._known[key] = entry.at(single)
            else:
                spec = self.spec(model)
                trained = self._training(spec, single) if mode == Mode.TRAINING else None
                self._known[key] = trained or self._read_or_take(spec, single)
        return self._known[key]

    def entry(self, model: str) -> FileModel | None:
        """Return the model of a file or of a table of operators; None for others."""
        return self.own.get(model) or self.tables.get(model)

    def spec(self, model: str) -> ModelSpec:
        """A model of a file, or of the catalogue, by its name."""
        entry = self.entry(model)
        return entry.spec if entry is not None else find(model)

    def _training(self, spec: ModelSpec, shapes: Shapes) -> dict[str, PassTrace] | None:
        """The parts of a training step; None of one that is not kept and cannot be traced."""
        name = trace_name(spec, shapes, Mode.TRAINING)
        path = self._folder / f"{name}.json"
        if (known := _of_catalogue().get(name) or _read(path)) is not None:
            return known
        if not self._trace or not torch_is_here() or spec.training is None:
            return None
        try:
            taken = _taken(spec, shapes, Mode.TRAINING)
        except UntracedError:
            return None
        _keep(path, taken)
        return taken

    def of_cases(
        self, cases: Sequence[PredictedCase]
    ) -> tuple[list[TracedCase], dict[str, UntracedError]]:
        """Those cases whose operators are known, and by model why others' are not."""
        traced: list[TracedCase] = []
        failures: dict[str, UntracedError] = {}
        known: dict[tuple[object, ...], dict[str, PassTrace] | None] = {}
        for case in cases:
            mode = case.configuration.mode
            key = (case.model, mode, SIZES_WITHOUT_BATCH(case.shapes))
            if key not in known:
                try:
                    known[key] = self.of(case.model, case.shapes, mode)
                except UntracedError as error:
                    failures[case.model] = error
                    known[key] = None
            passes = known[key]
            if passes is not None:
                traced.append(TracedCase(case, passes))
        return traced, failures

    def _read_or_take(self, spec: ModelSpec, shapes: Shapes) -> dict[str, PassTrace]:
        name = trace_name(spec, shapes)
        if (known := _of_catalogue().get(name)) is not None:
            return known
        path = self._folder / f"{name}.json"
        kept = _read(path)
        if kept is not None:
            return kept
        if not self._trace or not torch_is_here():
            (self.coarse if self._trace else self.left_out).add(spec.id)
            return _coarse(spec, shapes)
        sizes = " ".join(f"{name} {size}" for name, size in sizes_of(shapes).items())
        self._hear(f"Tracing the operators of {spec.id} at {sizes or 'its size'} …")
        taken = _taken(spec, shapes)
        _keep(path, taken)
        return taken


def torch_is_here() -> bool:
    """Return whether torch is installed, without importing it."""
    return find_spec("torch") is not None


def trace_name(spec: ModelSpec, shapes: Shapes, mode: str = Mode.INFERENCE) -> str:
    """What a trace is kept by: everything that it depends on."""
    about = {"v": TRACE_VERSION, "model": spec.id, "config": spec.config_digest}
    step = {"trained": spec.training_variant.config_digest} if mode == Mode.TRAINING else {}
    pairs = {"pairs": True} if holds_pairs(spec) and mode == Mode.INFERENCE else {}
    return digest({**about, "sizes": sizes_of(shapes), **step, **pairs})


@cache
def _of_catalogue() -> dict[str, dict[str, PassTrace]]:
    content = loads(CATALOGUE_FILE.read_text(encoding="utf-8"))
    return {
        name: {part: PassTrace.from_dict(entry) for part, entry in passes.items()}
        for name, passes in content.items()
    }


def _taken(spec: ModelSpec, shapes: Shapes, mode: str = Mode.INFERENCE) -> dict[str, PassTrace]:
    from accelbench.models.op_costs import UnknownOperationError
    from accelbench.predict.tracing import trace, trace_training

    try:
        return (trace_training if mode == Mode.TRAINING else trace)(spec, shapes)
    except (UnknownOperationError, CaseError) as error:
        raise UntracedError(f"The operators of {spec.id} cannot be traced: {error}") from error


def _read(path: Path) -> dict[str, PassTrace] | None:
    try:
        content = loads(path.read_text())
        return {name: PassTrace.from_dict(entry) for name, entry in content.items()}
    except (OSError, JsonError, KeyError, TypeError, AttributeError):
        return None  # taken anew


def _keep(path: Path, traces: dict[str, PassTrace]) -> None:
    """Written beside and moved into place: another process may read it meanwhile."""
    content = json.dumps({name: entry.to_dict() for name, entry in traces.items()})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(f".{digest({'content': content})[:8]}")
        beside.write_text(content)
        beside.replace(path)
    except OSError:  # a cache that cannot be written is done without
        return


def _coarse(spec: ModelSpec, shapes: Shapes) -> dict[str, PassTrace]:
    whole, by_part = cost(spec, shapes, "fp32"), parts(spec, shapes, "fp32")
    if whole is None or by_part is None:
        raise UntracedError(
            f"The operators of {spec.id} at these sizes are not known.",
            "Install torch: accelbench setup torch",
        )
    weights = int(whole.weight_bytes) // _FP32_BYTES
    names = {"step": "forward", "prefill": "prefill", "decode": "decode"}
    steps = {"decode": max((shapes.new_tokens or 1) - 1, 1)}
    passes = {}
    for part, work in by_part.items():
        share = 1 / steps.get(part, 1)
        moved = max(work.bytes_moved * share / _FP32_BYTES - weights, 0)
        signature = OperatorSignature(
            "lin", int(work.flops * share / 2), int(moved / 2), weights, int(moved / 2), 1, 1, 1,
            1, 1, 1,
        )  # fmt: skip
        peak = int(whole.peak_activation_bytes)
        passes[names[part]] = PassTrace([(signature, 1)], weights, peak)
    return passes


#: Sizes at which public tables have the catalogue's models, by image: whoever has imported them
#: learns from those, and torch took five seconds to trace them before the first answer.
_PUBLISHED = {"resnet-50": (160, 176, 288), "detr-resnet-50": (480,)}


def default_shapes(spec: ModelSpec) -> Iterator[Shapes]:
    """The sizes that a model is traced at."""
    yield settle(spec, Shapes(1))
    if spec.generation is not None:
        yield settle(spec, replace(Shapes(1), new_tokens=spec.generation.new_tokens))
    for size in _PUBLISHED.get(spec.id, ()):
        yield settle(spec, replace(Shapes(1), image=size))


def traced(spec: ModelSpec) -> dict[str, object]:
    """The entries of a model, by the names that traces are kept by."""
    from accelbench.models.op_costs import UnknownOperationError
    from accelbench.predict.tracing import trace, trace_training

    made = {trace_name(spec, shapes): trace(spec, shapes) for shapes in default_shapes(spec)}
    if spec.training is not None:
        shapes = settle(spec, Shapes(1))
        # Of a step that no rule counts the forward pass stands in.
        with suppress(UnknownOperationError):
            made[trace_name(spec, shapes, Mode.TRAINING)] = trace_training(spec, shapes)
    return {
        name: {part: passed.to_dict() for part, passed in passes.items()}
        for name, passes in made.items()
    }


def main() -> None:
    """Write the file, or say what of it is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the file")
    write = parser.parse_args().write
    made: dict[str, object] = {}
    for spec in every_model():
        try:
            made |= traced(spec)
        except CaseError as error:  # a model whose package is not installed here
            sys.stderr.write(f"{spec.id}: {error}\n")
    if write:
        lines = (f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in made.items())
        CATALOGUE_FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        return
    kept = loads(CATALOGUE_FILE.read_text(encoding="utf-8"))
    if kept != loads(json.dumps(made)):
        sys.stderr.write("catalogue_traces.json is out of date: write it with --write\n")
        raise SystemExit(EXIT_NO)


if __name__ == "__main__":
    main()
