"""Plan files on a command line: which words are some, and what they ask for, as blocks.

A block has several values of some keys and is every combination of them: a request. What is typed
beside a plan file narrows it, or is a setting of the run; what it says else goes before defaults.

accelbench.toml: what the commands of a project take where nothing is typed.

    database = "results/bench.duckdb"    # every command; paths are taken from the file's folder
    prices = "prices.json"               # every command
    hardware = ["cpu", "cuda"]           # of run, as any other option of it
    launches = 5

    [check]                              # of another command
    threshold = 0.05

What is typed goes first, then a plan file, then the environment's variables, then this file. It is
looked for in the working folder and above it, up to the root of the git repository or the home
folder; outside of both in the working folder alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from accelbench.catalog.code_models.loading import code_word
from accelbench.catalog.file_models.folders import is_folder_word
from accelbench.catalog.file_models.kinds import is_file_word
from accelbench.catalog.file_models.models import placed_in
from accelbench.catalog.find import called, find
from accelbench.catalog.selection import choose
from accelbench.cli.arguments.plan_keys import ALONE, settled, value_of
from accelbench.core.errors import UsageError
from accelbench.core.model import ModelSpec
from accelbench.core.nouns import words
from accelbench.core.visible import in_quotes, visible
from accelbench.exchange.plans.document import (
    PlanDocument,
    PlanEntry,
    PlanKey,
    PlanKeys,
    PlanSection,
    read_plan,
)
from accelbench.exchange.plans.reading import SUFFIXES
from accelbench.query.filters import model_words
from accelbench.run.plan.expand import Block, Combination, blocks, combinations

if TYPE_CHECKING:
    import typer

    from accelbench.cli.arguments.plan_keys import CommandOption
    from accelbench.exchange.imports.records import Record


MODELS = "models"
#: Merged in this order, so that batches of one case are beside each other.
_FIRST_MERGED = ("batch_sizes",)
#: Of whose values each is several settings that belong together.
_TOGETHER = frozenset({"option", "dim"})


@dataclass(frozen=True)
class PlannedBlocks:
    """What plan files ask for.

    Attributes:
        blocks: of keys their values; of models their ids.
        models: by id.
        names: of models by id, as they were written.
        files: the documents.
        counts: of each document its combinations, before it is narrowed.
        left_out: of each document how many of its matrix are excluded.
    """

    blocks: list[dict[str, tuple[str, ...]]] = field(default_factory=list)
    models: dict[str, ModelSpec] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    files: list[PlanDocument] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)

    @property
    def about(self) -> list[dict[str, Any]]:
        """What a run keeps of its plan files."""
        return [
            {
                "file": str(document.file.absolute()),
                "sha256": document.digest,
                "name": document.name,
            }
            for document in self.files
        ]

    @property
    def notes(self) -> list[str]:
        """What is said of them before a run."""
        return [
            note
            for document in self.files
            for note in (_heading(document), *document.notes)
        ]  # fmt: skip


def _heading(document: PlanDocument) -> str:
    name = f", {in_quotes(document.name)}" if document.name else ""
    return f"The plan is of {document.file}{name} (SHA-256 {document.digest[:12]}…)."


def plan_files_among(given: Sequence[str] | None) -> tuple[list[Path], list[str]]:
    """Plan files and other words of where models are named."""
    files, others = [], []
    for word in given or ():
        if _ends_as_one(word) and Path(word).expanduser().is_file():
            files.append(Path(word).expanduser())
            continue
        for part in model_words([word]):
            if _ends_as_one(part):
                path = Path(part).expanduser()
                if not path.is_file():
                    raise UsageError(
                        f"There is no plan file {in_quotes(part)}.",
                        "A word that ends in .yaml, .yml, .toml or .json names one.",
                    )
                files.append(path)
            else:
                others.append(part)
    return files, others


def _ends_as_one(word: str) -> bool:
    return word.lower().endswith(SUFFIXES)


def read_plans(files: Sequence[Path], keys: PlanKeys) -> list[PlanDocument]:
    """The documents of some files, each once."""
    return [read_plan(file, keys) for file in dict.fromkeys(files)]


def run_values(documents: Iterable[PlanDocument], keys: PlanKeys) -> dict[str, Any]:
    """What plan files say of the run, by the command's parameters."""
    values: dict[str, Any] = {}
    first: dict[str, PlanDocument] = {}
    for document in documents:
        for name, texts in document.run.values.items():
            key = _known(keys, name)
            value = value_of(key, texts, document.file.parent)
            if values.setdefault(key.parameter, value) != value:
                other = first[key.parameter].file
                document.run.refuse(
                    name,
                    UsageError(
                        f"it is {texts[0]} here and something else in {other}: a run has one value",
                        "Give it on the command line, or run them one after the other.",
                    ),
                )
            first.setdefault(key.parameter, document)
    return values


