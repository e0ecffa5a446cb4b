"""Whether any engine of a platform can run what is asked, by the engines' cards. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from accelbench.core.cards import cards, title_of
from accelbench.core.nouns import listed
from accelbench.core.precision import PRECISIONS
from accelbench.core.protocols import RuntimeInfo
from accelbench.core.vocabulary import Mode, Provenance
from accelbench.select.query.query import GENERATING, Query

#: A size that only a forward pass has.
_FORWARD = "sequence_length"


def is_generation(query: Query, sizes: Mapping[str, int]) -> bool:
    """Return whether whole requests are asked for, token by token.

    Args:
        query: the question.
        sizes: of the model's results, by the store's columns.
    """
    if query.spec is None or query.spec.generation is None or query.mode != Mode.INFERENCE:
        return False
    known = {name for name, value in {**sizes, **query.shapes}.items() if value is not None}
    return _FORWARD not in known or bool(known & set(GENERATING))


def why_no_engine(platform: str, query: Query, *, generates: bool) -> str:
    """Return why no engine of a platform can run a question; "" if one can or none is known.

    Args:
        platform: the hardware; one that no engine serves has results from elsewhere.
        query: the question.
        generates: whole requests are asked for.
    """
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
        f"{listed(names)} {'does' if len(names) == 1 else 'do'} not {reason}"
        for reason, names in by_reason.items()
    )


def is_refused_by_all(platform: str, engines: Collection[str | None]) -> bool:
    """Return whether engines that refused something are all that a platform has.

    Engines of a platform that no card names are unknown, and so is one that is None: a refusal of
    either stands for the platform.
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
