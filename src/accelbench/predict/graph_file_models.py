"""Models of files, as a question of a prediction names them: a graph, or a folder with a config."""

from __future__ import annotations

import glob
import hashlib
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.case import Shapes
from accelbench.core.errors import UsageError
from accelbench.core.model import ModelSpec
from accelbench.core.processes import NoAnswerError, request_answers
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import Architecture, Family
from accelbench.exchange.writing import replace_file
from accelbench.models.file_models.folders import CONFIG as CONFIG_FILE
from accelbench.models.file_models.folders import config_model
from accelbench.models.file_models.given_inputs import IMAGE, SEQUENCE
from accelbench.models.file_models.kinds import FileRefusedError, formats_by_suffix
from accelbench.models.find import key_of
from accelbench.models.graph_files.costs import graph_name
from accelbench.models.graph_files.steps import OperatorSignature, UntracedError
from accelbench.predict.cases import FROM_FILE, NAME_ONLY, sizes_of
from accelbench.predict.graph_file_reading import (
    EXPORT_IT,
    digest_of,
    format_of,
    refuse_missing,
)
from accelbench.predict.signatures import CLASSES, PassTrace

if TYPE_CHECKING:
    from accelbench.store.database import Database

CONFIG = "config"
#: What names a row's graph; the other columns are those of a signature, and `count`.
_GRAPH = ("model", "img_size")
#: The side of an image that is predicted if a table has it and no other is asked for.
_USUAL_SIDE = 224
#: The format of models of tables of operators.
OPERATORS = "operators"
#: Packages whose models are traced by name.
PACKAGES = ("timm", "torchvision")
_TABLE_ADVICE = "Give a table of operator signatures, a row a signature."
#: After so many models that were read one by one, the whole table is read.
_MOST_SINGLE = 8
_FP32_BYTES = 4


#: A graph of four thousand operators takes ten seconds on a busy machine.
_PATIENCE_SECONDS = 300.0
_FP32 = "float"
#: Next to a database: what its predictors learned, and tables of operators to learn from.
FOLDER = "prediction_models"


_NO_OPERATORS = PassTrace([], 0, 0)


@dataclass(frozen=True)
class FileModel:
    """A model of a file.

    Attributes:
        spec: as a question takes it; its name is the path that was typed.
        format: of its graph; `CONFIG` of a config, which torch traces.
        batch: items that its graph takes at once, where that is fixed.
        precision: what most of its weights are stored in.
        passes: of a graph, by sequence length and image size.
        failures: why a graph has none at other sizes.
    """

    spec: ModelSpec
    path: Path
    format: str
    digest: str
    batch: int | None = None
    precision: str = _FP32
    passes: Mapping[tuple[int | None, int | None], PassTrace] | None = None
    failures: Mapping[tuple[int | None, int | None], UntracedError] | None = None

    def at(self, shapes: Shapes) -> dict[str, PassTrace]:
        """The passes of a graph at some sizes.

        Raises:
            UntracedError: its shapes do not follow at these sizes.
        """
        key = (shapes.sequence, shapes.image)
        if self.format == NAME_ONLY:
            return {"forward": _NO_OPERATORS}
        assert self.passes is not None
        assert self.failures is not None
        if key not in self.passes:
            named = " ".join(f"{name} {size}" for name, size in sizes_of(shapes).items())
            unknown = UntracedError(f"The operators of {self.spec.id} at {named} are not known.")
            raise self.failures.get(key, unknown)
        return {"forward": self.passes[key]}

    def to_dict(self) -> dict[str, object]:
        """As JSON holds it."""
        return {
            "model": self.spec.id,
            "file": str(self.path),
            "format": self.format,
            "sha256": self.digest,
            "parameters": self.spec.parameters,
            "weights_stored_in": self.precision if self.passes is not None else None,
            "batch_size": self.batch,
        }