def blocks_of(
    documents: Sequence[PlanDocument],
    keys: PlanKeys,
    narrowing: Mapping[str, Sequence[str]],
) -> PlannedBlocks:
    """What plan files ask for, narrowed to what was typed beside them."""
    planned = PlannedBlocks(files=list(documents))
    lists = [key.name for key in keys.of(PlanSection.MATRIX) if key.several]
    lists = [*_FIRST_MERGED, *(name for name in reversed(lists) if name not in _FIRST_MERGED)]
    for document in documents:
        reader = _Combining(document, keys, planned)
        made = reader.narrowed(reader.combinations(), narrowing)
        planned.blocks.extend(
            blocks(made, [n for n in lists if n not in _TOGETHER] + [MODELS], ALONE)
        )
    return planned


class _Combining:
    """The combinations of one plan file."""

    def __init__(self, document: PlanDocument, keys: PlanKeys, planned: PlannedBlocks) -> None:
        self._document = document
        self._keys = keys
        self._planned = planned
        self._folder = document.file.parent
        chosen = {
            _known(keys, name).parameter: value_of(_known(keys, name), texts, self._folder)
            for name, texts in document.selection.values.items()
        }
        self._models_file: Path | None = chosen.get("models_file")
        self._chosen = chosen

    def combinations(self) -> list[dict[str, str]]:
        """Every combination that the file asks for."""
        document, axes = self._document, dict[str, tuple[str, ...]]()
        if self._chosen:
            axes[MODELS] = self._selected()
        axes |= self._meant(document.matrix).values
        include = [one for entry in document.include for one in self._meant(entry).singles()]
        exclude = list(self._excluded(axes))
        try:
            made = combinations(axes, include, exclude)
        except UsageError as error:
            error.message = f"{document.file}: {error.message}"
            raise
        for combination in made:
            if MODELS not in combination:
                said = ", ".join(f"{name}: {value}" for name, value in combination.items())
                raise UsageError(
                    f"{document.file}: the entry of include with {said} fits no combination of the"
                    " matrix, and names no model.",
                    "Name its model, or values of the matrix.",
                )
        if not made:
            raise UsageError(f"{document.file}: every combination is excluded.")
        return made

    def _excluded(self, axes: Block) -> Iterable[Combination]:
        for entry in map(self._meant, self._document.exclude):
            for name, values in entry.values.items():
                wrong = [value for value in values if value not in axes.get(name, ())]
                if name not in axes:
                    why = "the matrix does not name it, so nothing can be excluded by it"
                    entry.refuse(name, UsageError(why, "Name its values under matrix."))
                if wrong:
                    why = f"{in_quotes(wrong[0])} is no value of the matrix"
                    entry.refuse(name, UsageError(why, f"It has: {', '.join(axes[name])}."))
            yield from entry.singles()

    def narrowed(
        self, made: list[dict[str, str]], narrowing: Mapping[str, Sequence[str]]
    ) -> list[dict[str, str]]:
        """Those that have what was typed; it is added to those that leave it open."""
        for name, texts in narrowing.items():
            if name == MODELS:
                wanted = tuple(self._model(text) for text in texts)
            else:
                wanted = settled(_known(self._keys, name), texts)
            left = [
                {**combination, name: value}
                for combination in made
                for value in wanted
                if combination.get(name, value) == value
            ]
            if not left:
                has = dict.fromkeys(combination[name] for combination in made)
                raise UsageError(
                    f"{self._document.file}: no combination has {name} {', '.join(wanted)}.",
                    f"It has: {', '.join(has)}.",
                )
            made = left
        return made

    def _meant(self, entry: PlanEntry) -> PlanEntry:
        """The same in one spelling of each value."""
        values: dict[str, tuple[str, ...]] = {}
        for name, texts in entry.values.items():
            try:
                if name == MODELS:
                    values[name] = tuple(dict.fromkeys(map(self._model, texts)))
                else:
                    values[name] = settled(_known(self._keys, name), texts)
            except UsageError as error:
                entry.refuse(name, error)
        return replace(entry, values=values)

    def _selected(self) -> tuple[str, ...]:
        """The ids of the models at the file's top."""
        chosen = self._chosen
        names = tuple(map(self._placed, words(chosen.get("models"))))
        try:
            specs = choose(
                names,
                chosen.get("set_name"),
                words(chosen.get("category")),
                words(chosen.get("specific")),
                all_models=bool(chosen.get("every")),
                models_file=self._models_file,
                pass_over=lambda error: self._planned.passed_over.append(str(error)),
            )
        except UsageError as error:
            first = next(iter(self._document.selection.values))
            self._document.selection.refuse(first, error)
        return self._remember(names, specs)

    def _placed(self, name: str) -> str:
        """A model's name; of a file its path, which a plan names from its own folder."""
        try:
            find(name, tuple(self._planned.models.values()))
        except UsageError:
            there = (self._folder / name).is_dir() and is_folder_word(str(self._folder / name))
            if code_word(name) is not None:
                raise UsageError(
                    f"A plan file cannot name code, which would run as soon as it is read:"
                    f" {in_quotes(name)}.",
                    f"Name it on the command line: accelbench run {visible(name)}",
                ) from None
            return placed_in(name, self._folder) if there or is_file_word(name) else name
        return name

    def _model(self, name: str) -> str:
        try:
            specs = choose([self._placed(name)], models_file=self._models_file)
        except UsageError:
            if name in self._planned.models:
                return name
            raise
        return self._remember([name], specs)[0]

    def _remember(self, names: Sequence[str], specs: Sequence[ModelSpec]) -> tuple[str, ...]:
        self._planned.models.update({spec.id: spec for spec in specs})
        self._planned.names.update(called(names, specs))
        return tuple(spec.id for spec in specs)


