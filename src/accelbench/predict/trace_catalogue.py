"""Traces of the catalogue, of a forward pass, a request, a training step: at its default sizes, and
at those that public tables have its models at.

python -m accelbench.predict.trace_catalogue --write    traces every model, writes the file
python -m accelbench.predict.trace_catalogue            says which entries are out of date
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from accelbench.core.case import Shapes
from accelbench.core.errors import EXIT_NO, CaseError
from accelbench.core.jsonc import loads
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import Mode
from accelbench.models.find import every_model
from accelbench.models.inputs import settle
from accelbench.predict.traces import CATALOGUE_FILE, trace_name

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