def names_a_file(name: str) -> bool:
    """Whether a word that is no model's name is that of a file or folder."""
    path = Path(name)
    kind = formats_by_suffix().get(path.suffix.lower())
    return path.exists() or (kind is not None and not kind.uncounted)


def file_model(name: str, sizes: Sequence[Shapes]) -> FileModel:
    """The model of a file or folder.

    Raises:
        UsageError: nothing is known of its operators: one sentence with the reason.
        MissingExtraError: what reads it is not installed.
    """
    path = Path(name)
    folder = path.parent if path.name == CONFIG_FILE else path
    try:
        return _of_config(name, folder) if folder.is_dir() else _of_graph(name, path, sizes)
    except UntracedError as error:
        raise refused(name, error) from error


def refused(name: str, error: UntracedError) -> UsageError:
    """What is said of a file of which nothing is known."""
    first = error.message.split(" ", 1)[0]
    plain = first[:1] + first[1:].lower() == first  # no name such as OpenVINO
    message = error.message[:1].lower() + error.message[1:] if plain else error.message
    return UsageError(f"{in_quotes(name)} is not predicted: {message}", error.advice)


# -- graphs


def _of_graph(name: str, path: Path, sizes: Sequence[Shapes]) -> FileModel:
    refuse_missing(form := format_of(path))
    kind = graph_name(form)
    keys = list(dict.fromkeys((shapes.sequence, shapes.image) for shapes in sizes))
    answer = _answer(path, keys)
    axes = set(answer["axes"])
    # Sizes that the graph has fixed are none of its own: settled cases do not have them.
    kept = [(s if SEQUENCE in axes else None, i if IMAGE in axes else None) for s, i in keys]
    passes: dict[tuple[int | None, int | None], PassTrace] = {}
    failures: dict[tuple[int | None, int | None], UntracedError] = {}
    batch = None
    for key, entry in zip(kept, answer["passes"], strict=True):
        if "pass" in entry:
            passes[key] = PassTrace.from_dict(entry["pass"])
            batch = entry["batch"]
        else:
            failures[key] = UntracedError(entry["error"], entry["advice"])
    if not passes:
        raise next(iter(failures.values()))
    first = next(iter(passes))
    digest = digest_of(path)
    spec = graph_spec(name, {"format": kind, "sha256": digest}, int(answer["weights"]), first)
    return FileModel(spec, path, kind, digest, batch, answer["precision"], passes, failures)


def _answer(path: Path, keys: Sequence[tuple[int | None, int | None]]) -> dict[str, Any]:
    grid = json.dumps([{SEQUENCE: sequence, IMAGE: image} for sequence, image in keys])
    asked = ("accelbench.predict.graph_file_reading", [str(path), grid])
    try:
        answers = request_answers(*asked, _PATIENCE_SECONDS, "Reading it")
    except NoAnswerError as error:
        raise UntracedError(str(error), EXPORT_IT) from error
    answer: dict[str, Any] = answers[-1]
    if "error" in answer:
        raise UntracedError(answer["error"], answer["advice"])
    return answer


def graph_spec(
    name: str, about: Mapping[str, str], weights: int, sizes: tuple[int | None, int | None]
) -> ModelSpec:
    """Return what a question needs of a model. Its family is unknown; each case records that."""
    sequence, image = sizes
    return ModelSpec(
        id=name,
        family=Family.EMBEDDING,
        architecture=Architecture.ENCODER_ONLY,
        modalities=(),
        task="",
        size="",
        builder=f"file:{about['format']}",
        config=about,
        inputs=(),
        parameters=weights,
        sequence=sequence,
        image=image,
        sets=(FROM_FILE,),
    )


def named_model(name: str, sizes: tuple[int | None, int | None]) -> FileModel:
    """Return a model of which only the name and the usual sizes in results are known."""
    spec = graph_spec(name, {"format": NAME_ONLY}, 0, sizes)
    return FileModel(replace(spec, sets=(NAME_ONLY,)), Path(name), NAME_ONLY, "", passes={})


