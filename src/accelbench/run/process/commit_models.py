"""An owner's models in the other arm: of a commit its code as that commit has it.

Code finds what lies beside it before anything else. Were the file of here run in both arms, both
would import what lies here, and a slower change would never be seen. In another environment that is
so, as it is for Python itself: a note says what comes from beside the file.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from accelbench.catalog.code_models.models import Elsewhere, looked_at_elsewhere
from accelbench.catalog.file_models.kinds import FileRefusedError
from accelbench.catalog.file_models.unchanged import digest_of, files_of
from accelbench.core.errors import SurroundingsError
from accelbench.core.model import ModelCode, ModelFile, ModelSpec
from accelbench.core.nouns import listed
from accelbench.run.plan.request import Plan


@dataclass(frozen=True)
class Checkout:
    """A commit's files.

    Attributes:
        name: what the user named it.
        top: of the repository here.
        folder: where its files are, for as long as the run goes on.
        variables: what the environment of its processes has beside ours.
        working: the folder that they run in.
    """

    name: str
    top: Path
    folder: Path
    variables: Mapping[str, str]
    working: Path

    def there(self, path: str | Path) -> Path | None:
        """The same path among the commit's files; None of what is not the repository's.

        A link is the commit's as well, and may lead elsewhere there.
        """
        whole = Path(path).parent.resolve() / Path(path).name
        top = self.top.resolve()
        return self.folder / whole.relative_to(top) if whole.is_relative_to(top) else None


def as_committed(plan: Plan, checkout: Checkout) -> tuple[Plan, list[str]]:
    """A plan whose models are the commit's, where they are the repository's; and what to note.

    Raises:
        SurroundingsError: the commit has a model that is not measured, or another file.
    """
    models: dict[str, ModelSpec] = {}
    notes: list[str] = []
    for planned in plan.cases:
        model = planned.case.model
        if model.id not in models:
            models[model.id], said = _committed(model, checkout)
            notes += said
    cases = tuple(
        replace(planned, case=replace(planned.case, model=models[planned.case.model.id]))
        for planned in plan.cases
    )
    return replace(plan, cases=cases), notes


def shared_by_both(plan: Plan) -> list[str]:
    """What to note of an owner's code in another environment: what both arms import from here."""
    models = {planned.case.model.id: planned.case.model for planned in plan.cases}
    notes = []
    for model in models.values():
        code = model.code
        if code is None or code.package:
            continue
        # What of its repository lies elsewhere is found by what either has installed.
        folder, own = Path(code.folder).resolve(), Path(code.path).resolve()
        beside = [path for path in map(Path, code.sources) if path.is_relative_to(folder)]
        names = sorted({path.relative_to(folder).parts[0] for path in beside if path != own})
        if names:
            notes.append(
                f"{model.id} imports {', '.join(names)} from beside it in both arms, and not from"
                " either environment."
            )
    return notes


def _committed(model: ModelSpec, checkout: Checkout) -> tuple[ModelSpec, list[str]]:
    if model.file is not None:
        _refuse_another_file(model, model.file, checkout)
        return model, []
    if model.code is None or model.code.package:
        return model, []
    return _code(model, model.code, checkout)


def _refuse_another_file(model: ModelSpec, file: ModelFile, checkout: Checkout) -> None:
    """A graph is looked at once; what of it were another there would be measured under its name."""
    pairs = [(path, checkout.there(path)) for path in files_of(file)]
    # What git ignores, as weights of gigabytes, no commit has.
    both = [(path, there) for path, there in pairs if there is not None and there.is_file()]
    if all(digest_of([path]) == digest_of([there]) for path, there in both):
        return
    raise SurroundingsError(
        f"{model.id} is another file in {checkout.name}, and a file that is measured is the same in"
        " both arms.",
        f"Measure each by itself: accelbench run {model.id} on either commit, then accelbench"
        " check --baseline.",
    )


def _code(model: ModelSpec, code: ModelCode, checkout: Checkout) -> tuple[ModelSpec, list[str]]:
    folder = checkout.there(code.folder)
    path = checkout.there(code.path) if code.path else None
    notes = []
    if folder is None:
        folder, path = Path(code.folder), Path(code.path) if code.path else None
        notes.append(
            f"{model.id} lies outside the repository: both arms run the same file, and what it"
            f" imports from the repository is of {checkout.name} in the other."
        )
    elif path is not None and not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(code.path, path)
        notes.append(
            f"{checkout.name} has no {Path(code.path).name}: that of here is run there, with what"
            " it imports from the commit."
        )
    try:
        found, of_here = looked_at_elsewhere(
            model,
            Elsewhere(
                str(path or ""),
                str(folder),
                {**os.environ, **checkout.variables},
                checkout.working,
                checkout.top,
            ),
        )
    except FileRefusedError as error:
        raise SurroundingsError(
            f"{model.id} is not measured in {checkout.name}: {error.within}", error.advice
        ) from error
    notes += _of_here(model, of_here, checkout)
    assert found.code is not None
    if found.code.digest == code.digest and found.code.folder != code.folder:
        notes.append(
            f"{model.id} and what it imports from its repository are the same in {checkout.name}"
            " as here; what it imports or reads only as it runs was not compared."
        )
    return found, notes


def _of_here(model: ModelSpec, files: Sequence[Path], checkout: Checkout) -> list[str]:
    """What to note of files of here that are imported in the commit's arm.

    Raises:
        SurroundingsError: the commit has them too, and theirs are not what would be measured.
    """
    there = [path for path in files if (other := checkout.there(path)) and other.is_file()]
    if there:
        raise SurroundingsError(
            f"{model.id} is not measured in {checkout.name}: it imports"
            f" {_named(there, checkout)} from here, and not from the commit.",
            "An editable installation may lead there: install it without -e, or measure each commit"
            " by itself, then accelbench check --baseline.",
        )
    if not files:
        return []
    named = _named(files, checkout)
    return [f"{model.id} imports {named} from here in both arms: {checkout.name} has no such file."]


def _named(files: Sequence[Path], checkout: Checkout) -> str:
    """Files by their paths in the repository."""
    return listed([str(path.relative_to(checkout.top.resolve())) for path in files])
