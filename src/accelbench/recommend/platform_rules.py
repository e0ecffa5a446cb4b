"""The rating of platforms without results, by the documents' advice and the engines' cards. Pure.

Every rule gives or takes points and has the sentence of the documents that it realises. Two points
are rated high, one is medium, less is low. Any result or estimate comes before rules.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from accelbench.core.devices import cards, title_of
from accelbench.core.formatting import join_first
from accelbench.core.precision import PRECISIONS
from accelbench.core.protocols import RuntimeInfo
from accelbench.core.vocabulary import Mode, Provenance
from accelbench.recommend.query import GENERATING, Query

#: A size that only a forward pass has.
_FORWARD = "sequence_length"


def is_generation(query: Query, sizes: Mapping[str, int]) -> bool:
    """Return whether generation is asked for, token by token."""
    if query.spec is None or query.spec.generation is None or query.mode != Mode.INFERENCE:
        return False
    known = {name for name, value in {**sizes, **query.shapes}.items() if value is not None}
    return _FORWARD not in known or bool(known & set(GENERATING))


def why_no_engine(platform: str, query: Query, *, generates: bool) -> str:
    """Return why no engine of a platform can run a question; "" if one can or none is known."""
    engines = _engines(platform)
    if not engines:
        return ""
    reasons = [_why_not(card, query, generates=generates) for card in engines]
    if not all(reasons):
        return ""
    by_reason: dict[str, list[str]] = {}
    for card, reason in zip(engines, reasons, strict=True):
        by_reason.setdefault(reason, []).append(title_of(card.name))
    return "; ".join(
        f"{join_first(names)} {'does' if len(names) == 1 else 'do'} not {reason}"
        for reason, names in by_reason.items()
    )


def is_refused_by_all(platform: str, engines: Collection[str | None]) -> bool:
    """Return whether the engines that refused something are all engines of a platform.

    The refusal of an unknown engine counts for the platform.
    """
    known = {card.name for card in _engines(platform)}
    return bool(engines) and (None in engines or known <= set(engines))


def able_engines(platform: str, query: Query, *, generates: bool) -> list[str]:
    """Return the engines of a platform that can run a question, its default one first."""
    able = [card for card in _engines(platform) if not _why_not(card, query, generates=generates)]
    able.sort(key=lambda card: platform not in card.default_for)
    return [card.name for card in able]


def cannot_generate(platform: str) -> bool:
    """Return whether every known engine of a platform computes forward passes only."""
    engines = _engines(platform)
    return bool(engines) and not any(card.generates for card in engines)


def can_train(platform: str) -> bool:
    """Return whether an engine of a platform trains models, or none of its engines is known."""
    engines = _engines(platform)
    return not engines or any(map(_trains, engines))


def _engines(platform: str) -> list[RuntimeInfo]:
    return [
        card
        for card in cards().values()
        if platform in card.hardware and card.provenance == Provenance.MEASURED
    ]


def _trains(card: RuntimeInfo) -> bool:
    return card.consumes == "torch"


def _why_not(card: RuntimeInfo, query: Query, *, generates: bool) -> str:
    if query.mode == Mode.TRAINING and not _trains(card):
        return "train"
    if generates and not card.generates:
        return "generate token by token"
    precision = query.precision
    if precision in PRECISIONS and precision not in card.precisions:
        return f"compute {precision}"
    return ""


HIGH, MEDIUM = 2.0, 1.0
#: Importance of batch or size for a family → the factor of rules about it, and the power of bounds
#: that are a guess.
LEANING: Mapping[str, float] = {"low": 0.5, "medium": 1.0, "high": 1.5}
#: Points of a platform without rules.
_UNKNOWN = MEDIUM

_ALL: tuple[str, ...] = ()
_INFERENCE, _TRAINING = Mode.INFERENCE.value, Mode.TRAINING.value


@dataclass(frozen=True)
class Rule:
    """Points for a platform if all conditions hold; an empty condition always does."""

    hardware: str
    points: float
    why: str
    families: Sequence[str] = _ALL
    sizes: Sequence[str] = _ALL
    batches: Sequence[str] = _ALL
    mode: str = ""
    leans_on: str = ""  # batch or size: that family's importance scales the points

    def holds(self, about: RuleSubject) -> bool:
        return (
            (not self.families or about.family in self.families)
            and (not self.sizes or about.size in self.sizes)
            and (not self.batches or about.batch in self.batches)
            and (not self.mode or about.mode == self.mode)
        )


@dataclass(frozen=True)
class RuleSubject:
    """The question as rules see it: size and batch are small, medium or large."""

    family: str
    size: str
    batch: str
    mode: str
    size_importance: str = "medium"
    batch_importance: str = "medium"

    def leaning(self, rule: Rule) -> float:
        importance = {"batch": self.batch_importance, "size": self.size_importance}
        return LEANING[importance[rule.leans_on]] if rule.leans_on else 1.0


_FILE = Path(__file__).with_suffix(".toml")
RULES = tuple(Rule(**rule) for rule in tomllib.loads(_FILE.read_text(encoding="utf-8"))["rules"])


@dataclass(frozen=True)
class RuleAnswer:
    """The points of a platform with their reasons."""

    points: float
    compatible: bool
    why: tuple[str, ...]

    @property
    def rating(self) -> str:
        return rating_of(self.points)


def rating_of(points: float) -> str:
    """Return high, medium or low."""
    return "high" if points >= HIGH else "medium" if points >= MEDIUM else "low"


def ruled(hardware: str, about: RuleSubject, rating: str | None = None) -> RuleAnswer:
    """Return the points of a platform and their reasons."""
    if about.mode == _TRAINING and not can_train(hardware):
        return RuleAnswer(0.0, compatible=False, why=(f"{hardware} trains no models",))
    mine = [rule for rule in RULES if rule.hardware == hardware and rule.holds(about)]
    if rating is not None:
        mine = [rule for rule in mine if rule.sizes or rule.batches or rule.mode]
    elif not any(rule.hardware == hardware for rule in RULES):
        return RuleAnswer(_UNKNOWN, compatible=True, why=("no rule speaks of it",))
    base = {"high": HIGH, "medium": MEDIUM}.get(rating or "", 0.0)
    reasons = [f"rated {rating}"] if rating is not None else []
    points = base + sum(rule.points * about.leaning(rule) for rule in mine)
    return RuleAnswer(
        points, compatible=True, why=(*reasons, *(rule.why for rule in mine if rule.points))
    )


def family_rating(hardware: str, family: str) -> str:
    """Return the rating of a platform for a family at any size, batch and mode."""
    mine = [rule for rule in RULES if rule.hardware == hardware]
    if not mine:
        return rating_of(_UNKNOWN)
    plain = [rule for rule in mine if not (rule.sizes or rule.batches or rule.mode)]
    return rating_of(sum(r.points for r in plain if not r.families or family in r.families))