# -- configs


def _of_config(name: str, folder: Path) -> FileModel:
    try:
        spec = config_model(name, folder)
    except FileRefusedError as error:
        raise UntracedError(error.message, error.advice) from error
    path = folder / CONFIG_FILE
    marked = replace(spec, sets=(*spec.sets, FROM_FILE))
    return FileModel(marked, path, CONFIG, digest_of(path))


# -- tables of operators


def _operator_columns(
    path: Path, columns: Sequence[str], only: str | None = None
) -> list[tuple[Any, ...]]:
    """Return the rows of columns of a table of operators, or those of one model.

    Raises:
        UsageError: there is no such file, it is not Parquet, or a column is missing.
    """
    import duckdb

    if not path.is_file():
        raise UsageError(f"There is no file {path}.", _TABLE_ADVICE)
    try:
        with duckdb.connect() as con:
            table = con.read_parquet(str(path))
            absent = [name for name in columns if name not in table.columns]
            if not absent:
                if only is not None:
                    model = duckdb.ColumnExpression(_GRAPH[0])
                    table = table.filter(model == duckdb.ConstantExpression(only))
                rows: list[tuple[Any, ...]] = table.select(*columns).fetchall()
                return rows
    except duckdb.Error as error:
        raise UsageError(f"{path.name} cannot be read as Parquet.", _TABLE_ADVICE) from error
    raise UsageError(f"{path.name} has no column {', '.join(absent)}.", _TABLE_ADVICE)


@lru_cache(maxsize=4)
def operator_models(path: Path, only: str | None = None) -> Mapping[str, FileModel]:
    """Read a table of operators: its models by name, as if each were a file with a graph.

    Args:
        path: the file.
        only: the one model to read.

    Raises:
        UsageError: the file is not such a table.
    """
    rows = _operator_columns(path, [*_GRAPH, *OperatorSignature._fields, "count"], only)
    graphs: dict[str, dict[int, list[tuple[OperatorSignature, int]]]]
    graphs = defaultdict(lambda: defaultdict(list))
    for row, values in enumerate(rows, start=1):
        model, image, op_class, *sizes = values
        whole = [size for size in (image or 1, *sizes) if isinstance(size, int) and size >= 0]
        if not model or op_class not in CLASSES or len(whole) <= len(sizes) or sizes[-1] < 1:
            raise UsageError(
                f"Row {row} of {path.name} is not an operator: a model, a class"
                f" ({', '.join(CLASSES)}) and whole numbers.",
                "Correct the table.",
            )
        *numbers, count = sizes
        graphs[model][image or 0].append((OperatorSignature(op_class, *numbers), count))
    if not graphs:
        raise UsageError(f"{path.name} has no operators.", "Name another table.")
    digest = digest_of(path)
    return {
        model: _model(
            model, path, digest, {image or None: _pass_of(s) for image, s in by_size.items()}
        )
        for model, by_size in graphs.items()
    }


def _model(name: str, path: Path, digest: str, passes: dict[int | None, PassTrace]) -> FileModel:
    weights = next(iter(passes.values())).weights
    sizes = (None, _USUAL_SIDE if _USUAL_SIDE in passes else next(iter(passes)))
    spec = graph_spec(name, {"format": OPERATORS, "sha256": digest}, weights, sizes)
    by_size: dict[tuple[int | None, int | None], PassTrace]
    by_size = {(None, image): passed for image, passed in passes.items()}
    return FileModel(spec, path, OPERATORS, digest, passes=by_size, failures={})


def _pass_of(signatures: list[tuple[OperatorSignature, int]]) -> PassTrace:
    """Return the pass; a table does not record lifetimes, so the largest operator is the peak."""
    weights = sum(count * entry.weight_elements for entry, count in signatures)
    largest = max(entry.input_elements + entry.output_elements for entry, _ in signatures)
    return PassTrace(sorted(signatures), weights, _FP32_BYTES * largest)


