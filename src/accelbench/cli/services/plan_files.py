"""Plan files on a command line: which words name some, and what they ask for, as blocks.

A block has several values of some keys and is every combination of them: a request. What is typed
with a plan file narrows it, or is a setting of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from accelbench.cli.arguments import resolved_values
from accelbench.core.errors import UsageError
from accelbench.core.formatting import split_words
from accelbench.core.free_dimensions import parse_combinations as size_combinations
from accelbench.core.model import ModelSpec
from accelbench.core.run_options import PlanSection, RunField, field_of, plan_fields
from accelbench.core.safe_text import in_quotes, visible
from accelbench.engines.shared.names import runtimes_named
from accelbench.exchange.plan_document import PlanDocument, PlanEntry, convert_texts, read_plan
from accelbench.exchange.plan_reading import SUFFIXES
from accelbench.judge.filters import model_words
from accelbench.models.code_models.loading import code_word
from accelbench.models.file_models.folders import is_folder_word
from accelbench.models.file_models.kinds import is_file_word
from accelbench.models.file_models.models import placed_in
from accelbench.models.find import find, names_used
from accelbench.models.selection import choose
from accelbench.run.plan.expand import Block, Combination, blocks, combinations
from accelbench.run.plan.request import AUTO

MODELS = "models"
#: Merged in this order, so that batches of one case are beside each other.
_FIRST_MERGED = ("batch_sizes",)
#: Of whose values each is several settings that belong together.
_TOGETHER = frozenset({"option", "dim"})
#: Values of hardware that stand for several, and next to no other.
_ALONE = (AUTO, "all")


def settled(known: RunField, texts: Sequence[str]) -> tuple[str, ...]:
    """Return values as cases have them: one name for each thing, and "both" written out."""
    if known.key == "hardware":
        return resolved_values.platforms(texts) or ("all",)
    if known.key == "framework":
        return runtimes_named(texts)
    if known.key == "precision":
        return resolved_values.precisions(texts)
    if known.key == "mode":
        return tuple(mode.value for mode in resolved_values.modes(texts, training=False))
    if known.axis and known.axis.text:
        # Each value of a list is sizes that belong together; a value may say several of a name.
        return tuple(dict.fromkeys(one for text in texts for one in size_combinations([text])))
    for text in texts:
        if known.key == "optimizer":
            resolved_values.training_options(text, checkpointing=False, pure=False)
        elif known.key == "option":
            resolved_values.runtime_options([text])
    return tuple(texts)


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


def read_plans(files: Sequence[Path]) -> list[PlanDocument]:
    """Read plan files, each once."""
    return [read_plan(file) for file in dict.fromkeys(files)]


def run_values(documents: Iterable[PlanDocument]) -> dict[str, Any]:
    """Return the settings that plan files have for the run, by the command's parameters."""
    values: dict[str, Any] = {}
    first: dict[str, PlanDocument] = {}
    for document in documents:
        for name, texts in document.run.values.items():
            key = _known(name)
            value = convert_texts(key, texts, document.file.parent)
            if values.setdefault(key.name, value) != value:
                other = first[key.name].file
                document.run.refuse(
                    name,
                    UsageError(
                        f"it is {texts[0]} here and something else in {other}: a run has one value",
                        "Give it on the command line, or run them one after the other.",
                    ),
                )
            first.setdefault(key.name, document)
    return values


def blocks_of(
    documents: Sequence[PlanDocument], narrowing: Mapping[str, Sequence[str]]
) -> PlannedBlocks:
    """Return what plan files ask for, narrowed to what was typed with them."""
    planned = PlannedBlocks(files=list(documents))
    lists = [known.key for known in plan_fields(PlanSection.MATRIX) if known.several]
    lists = [*_FIRST_MERGED, *(name for name in reversed(lists) if name not in _FIRST_MERGED)]
    for document in documents:
        reader = _Combining(document, planned)
        made = reader.narrowed(reader.combinations(), narrowing)
        planned.blocks.extend(
            blocks(made, [n for n in lists if n not in _TOGETHER] + [MODELS], _ALONE)
        )
    return planned


class _Combining:
    """The combinations of one plan file."""

    def __init__(self, document: PlanDocument, planned: PlannedBlocks) -> None:
        self._document = document
        self._planned = planned
        self._folder = document.file.parent
        chosen = {
            _known(name).name: convert_texts(_known(name), texts, self._folder)
            for name, texts in document.selection.values.items()
        }
        self._models_file: Path | None = chosen.get("models_file")
        self._chosen = chosen

    def combinations(self) -> list[dict[str, str]]:
        document, axes = self._document, dict[str, tuple[str, ...]]()
        if self._chosen:
            axes[MODELS] = self._selected()
        axes |= self._meant(document.matrix).values
        include = [one for entry in document.include for one in self._meant(entry).combinations()]
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
            yield from entry.combinations()

    def narrowed(
        self, made: list[dict[str, str]], narrowing: Mapping[str, Sequence[str]]
    ) -> list[dict[str, str]]:
        """Those that have what was typed; it is added to those that leave it open."""
        for name, texts in narrowing.items():
            if name == MODELS:
                wanted = tuple(self._model(text) for text in texts)
            else:
                wanted = settled(_known(name), texts)
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
                    values[name] = settled(_known(name), texts)
            except UsageError as error:
                entry.refuse(name, error)
        return replace(entry, values=values)

    def _selected(self) -> tuple[str, ...]:
        chosen = self._chosen
        names = tuple(map(self._placed, split_words(chosen.get("models"))))
        try:
            specs = choose(
                names,
                chosen.get("set_name"),
                split_words(chosen.get("category")),
                split_words(chosen.get("specific")),
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
        self._planned.names.update(names_used(names, specs))
        return tuple(spec.id for spec in specs)


def _known(key: str) -> RunField:
    known = field_of(key)
    assert known is not None  # read_plan refuses others
    return known


def block_values(block: Block) -> dict[str, Any]:
    """Return the values of options for one block."""
    known = {_known(key): texts for key, texts in block.items() if key != MODELS}
    return {one.name: convert_texts(one, texts, Path()) for one, texts in known.items()}
