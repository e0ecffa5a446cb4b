"""Tables of operators in Parquet, a row a signature, and the models that they describe."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.errors import UsageError
from accelbench.models.graph_files.steps import OperatorSignature
from accelbench.predict.arrays import CLASSES
from accelbench.predict.graph_file_models import FileModel, graph_spec
from accelbench.predict.graph_file_reading import digest_of
from accelbench.predict.signatures import PassTrace

if TYPE_CHECKING:
    from pyarrow import Table

#: What names a row's graph; the other columns are those of a signature, and `count`.
_GRAPH = ("model", "img_size")
_FORMAT = "operators"
_FP32_BYTES = 4


def parquet_table(
    path: Path, required: Sequence[str], advice: str, *, more: Sequence[str] = ()
) -> Table:
    """Return the required columns of a file, and those of `more` that it has, in this order.

    Raises:
        UsageError: there is no such file, it is not Parquet, or a column is missing.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise UsageError(f"There is no file {path}.", advice)
    try:
        present = set(pq.read_schema(path).names)
        absent = [name for name in required if name not in present]
        if not absent:
            wanted = [*required, *(name for name in more if name in present)]
            return pq.read_table(path, columns=wanted)
    except (OSError, pa.ArrowInvalid) as error:
        raise UsageError(f"{path.name} cannot be read as Parquet.", advice) from error
    raise UsageError(f"{path.name} has no column {', '.join(absent)}.", advice)


def operator_models(path: Path) -> dict[str, FileModel]:
    """Read a table of operators: its models by name, as if each were a file with a graph.

    Raises:
        UsageError: the file is not such a table.
    """
    table = parquet_table(
        path,
        [*_GRAPH, *OperatorSignature._fields, "count"],
        "Give a table of operator signatures, a row a signature.",
    )
    graphs: dict[str, dict[int, list[tuple[OperatorSignature, int]]]]
    graphs = defaultdict(lambda: defaultdict(list))
    for model, image, op_class, *sizes in zip(*table.to_pydict().values(), strict=True):
        known = op_class if op_class in CLASSES else CLASSES[-1]
        *numbers, count = map(int, sizes)
        graphs[model][image or 0].append((OperatorSignature(known, *numbers), count))
    digest = digest_of(path)
    return {
        model: _model(
            model, path, digest, {image or None: _pass_of(s) for image, s in by_size.items()}
        )
        for model, by_size in graphs.items()
    }


def _model(name: str, path: Path, digest: str, passes: dict[int | None, PassTrace]) -> FileModel:
    weights = next(iter(passes.values())).weights
    sizes = (None, next(iter(passes)))
    spec = graph_spec(name, {"format": _FORMAT, "sha256": digest}, weights, sizes)
    by_size: dict[tuple[int | None, int | None], PassTrace]
    by_size = {(None, image): passed for image, passed in passes.items()}
    return FileModel(spec, path, _FORMAT, digest, passes=by_size, failures={})


def _pass_of(signatures: list[tuple[OperatorSignature, int]]) -> PassTrace:
    """Return the pass; a table does not record lifetimes, so the largest operator is the peak."""
    weights = sum(count * entry.weight_elements for entry, count in signatures)
    largest = max(entry.input_elements + entry.output_elements for entry, _ in signatures)
    return PassTrace(sorted(signatures), weights, _FP32_BYTES * largest)