def _known(keys: PlanKeys, name: str) -> PlanKey:
    key = keys.get(name)
    assert key is not None  # read_plan refuses others
    return key


def typed_block(
    typed: Mapping[str, Any], block: Block, keys: PlanKeys, folder: Path
) -> dict[str, Any]:
    """What the command is given for one block, beside what holds for the whole run."""
    own = {
        _known(keys, name).parameter: value_of(_known(keys, name), texts, folder)
        for name, texts in block.items()
        if name != MODELS
    }
    return {**typed, **own}


FILE = "accelbench.toml"
#: Of every command: what stands for the option is an environment's variable, as without the file.
_EVERYWHERE = {"database": "ACCELBENCH_DB", "prices": "ACCELBENCH_PRICES"}
#: Options of a single time, or with a key of their own.
_NEVER = frozenset({"db", "prices", "resume", "dry_run", "save_plan", "plan_schema", "json"})


def project_file() -> Path | None:
    """The file of the project that the working folder is in; None where there is none."""
    try:
        here, home = Path.cwd(), Path.home()
    except (OSError, RuntimeError):  # a folder that was removed, a user without a home
        return None
    folders = []
    for folder in (here, *here.parents):
        folders.append(folder)
        if folder == home or (folder / ".git").exists():
            break
    else:
        folders = folders[:1]
    return next((folder / FILE for folder in folders if (folder / FILE).is_file()), None)


@contextmanager
def project_defaults(commands: Mapping[str, tuple[str, str]]) -> Iterator[None]:
    """What the file says of every command holds while one runs.

    Args:
        commands: by name, the module of each that has its `app`, and what it does.
    """
    file = project_file()
    before = {variable: os.environ.get(variable) for variable in _EVERYWHERE.values()}
    try:
        if file is not None:
            whole = _read(file)
            _refuse_unknown(whole, commands)
            for key, variable in _EVERYWHERE.items():
                if key in whole.values and not os.environ.get(variable):
                    os.environ[variable] = _path(whole, key)
        yield
    finally:
        for variable, value in before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value