class TableModels(Mapping[str, FileModel]):
    """Models of tables of operators, by name. Each is read when it is first asked for.

    Args:
        models: those that are read.
        paths: the table of each other model.
    """

    def __init__(
        self, models: Mapping[str, FileModel] | None = None, paths: Mapping[str, Path] | None = None
    ) -> None:
        self._models = dict(models or {})
        self._paths = dict(paths or {})
        self._single: dict[Path, int] = {}

    def __getitem__(self, name: str) -> FileModel:
        if name not in self._models:
            path = self._paths[name]
            count = self._single[path] = self._single.get(path, 0) + 1
            is_single = count <= _MOST_SINGLE
            read = operator_models(path, name) if is_single else operator_models(path)
            self._models |= {one: model for one, model in read.items() if one not in self._models}
        return self._models[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._models, *self._paths)))

    def __len__(self) -> int:
        return len({*self._models, *self._paths})

    @cached_property
    def _names(self) -> dict[str, str]:
        return {key_of(name): name for name in self}

    def find(self, name: str) -> FileModel | None:
        """Return the model of a name, in any spelling.

        A tag after a dot names weights, not another architecture.
        """
        bare = name.split(".")[0]
        spelling = self._names.get(key_of(name)) or self._names.get(key_of(bare))
        return self.get(name) or self.get(bare) or self.get(spelling or "")


def keep_operators(path: Path, database: Path) -> None:
    """Keep a table of operators beside a database, whose predictors learn from its models."""
    operator_models(path)  # refuses what is not such a table
    _keep(path.read_bytes(), database)


def _keep(content: bytes, database: Path) -> None:
    name = f"{_kept_prefix(database)}{hashlib.sha256(content).hexdigest()[:12]}.parquet"
    replace_file(database.parent / FOLDER / name, content)


def trace_package(
    package: str, database: Database, more: Iterable[str], hear: Callable[[str], None]
) -> None:
    """Trace the models of a package that a database has results of, and keep their operators.

    Raises:
        UsageError: the package has none of them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from accelbench.predict.tracing import package_operators

    _, rows = database.query(
        "SELECT DISTINCT model, image_size FROM benchmark_results WHERE model IS NOT NULL"
    )
    kept = kept_operators(database.path)
    wanted: dict[str, list[int]] = {name: [] for name in more}
    for model, side in rows:
        sides = wanted.setdefault(str(model), [])
        sides += [int(str(side))] if side else []
    wanted = {name: sorted(sides) for name, sides in wanted.items() if not kept.find(name)}
    operators = package_operators(package, wanted, hear)
    if not operators:
        raise UsageError(
            f"{package} has no model that {database.name} has results of, beyond those that are"
            " kept.",
            "Name a table of operators, or import results first.",
        )
    content = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(operators), content)
    _keep(content.getvalue(), database.path)


def kept_operators(database: Path) -> TableModels:
    """Return the models of the tables that are kept beside a database, by name."""
    paths = {name: path for path in kept_tables(database) for name in _names_in(path)}
    return TableModels(paths=paths)


def kept_tables(database: Path) -> list[Path]:
    """Return the tables of operators that are kept beside a database."""
    folder = database.parent / FOLDER
    return sorted(folder.glob(f"{glob.escape(_kept_prefix(database))}*.parquet"))


@lru_cache(maxsize=4)
def _names_in(path: Path) -> Sequence[str]:
    try:
        rows = _operator_columns(path, _GRAPH[:1])
    except UsageError as error:
        raise UsageError(
            f"The table of operators that is kept at {path} is damaged.",
            "Remove it, and name its original with --graph-features.",
        ) from error
    return [*dict.fromkeys(str(name) for (name,) in rows)]


def _kept_prefix(database: Path) -> str:
    return f"{database.name}-operators-"
