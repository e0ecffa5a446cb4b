"""The runs whose results files bring: on which machine each was made, and of which commit.

A result keeps the run that it was of, so that runs have a history here as well. What is
said of such a run counts only where the run itself says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.core.facts import RUN_FINISHED, RUN_STARTED, Fact
from accelbench.core.vocabulary import Provenance
from accelbench.exchange.imports.result_row import Source
from accelbench.exchange.run_facts import told


@dataclass(frozen=True)
class Run:
    """A run of which there are results."""

    id: str
    about: Mapping[str, Any]  # as run_started says it
    own: bool = False  # it is the import itself

    def facts(self) -> tuple[Fact, Fact]:
        """That it began and ended; under other ids than its own facts', which may come later."""
        fact_id = self.id if self.own else f"import/{self.id}"
        ended = {"status": "finished", "finished_at": self.about.get("finished_at")}
        return (
            Fact(RUN_STARTED, fact_id, {**self.about, "run_id": self.id}),
            Fact(RUN_FINISHED, fact_id, {**ended, "run_id": self.id}),
        )


@dataclass(frozen=True)
class Table:
    """What a file brings that is too much to be held."""

    query: str  # for its results, by our columns
    rows: int
    runs: Sequence[Run]
    theirs: int = 0  # say themselves whose they are
    samples: bool = False  # are in the file as well, and are not read
    empty: int = 0  # lines without a figure: what did not run


def about_ours(run: Any, row: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """What is known of a run of ours by what its file says and by one of its rows.

    Its machine is the one that it was made on. A source that who imports has named is that
    machine's name, and so is the kind's where the file says nothing of a machine.
    """
    about = told(run) if isinstance(run, Mapping) else {}
    about.setdefault("started_at", row.get("started_at"))
    machine = dict(about.get("environment") or {})
    if row.get("provenance") == Provenance.IMPORTED:
        machine = machine or {"source": _theirs(row.get("conditions")) or source.to_dict()}
    elif source.named or not machine:
        machine["source"] = source.to_dict()
    return {**about, "environment": machine}


def says_another(body: Mapping[str, Any], source: Source) -> bool:
    """Whether a result says that it is somebody else's, which no import changes."""
    theirs = _theirs(body.get("conditions"))
    return theirs is not None and theirs != source.to_dict()


def _theirs(conditions: Any) -> Any:
    """Whose a figure was before, where its conditions say it."""
    return conditions.get("source") if isinstance(conditions, Mapping) else None


def once(runs: Iterable[Run]) -> list[Run]:
    """Each run once, as it is told first."""
    by_id: dict[str, Run] = {}
    for run in runs:
        by_id.setdefault(run.id, run)
    return list(by_id.values())
