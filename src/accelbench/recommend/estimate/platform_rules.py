"""The rating of platforms without results, by the documents' advice and the engines' cards. Pure.

Every rule gives or takes points and has the sentence of the documents that it realises. Two points
are rated high, one is medium, less is low. Any result or estimate comes before rules.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from accelbench.core.devices import cards, title_of
from accelbench.core.nouns import listed
from accelbench.core.precision import PRECISIONS
from accelbench.core.protocols import RuntimeInfo
from accelbench.core.vocabulary import Family, Mode, Provenance
from accelbench.recommend.query.query import GENERATING, Query

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
        f"{listed(names)} {'does' if len(names) == 1 else 'do'} not {reason}"
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
_TEXT, _SEEN = (Family.TEXT_GENERATION,), (Family.EMBEDDING, Family.VISION)
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


RULES = (
    Rule("cpu", 1, "it is everywhere, for development and testing too"),
    Rule(
        "cpu", 1, "small models with low latency requirements",
        sizes=("small",), batches=("small",), mode=_INFERENCE,
    ),
    Rule("cpu", -1, "larger models gain more elsewhere", sizes=("large",), leans_on="size"),
    Rule("cpu", -1, "small batches suit it", batches=("large",), leans_on="batch"),
    Rule("cpu", -1, "training wants an accelerator", mode=_TRAINING),
    Rule("cuda", 2, "the widest support of all accelerators"),
    Rule("cuda", 1, "large language models", _TEXT, sizes=("large",), leans_on="size"),
    Rule("cuda", 1, "high-throughput batch processing", batches=("large",), leans_on="batch"),
    Rule("cuda", 1, "training and fine-tuning", mode=_TRAINING),
    Rule("rocm", 1, "an alternative to CUDA"),
    Rule("rocm", 1, "batch processing, as with CUDA", batches=("large",), leans_on="batch"),
    Rule("rocm", 0.5, "medium to large models", sizes=("medium", "large"), leans_on="size"),
    Rule("rocm", 1, "training with compatible frameworks", mode=_TRAINING),
    Rule("mps", 1, "Mac-based deployment"),
    Rule("mps", 1, "medium-sized models", sizes=("medium",)),
    Rule("mps", -1, "large models want more memory and speed", sizes=("large",), leans_on="size"),
    Rule("openvino", 1, "it optimises for Intel's CPUs and GPUs"),
    Rule("openvino", 1, "vision models", (Family.VISION,)),
    Rule("openvino", -1, "large models gain more elsewhere", sizes=("large",), leans_on="size"),
    Rule("qnn", 1, "power-efficient inference on the device itself"),
    Rule("qnn", -1, "large models do not fit such devices", sizes=("large",), leans_on="size"),
    Rule("qnn", -1, "small batches suit such devices", batches=("large",), leans_on="batch"),
    Rule("webnn", 0, "browser-based deployment"),
    Rule("webnn", 2, "embedding and vision tasks", _SEEN),
    # Only for what suits a page: a rule must not recommend generating texts in one.
    Rule("webnn", 1, "small to medium models", _SEEN, ("small", "medium"), leans_on="size"),
    Rule("webnn", -1, "a page holds no large models", sizes=("large",), leans_on="size"),
    Rule("webnn", -1, "a page works on small batches", batches=("large",), leans_on="batch"),
    Rule("webgpu", 1, "GPU acceleration in web applications"),
    Rule("webgpu", -1, "a page holds no large models", sizes=("large",), leans_on="size"),
    Rule("webgpu", -1, "a page works on small batches", batches=("large",), leans_on="batch"),
    Rule("wasm", 0, "the browser's fallback: it runs on the CPU"),
    Rule("tpu", 1, "an accelerator for large batches and training"),
    Rule("tpu", 1, "large batches", batches=("large",), leans_on="batch"),
    Rule("tpu", 1, "training", mode=_TRAINING),
)  # fmt: skip


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