def defaults_of(command: str, app: typer.Typer) -> dict[str, Any]:
    """What the file says of a command, by its parameters."""
    file = project_file()
    if file is None or len(app.registered_commands) != 1:
        return {}
    from accelbench.cli.arguments.plan_keys import options_of

    whole, options = _read(file), {o.key: o for o in options_of(app) if _may_default(o)}
    values: dict[str, Any] = {}
    if command == "run":
        own = {name: name.replace("-", "_") for name in whole.values}
        values |= {
            options[key].parameter: _value(whole, name, options[key])
            for name, key in own.items()
            if key in options
        }
    if isinstance(whole.values.get(command), Mapping):
        table = whole.of(command)
        for name in table.values:
            option = options.get(name.replace("-", "_"))
            if option is None:
                _refuse(table, name, f"`accelbench {command}` has no such option", options)
            values[option.parameter] = _value(table, name, option)
    return values


def project_note(command: str, app: typer.Typer) -> list[str]:
    """What a command takes from the file, in a sentence; nothing where it takes nothing."""
    file = project_file()
    if file is None:
        return []
    from accelbench.cli.arguments.plan_keys import options_of

    names = {option.parameter: option.key for option in options_of(app)}
    whole = _read(file)
    everywhere = [
        key
        for key, variable in _EVERYWHERE.items()
        if key in whole.values and os.environ.get(variable) == _path(whole, key)
    ]
    keys = [*everywhere, *(names[parameter] for parameter in defaults_of(command, app))]
    return [f"Where nothing else is said, {file} does: {', '.join(keys)}."] if keys else []


def _read(file: Path) -> Record:
    from accelbench.exchange.plans.reading import toml_of

    return toml_of(file)


def _may_default(option: CommandOption) -> bool:
    return bool(option.option) and not option.hidden and option.key not in _NEVER


def _refuse_unknown(whole: Record, commands: Mapping[str, tuple[str, str]]) -> None:
    from accelbench.cli.arguments.plan_keys import options_of

    app_of_run = import_module(commands["run"][0]).app
    of_run = [option.key for option in options_of(app_of_run) if _may_default(option)]
    for name, value in whole.values.items():
        if name in commands and isinstance(value, Mapping):
            continue
        if name not in _EVERYWHERE and name.replace("-", "_") not in of_run:
            _refuse(whole, name, "there is no such key", [*_EVERYWHERE, *of_run, *commands])


def _refuse(part: Record, name: str, why: str, known: Any) -> NoReturn:
    from accelbench.core.nouns import meant
    from accelbench.exchange.imports.records import MalformedError

    line = (part.lines or {}).get(name)
    raise MalformedError(part.file, line, name, why, meant(name, known))


def _path(whole: Record, key: str) -> str:
    return str(whole.file.parent / Path(whole.text(key)).expanduser())


def _value(part: Record, name: str, option: CommandOption) -> Any:
    """The value as the command line's parser takes it."""
    value = part.values[name]
    if option.several:
        texts = value if isinstance(value, list) else [value]
        if not texts or not all(type(text) in (str, int, float) for text in texts):
            part.wrong(name, "a word or a list of words was expected")
        return [str(text) for text in texts]
    kinds: dict[str, tuple[type, ...]] = {"truth": (bool,), "number": (int,)}
    kinds["fraction"] = (int, float)
    wanted = kinds.get(option.kind, (str, int, float))
    if type(value) not in wanted:
        words = {"truth": "true or false", "number": "a whole number", "fraction": "a number"}
        part.wrong(name, f"{words.get(option.kind, 'a word')} was expected")
    if option.kind == "number" and not (
        (option.least is None or value >= option.least)
        and (option.most is None or value <= option.most)
    ):
        to = "on" if option.most is None else f"to {option.most}"
        part.wrong(name, f"{value} is not from {option.least} {to}")
    if option.kind == "path":
        return _path(part, name)
    return value if option.kind in kinds else str(value)
