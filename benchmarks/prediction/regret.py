"""How much slower is what `accelbench recommend` takes than the measured best?

A published table is split by the hash of a model's family or name. The known part is imported into
a database, and `accelbench recommend` is asked about the hidden models: which configuration of a
device, or of all devices of a kind. The answer is compared with the hidden measurements. Constant
rules, which always prefer one configuration, are scored on the same questions.

    python benchmarks/prediction/regret.py timm.parquet --graph-features operators.parquet
        [--hide families | models] [--among device | kind] [--most N]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # the folder of this file would put its modules beside everybody's
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import duckdb
import numpy as np

from prediction.open_holdout import accelbench, is_hidden, write_known

#: So many models are named in one command.
_MOST_NAMED = 60
#: Where one configuration is the best of nearly every question there is nothing to choose.
_ALWAYS = 0.98
_PRECISIONS = {"amp": "amp-fp16"}

Row = Mapping[str, Any]
#: Device, precision, whether it is compiled, and layout.
Configuration = tuple[str, str, bool, str]
#: Kind, device or "", mode, model, side of an image, batch.
Question = tuple[str, str, str, str, int, int]


@dataclass(frozen=True)
class Choice:
    """A question with the measured times of its configurations, and the one that was chosen."""

    question: Question
    times: Mapping[Configuration, float]
    chosen: Configuration
    probability: float | None = None

    def regret(self, taken: Configuration) -> float:
        """Return by how much longer a configuration takes than the best."""
        return self.times[taken] / min(self.times.values()) - 1.0


def configuration_of(row: Row) -> Configuration:
    """Return the configuration of a row of the table."""
    extra = json.loads(row["extra"] or "{}")
    precision = _PRECISIONS.get(row["precision"], row["precision"])
    layout = str(extra.get("layout") or "")
    return row["hardware_name"], precision, bool(extra.get("compile")), layout


def questions_of(rows: Iterable[Row], among: str) -> dict[Question, dict[Configuration, float]]:
    """Return the measured times of each question with at least two configurations."""
    times: dict[Question, dict[Configuration, list[float]]] = {}
    for row in rows:
        device = row["hardware_name"] if among == "device" else ""
        name = row["model"].split(".")[0]
        question = (
            row["hardware_kind"],
            device,
            row["mode"],
            name,
            row["img_size"] or 0,
            (row["batch_size"]),
        )
        cell = times.setdefault(question, {}).setdefault(configuration_of(row), [])
        cell.append(float(row["latency_ms"]))
    return {
        question: {place: float(np.median(values)) for place, values in cells.items()}
        for question, cells in times.items()
        if len(cells) > 1
    }


def asked(
    questions: Mapping[Question, Mapping[Configuration, float]], database: Path
) -> list[Choice]:
    """Return the choices of `accelbench recommend` for questions."""
    groups: dict[tuple[str, str, str, int, int], list[str]] = {}
    for kind, device, mode, model, side, batch in questions:
        groups.setdefault((kind, device, mode, side, batch), []).append(model)
    choices = []
    for (kind, device, mode, side, batch), models in groups.items():
        place = f"{kind}:{device}" if device else kind
        for start in range(0, len(models), _MOST_NAMED):
            named = sorted(models)[start : start + _MOST_NAMED]
            sizes = ["--image-size", str(side)] if side else []
            answer = accelbench(
                "recommend", *named, "--hardware", place, "--mode", mode,
                "--batch-size", str(batch), *sizes, "--db", str(database),
            )  # fmt: skip
            for entry in answer["recommendations"]:
                question = kind, device, mode, entry["question"]["model"], side, batch
                made = chosen_of(entry, questions.get(question, {}))
                if made is not None:
                    choices.append(Choice(question, questions[question], *made))
    return choices


def chosen_of(
    answer: Mapping[str, Any], times: Mapping[Configuration, float]
) -> tuple[Configuration, float | None] | None:
    """Return the first configuration of an answer that was measured, with its probability."""
    for entry in answer["configurations"]:
        layout = str((entry["options"] or {}).get("layout") or "")
        place = entry["device"], entry["precision"], bool(entry["compiled"]), layout
        if place in times:
            return place, entry["probability"]
    return None


def usual_order(
    known: Mapping[Question, Mapping[Configuration, float]],
) -> list[Configuration]:
    """Return configurations by their mean logarithm relative to the best, over known questions."""
    relative: dict[Configuration, list[float]] = {}
    for times in known.values():
        least = min(times.values())
        for place, value in times.items():
            relative.setdefault(place, []).append(float(np.log(value / least)))
    return sorted(relative, key=lambda place: (np.mean(relative[place]), str(place)))


def ruled(times: Mapping[Configuration, float], order: Sequence[Configuration]) -> Configuration:
    """Return the first configuration of an order that a question has."""
    return next((place for place in order if place in times), min(times, key=str))


def summary(choices: Sequence[Choice], order: Sequence[Configuration]) -> dict[str, Any]:
    """Return the mean regret of recommendations and of constant rules, in percent."""
    if not choices:
        return {"n": 0}
    regrets = np.array([choice.regret(choice.chosen) for choice in choices])
    places = sorted({place for choice in choices for place in choice.times}, key=str)
    rules = {"usual order of the known part": order}
    rules |= {" ".join(map(str, place)): [place, *order] for place in places}
    constant = {
        name: float(np.mean([c.regret(ruled(c.times, preferred)) for c in choices]))
        for name, preferred in rules.items()
    }
    best = [min(choice.times, key=lambda place: choice.times[place]) for choice in choices]
    most = max(best.count(place) for place in set(best)) / len(best)
    sure = [choice.probability for choice in choices if choice.probability is not None]
    return {
        "n": len(choices),
        "configurations": round(float(np.mean([len(choice.times) for choice in choices])), 2),
        "best_share_of_one": round(100 * most, 1),
        "one_always_wins": most >= _ALWAYS,
        "regret_mean": round(100 * float(regrets.mean()), 3),
        "regret_median": round(100 * float(np.median(regrets)), 3),
        "chosen_best": round(100 * float((regrets <= 0.0).mean()), 1),
        "stated_probability": round(100 * float(np.mean(sure)), 1) if sure else None,
        "constant_rules": {name: round(100 * value, 3) for name, value in constant.items()},
        "better_than_every_rule": bool(regrets.mean() < min(constant.values())),
    }


def report(
    choices: Sequence[Choice], known: Mapping[Question, Mapping[Configuration, float]]
) -> dict[str, Any]:
    """Return the summary of each kind, mode and device."""
    groups: dict[tuple[str, str, str], list[Choice]] = {}
    for choice in choices:
        kind, device, mode, *_ = choice.question
        groups.setdefault((kind, device, mode), []).append(choice)
    made = {}
    for (kind, device, mode), some in sorted(groups.items()):
        order = usual_order(
            {q: times for q, times in known.items() if q[:3] == (kind, device, mode)}
        )
        made[" ".join(filter(None, (kind, device, mode)))] = summary(some, order)
    return made


def _graphs(path: Path | None) -> set[str] | None:
    """Return the models whose operators a table has; None without a table."""
    if path is None:
        return None
    rows = duckdb.execute("SELECT DISTINCT model FROM read_parquet(?)", [str(path)]).fetchall()
    return {name for (name,) in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--graph-features", type=Path)
    parser.add_argument("--hide", default="families", choices=("families", "models"))
    parser.add_argument("--among", default="device", choices=("device", "kind"))
    parser.add_argument("--most", type=int, default=10**6, help="questions at most, drawn evenly")
    given = parser.parse_args()
    found = duckdb.execute("SELECT * FROM read_parquet(?)", [str(given.table)])
    names = [column[0] for column in found.description]
    rows = [dict(zip(names, values, strict=True)) for values in found.fetchall()]
    hidden = [is_hidden(row, given.hide) for row in rows]
    graphs = _graphs(given.graph_features)
    usable = [
        row
        for row in rows
        if row["batch_size"]
        and row["latency_ms"]
        and (graphs is None or row["model"].split(".")[0] in graphs)
    ]
    questions = questions_of((r for r in usable if is_hidden(r, given.hide)), given.among)
    known = questions_of((r for r in usable if not is_hidden(r, given.hide)), given.among)
    step = max(1, len(questions) // given.most)
    questions = {key: questions[key] for key in sorted(questions, key=str)[::step]}
    with tempfile.TemporaryDirectory() as scratch:
        database = Path(scratch) / "known.duckdb"
        write_known(given.table, [at for at, hide in enumerate(hidden) if not hide], database)
        if given.graph_features is not None:
            # Keeps the table beside the database, which `recommend` reads.
            first = next(iter(questions))[3]
            accelbench(
                "predict", first, "--graph-features", str(given.graph_features),
                "--db", str(database),
            )  # fmt: skip
        choices = asked(questions, database)
    print(json.dumps({
        "table": given.table.name, "hide": given.hide, "among": given.among,
        "questions": len(questions), "scored": len(choices), **report(choices, known),
    }, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
