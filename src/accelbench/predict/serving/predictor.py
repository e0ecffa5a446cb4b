"""Predicted TTFT, TPOT and throughput of a served model, corrected by measured servers."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from accelbench.core.errors import UsageError
from accelbench.core.jsonc import JsonError, loads
from accelbench.predict.serving.models import (
    AGGREGATED,
    DISAGGREGATED,
    MeasuredServer,
    ServerLayout,
    ServingQuestion,
    architecture_name,
    cache_tokens,
    distinct,
    measured_server,
    measured_servers,
    memory_bytes,
    served_model,
)
from accelbench.predict.serving.operators import OperatorTables, system_of
from accelbench.predict.serving.queueing import (
    Request,
    ServerLimits,
    simulate,
    spread_requests,
)
from accelbench.predict.serving.steps import LAYER_MS, STEP_MS, StepTimes
from accelbench.store.files import default_folder

if TYPE_CHECKING:
    from accelbench.store.database import Database

#: Raised whenever expected times change: kept ones are computed anew.
VERSION = 6


KV_BITS = 8.0


@dataclass
class Expected:
    """Times that follow from the tables, before measured servers correct them."""

    tpot_parts: dict[str, float]
    ttft_parts: dict[str, float]
    traits: dict[str, float]
    gpus: int
    batch: float
    cache_tokens: float
    weights_gib: float
    throughput: float = 0.0
    percentiles: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def fits(self) -> bool:
        return self.cache_tokens > 0


class ServingTimes:
    """Expected times by the tables of a folder; every system and engine is loaded once."""

    def __init__(self, tables: Path) -> None:
        self.tables = tables
        self._tables: dict[tuple[str, str], OperatorTables] = {}
        self._steps: dict[Any, StepTimes] = {}
        self._kept: dict[str, Any] | None = None

    def steps(self, question: ServingQuestion, layout: ServerLayout) -> StepTimes:
        key = (question.system, question.engine)
        if key not in self._tables:
            self._tables[key] = OperatorTables(self.tables, *key)
        gemm, moe = question.types
        model = served_model(question.model, Path(question.config) if question.config else None)
        name = (*key, replace(model, id=""), gemm, moe, layout)
        if name not in self._steps:
            self._steps[name] = StepTimes(self._tables[key], model, layout, gemm, moe, KV_BITS)
        return self._steps[name]

    def expect(self, question: ServingQuestion) -> Expected:
        """Return the expected times of one question."""
        if question.mode == DISAGGREGATED:
            return self._expect_split(question)
        if question.layout.tp > max(8, system_of(question.system).node // 9):
            return self._expect_pool(question)
        return self._expect_whole(question)

    def expect_all(self, questions: Sequence[ServingQuestion], keep: Path | None) -> list[Expected]:
        """Return expected times of many questions; those computed earlier come from a file."""
        known: dict[str, Any] = {}
        if keep is not None and keep.exists():
            try:
                known = loads(keep.read_text(encoding="utf-8"))
            except (ValueError, JsonError):
                known = {}
        keys = [_key_of(question) for question in questions]
        fresh = False
        for key, question in zip(keys, questions, strict=True):
            if key not in known:
                known[key], fresh = asdict(self.expect(question)), True
        if fresh and keep is not None:
            keep.parent.mkdir(parents=True, exist_ok=True)
            scratch = keep.with_suffix(".new")
            scratch.write_text(json.dumps(known), encoding="utf-8")
            scratch.replace(keep)
        return [Expected(**known[key]) for key in keys]

    def _expect_whole(self, question: ServingQuestion) -> Expected:
        """Simulate a server whose GPUs both read prompts and decode."""
        layout, model_steps = question.layout, self.steps(question, question.layout)
        room = self._room(question, layout) * layout.dp
        users = max(int(question.concurrency), 1)
        limits = ServerLimits(
            cache_tokens=room or math.inf,
            step_tokens=_STEP_TOKENS * layout.dp,
            is_mixed=question.engine != "sglang",
        )
        times = simulate(
            _requests_of(question, model_steps), model_steps.step, limits,
            concurrency=users if question.rate is None else None,
        )  # fmt: skip
        skip = len(times.sent) // 4
        occupancy = times.batch_seconds / times.busy if times.busy else 0.0
        if question.rate is not None:
            users = max(round(occupancy), 1)
        order = np.argsort(times.sent, kind="stable")
        first = times.ttft()[order] * 1e3
        later = times.tpot(skip) * 1e3
        burst, steady = float(first[:skip].mean()), float(first[skip:].mean())
        tpot = float(later.mean())
        expected = self._describe(question, layout, model_steps, users, tpot, room)
        expected.traits["users"] = question.concurrency if question.rate is None else float(users)
        queue = max(steady - expected.ttft_parts["prefill"], 0.0)
        # A closed loop starts with all users at once, as a tenth of the requests of usual runs.
        start = 0.1 * burst if question.rate is None else 0.1 * steady
        expected.ttft_parts |= {"burst": start, "queue": queue}
        most = math.inf if question.rate is None else question.rate * question.new
        expected.throughput = min(times.tokens_per_second(skip), most)
        if question.rate is not None and expected.throughput < _SATURATED * most:
            expected.notes.append("requests arrive faster than they are served: TTFT keeps growing")
        for name, values in (("ttft", first[skip:]), ("tpot", later)):
            for share in (50, 90):
                expected.percentiles[f"{name}_p{share}"] = float(np.percentile(values, share))
        expected.percentiles["occupancy"] = occupancy
        return expected

    def _expect_split(self, question: ServingQuestion) -> Expected:
        """Derive the times of separate workers for prompts and for decoding."""
        users = max(question.concurrency, 1.0)
        layout, ahead = question.layout, question.prefill_layout
        notes = []
        if question.decode_workers is None:
            workers = 1 if layout.gpus > 8 else 2 if users > 256 else 4
            notes.append("the number of workers is not known and assumed")
            if layout.tp > 8:
                layout, _ = self._best(question, layout.tp, users / workers)
        else:
            workers = question.decode_workers
        before = question.prefill_workers or 0
        if ahead.tp > 8:
            ahead = ServerLayout(1, 1, ahead.tp, 1, ahead.tp)
        return self._of_workers(question, ahead, layout, workers, before, notes)

    def _expect_pool(self, question: ServingQuestion) -> Expected:
        """Derive the times of GPUs of which only the number is known."""
        gpus = question.layout.tp
        layout, workers = self._best(question, max(int(gpus * 0.67), 1), question.concurrency, 8)
        ahead = ServerLayout(1, 1, 4, 1, 4)
        notes = [f"the layout of {gpus} GPUs is not known and assumed"]
        return self._of_workers(question, ahead, layout, workers, 0, notes)

    def _best(
        self, question: ServingQuestion, gpus: int, users: float, widest: int = 0
    ) -> tuple[ServerLayout, int]:
        """Return the fastest layout of GPUs, and how many workers of it there are."""
        choices = [(ServerLayout(1, 1, gpus, 1, gpus), 1)]
        choices += [
            (ServerLayout(tp, 1, 1, 1, tp), max(gpus // tp, 1) if widest else 1)
            for tp in (1, 4, 8, 16)
            if tp <= gpus and (not widest or tp <= widest)
        ]
        context = question.prompt + question.new / 2
        return min(
            choices,
            key=lambda one: self.steps(question, one[0]).step(
                0, 0, max(users / one[1], 1), context
            ),
        )

    def _of_workers(
        self, question: ServingQuestion, ahead: ServerLayout, layout: ServerLayout, workers: int,
        before: int, notes: list[str],
    ) -> Expected:  # fmt: skip
        steps = self.steps(question, layout)
        users = max(question.concurrency / workers, 1.0)
        context = question.prompt + question.new / 2
        decode = steps.step(0, 0, users, context) * 1e3
        room = self._room(question, layout) * layout.dp
        expected = self._describe(question, layout, steps, users, decode, room)
        steps_ahead = self.steps(question, ahead)
        prefill = steps_ahead.step(question.prompt, 1, 0, 0) * 1e3
        # Workers that are busy read several prompts in a step.
        together = max(_STEP_TOKENS * ahead.dp // question.prompt, 1)
        full = steps_ahead.step(together * question.prompt, together, 0, 0) * 1e3 / together
        # Unknown numbers of workers are taken as those that are busy four fifths of the time.
        before = before or math.ceil(
            question.concurrency * min(prefill, full) / (0.8 * decode * question.new)
        )
        service = min(prefill, full) / before
        expected.ttft_parts |= {
            "prefill": prefill,
            "burst": 0.05 * question.concurrency * service,
            "queue": _closed_wait(question.concurrency, service, decode * question.new),
            "transfer": 200.0,
        }
        expected.gpus = layout.gpus * workers + ahead.gpus * before
        cycle = (prefill + decode * question.new) / 1e3
        expected.throughput = question.concurrency * question.new / cycle
        expected.traits["workers"] = float(question.decode_workers is not None)
        expected.notes += notes
        return expected

    def _describe(
        self, question: ServingQuestion, layout: ServerLayout, steps: StepTimes, users: float,
        tpot: float, room: float,
    ) -> Expected:  # fmt: skip
        model = steps.model
        context = question.prompt + question.new / 2
        decode = steps.step(0, 0, users, context) * 1e3
        parts = steps.parts(users, users)
        layers = model.layers * LAYER_MS
        step = STEP_MS.get(question.engine, 0.6)
        prefill = steps.step(question.prompt, 1, 0, 0) * 1e3
        attention = steps.decode_attention(users, context)
        gemm, moe = question.types
        return Expected(
            tpot_parts={
                "products": parts["products"], "experts": parts["experts"],
                "collectives": parts["collectives"], "attention": attention,
                "passes": max(parts["rest"] - layers - step, 0.0), "layers": layers, "step": step,
                "prompts": max(tpot - decode, 0.0),
            },
            ttft_parts={
                "prefill": prefill, "layers": float(model.layers), "constant": 10.0,
                "decode": decode, "transfer": 0.0,
            },
            traits={
                "experts": parts["experts"] / decode, "collectives": parts["collectives"] / decode,
                "rest": parts["rest"] / decode, "attention": attention / decode,
                "prompts": question.concurrency * prefill / (question.new * decode),
                "decode": decode, "tpot": tpot, "workers": 1.0, "users": question.concurrency,
            },
            gpus=layout.gpus, batch=users / layout.dp, cache_tokens=room,
            weights_gib=memory_bytes(model, layout, gemm, moe) / 2**30,
            notes=steps.tables.notes((gemm, moe))
            + ([f"{steps.tables.system.name} is scaled from {steps.tables.base.name}'s tables"]
               if steps.tables.is_scaled else []),
        )  # fmt: skip

    def _room(self, question: ServingQuestion, layout: ServerLayout) -> float:
        steps = self.steps(question, layout)
        return cache_tokens(
            steps.model, layout, steps.tables.system, *question.types, kv_bits=KV_BITS
        )


def _requests_of(question: ServingQuestion, steps: StepTimes) -> list[Request]:
    """Return four rounds of users, or what arrives while three requests are served in turn."""
    users = max(int(question.concurrency), 1)
    if question.rate is None:
        return spread_requests(4 * users, question.prompt, question.new)
    stay = question.new * steps.step(0, 0, users, question.prompt + question.new / 2)
    count = min(max(math.ceil(4 * question.rate * stay), 200), _MOST_REQUESTS)
    gaps = np.random.default_rng(1).exponential(1 / question.rate, count)
    requests = spread_requests(count, question.prompt, question.new)
    return [
        replace(one, due=float(due)) for one, due in zip(requests, np.cumsum(gaps), strict=True)
    ]


#: A smaller share of the arriving tokens shows a server that cannot follow.
_SATURATED = 0.85
#: Requests of a simulated open loop; 20,000 take a second.
_MOST_REQUESTS = 20_000


def _closed_wait(users: float, service: float, think: float) -> float:
    """Return the mean wait for a server of users who return after a time, by mean values."""
    queued = response = 0.0
    for count in range(1, round(users) + 1):
        response = service * (1 + queued)
        queued = count * response / (response + think)
    return max(response - service, 0.0)


#: Engines read prompts in pieces of about so many tokens.
_STEP_TOKENS = 8192


def _key_of(question: ServingQuestion) -> str:
    text = json.dumps([VERSION, asdict(question)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


_ENGINES = ("trtllm", "sglang", "vllm")
_PARTS = {
    "tpot": ("products", "experts", "collectives", "attention", "passes", "layers", "step",
             "prompts"),
    "ttft": ("prefill", "burst", "queue", "layers", "constant", "decode", "transfer"),
}  # fmt: skip


@dataclass(frozen=True)
class _Prior:
    """Prior weights of the parts, and how far engines and servers usually are from them, in logs.

    Chosen by leaving systems and models out together; no model or GPU has a value of its own.
    """

    weights: Sequence[float]
    spread: Sequence[float]
    by_engine: Sequence[float]
    variances: Mapping[str, float]
    noise: Mapping[str, float]  # by mode


_PRIORS = {
    "tpot": _Prior(
        (1, 1, 1, 1, 1, 1, 1, 1),
        (0.1, 0.1, 0.1, 0.1, 0.1, 0.3, 0.3, 0.1),
        (0.05, 0.05, 0.05, 0.05, 0.01, 0.2, 0.2, 0.05),
        {"mode": 0.01, "engine": 0.005, "precision": 0.003, "system": 0.005, "model": 0.01,
         "model_engine": 0.01, "system_engine": 0.005, "group": 0.03, "configuration": 0.015,
         "trend": 0.003, "trend_mode": 0.005, "trend_engine": 0.003, "trend_group": 0.02,
         "trend_configuration": 0.06},
        {AGGREGATED: 0.006, DISAGGREGATED: 0.03},
    ),
    "ttft": _Prior(
        (0.7, 1.3, 0.9, 0.1, 3, 6, 1),
        (0.2, 0.3, 0.2, 0.6, 0.6, 0.3, 0.6),
        (0.2, 0.3, 0.2, 0.5, 0.7, 0.4, 1),
        {"mode": 0.005, "engine": 0.006, "precision": 0.003, "system": 0.006, "model": 0.006,
         "model_engine": 0.01, "system_engine": 0.006, "group": 0.25, "configuration": 0.1,
         "trend": 0.002, "trend_mode": 0.002, "trend_engine": 0.002, "trend_group": 0.1,
         "trend_configuration": 0.3},
        {AGGREGATED: 0.02, DISAGGREGATED: 0.06},
    ),
}  # fmt: skip
#: Half the width of a 90 % band in standard deviations.
_BAND = 1.645


@dataclass
class Correction:
    """Weights of the parts and a Gaussian process of what they leave, learned in logarithms."""

    target: str
    train: list[tuple[ServingQuestion, Expected]]
    values: np.ndarray
    weights: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        prior = _PRIORS[self.target]
        modes = np.array([question.mode for question, _ in self.train], dtype=object)
        for mode in (AGGREGATED, DISAGGREGATED):
            chosen = [i for i in range(len(self.train)) if modes[i] == mode]
            pairs = [self.train[i] for i in chosen]
            self.weights[mode] = _fit_weights(
                prior, *_parts(self.target, pairs), self.values[chosen], _shares(pairs)
            )
        self._left = self.values - self._means(self.train)
        self._known = _Traits.of(self.train) if self.train else None

    def predict(
        self, asked: list[tuple[ServingQuestion, Expected]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return logarithms of milliseconds and their standard deviations."""
        means, noise = self._means(asked), self._noise(asked)
        own = sum(_PRIORS[self.target].variances.values()) + noise
        if self._known is None:
            return means, np.sqrt(own + _UNLEARNED)
        cross = self._kernel(self._known, _Traits.of(asked))
        # Rows that hardly resemble the questions change nothing but the time.
        rows = np.sort(np.argsort(-cross.max(1), kind="stable")[:_MOST_COMPARED])
        known, left, cross = self._known.at(rows), self._left[rows], cross[rows]
        kernel = self._kernel(known, known)
        noise_of_rows = self._noise([self.train[row] for row in rows])
        kernel[np.diag_indices_from(kernel)] += _outlier_noise(left, noise_of_rows)
        factor = np.linalg.cholesky(kernel)
        half = np.linalg.solve(factor, np.column_stack([left, cross]))
        variance = np.maximum(own - (half[:, 1:] ** 2).sum(0), noise)
        return means + half[:, 1:].T @ half[:, 0], np.sqrt(variance)

    def _noise(self, asked: Sequence[tuple[ServingQuestion, Expected]]) -> np.ndarray:
        noise = _PRIORS[self.target].noise
        return np.array([noise[question.mode] for question, _ in asked])

    def _means(self, asked: Sequence[tuple[ServingQuestion, Expected]]) -> np.ndarray:
        parts, engines = _parts(self.target, asked)
        modes = np.array([question.mode for question, _ in asked], dtype=object)
        out = np.zeros(len(asked))
        for mode, weights in self.weights.items():
            rows = modes == mode
            out[rows] = _weigh(parts[rows], engines[rows], weights)
        return out

    def _kernel(self, one: _Traits, two: _Traits) -> np.ndarray:
        shares = _PRIORS[self.target].variances
        same = {name: one.groups[name][:, None] == two.groups[name][None, :] for name in one.groups}
        near = np.exp(-0.5 * _squares(one.all, two.all) / 4)
        load = np.exp(-0.5 * _squares(one.load, two.load))
        total = shares["trend"] * near
        for name in _GROUPS:
            total += shares[name] * same[name]
        total += near * (shares["trend_mode"] * same["mode"])
        total += near * (shares["trend_engine"] * same["engine"])
        total += load * (shares["trend_group"] * same["group"])
        total += load * (shares["trend_configuration"] * same["configuration"])
        return np.asarray(total)


#: Measured servers that a question is compared with; 1,000 take 0.2 s.
_MOST_COMPARED = 1000
#: Without any measured server the prior of the weights counts too.
_UNLEARNED = 0.05


def _outlier_noise(left: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return noise that keeps few wrong rows from bending the rest."""
    return np.asarray(noise * (1 + np.square(left - np.median(left)) / (64 * noise)))


_GROUPS = ("mode", "engine", "precision", "system", "model", "model_engine", "system_engine",
           "group", "configuration")  # fmt: skip


@dataclass
class _Traits:
    """Groups and sizes that the process compares."""

    groups: dict[str, np.ndarray]
    load: np.ndarray
    all: np.ndarray

    def at(self, rows: np.ndarray) -> _Traits:
        groups = {name: values[rows] for name, values in self.groups.items()}
        return _Traits(groups, self.load[rows], self.all[rows])

    @classmethod
    def of(cls, asked: Sequence[tuple[ServingQuestion, Expected]]) -> _Traits:
        names: dict[str, list[int]] = {}
        load, rest = [], []
        for question, expected in asked:
            model, known = architecture_name(question.model), expected.traits["workers"]
            keys: dict[str, Any] = {
                "mode": (question.mode, known),
                "engine": (question.engine, question.mode),
                "precision": question.precision,
                "system": (question.system, question.mode, known),
                "model": (model, question.mode, known),
                "model_engine": (model, question.engine, question.mode),
                "system_engine": (question.system, question.engine, question.mode),
                "group": (model, question.system, question.engine, question.precision,
                          question.mode),
                "configuration": question.configuration,
            }  # fmt: skip
            for name, key in keys.items():
                digest = hashlib.md5(repr(key).encode(), usedforsecurity=False).digest()
                names.setdefault(name, []).append(int.from_bytes(digest[:8], "big") >> 1)
            load.append([
                math.log(max(expected.traits["users"], 1)) / 1.5, math.log(question.prompt) / 1.5,
                math.log(question.new) / 1.5, math.log(max(expected.gpus, 1)),
            ])  # fmt: skip
            share = expected.traits
            rest.append([
                math.log(max(expected.batch, 0.1)) / 1.5, share["experts"] / 0.25,
                share["collectives"] / 0.25, share["rest"] / 0.25, share["attention"] / 0.25,
                math.log(share["prompts"] + 0.01) / 1.5,
            ])  # fmt: skip
        sizes = np.asarray(load, float).reshape(len(asked), -1)
        return cls(
            {name: np.asarray(names.get(name, []), dtype=np.int64) for name in _GROUPS},
            sizes,
            np.hstack([sizes, np.asarray(rest, float).reshape(len(asked), -1)]),
        )


def _squares(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    both = (one**2).sum(1)[:, None] + (two**2).sum(1)[None, :] - 2 * one @ two.T
    return np.asarray(np.maximum(both, 0.0))


def _parts(
    target: str, asked: Sequence[tuple[ServingQuestion, Expected]]
) -> tuple[np.ndarray, np.ndarray]:
    names = _PARTS[target]
    rows = [[getattr(expected, f"{target}_parts")[name] for name in names] for _, expected in asked]
    engines = [
        _ENGINES.index(question.engine) if question.engine in _ENGINES else len(_ENGINES)
        for question, _ in asked
    ]
    return np.asarray(rows, float).reshape(len(asked), len(names)), np.asarray(engines, int)


def _weigh(parts: np.ndarray, engines: np.ndarray, weights: np.ndarray) -> np.ndarray:
    count = parts.shape[1]
    own = weights[count:].reshape(len(_ENGINES) + 1, count)[engines]
    return np.asarray(np.log((parts * np.exp(weights[:count] + own)).sum(1)))


def _shares(pairs: Sequence[tuple[ServingQuestion, Expected]]) -> np.ndarray:
    """Return weights of rows that keep groups of many rows from deciding alone."""
    groups = [
        (question.model, question.system, question.engine, question.precision)
        for question, _ in pairs
    ]
    counts = Counter(groups)
    return np.array([_FULL_GROUP / max(counts[group], _FULL_GROUP) for group in groups])


#: Rows of a group that count in full.
_FULL_GROUP = 10


def _fit_weights(
    prior: _Prior,
    parts: np.ndarray,
    engines: np.ndarray,
    values: np.ndarray,
    shares: np.ndarray,
) -> np.ndarray:
    """Return log weights of the parts and of each engine's deviations, by robust Gauss-Newton."""
    count, kinds = len(prior.weights), len(_ENGINES) + 1
    start = np.concatenate([np.log(prior.weights), np.zeros(kinds * count)])
    pull = np.concatenate(
        [1 / np.square(prior.spread), np.tile(1 / np.square(prior.by_engine), kinds)]
    )
    weights = start.copy()
    scale = 0.25
    for _ in range(8 if len(values) else 0):
        own = weights[count:].reshape(kinds, count)[engines]
        weighed = parts * np.exp(weights[:count] + own)
        total = weighed.sum(1)
        left = values - np.log(total)
        trust = shares / (1 + np.square(left / (2 * scale))) / scale**2
        slopes = np.zeros((len(values), len(start)))
        slopes[:, :count] = weighed / total[:, None]
        for kind in range(kinds):
            rows = engines == kind
            at = count * (1 + kind)
            slopes[rows, at : at + count] = slopes[rows, :count]
        curve = (slopes * trust[:, None]).T @ slopes + np.diag(pull)
        slope = slopes.T @ (trust * left) - pull * (weights - start)
        weights = weights + np.clip(np.linalg.solve(curve, slope), -1, 1)
    return weights


@dataclass
class ServingPrediction:
    """The answer to one question; times in milliseconds, with a 90 % band."""

    question: ServingQuestion
    expected: Expected
    ttft: tuple[float, float, float]
    tpot: tuple[float, float, float]
    learned_from: int

    @property
    def tokens_per_second(self) -> float:
        """Tokens of all users, as many being in flight as a closed loop keeps."""
        cycle = (self.ttft[1] + self.tpot[1] * (self.question.new - 1)) / 1e3
        closed = self.question.concurrency * self.question.new / cycle
        return closed if self.question.rate is None else self.expected.throughput

    def to_dict(self) -> dict[str, Any]:
        model, expected = self.question, self.expected
        gpus = max(expected.gpus, 1)
        per_user = model.prompt + model.new
        most = int(expected.cache_tokens // per_user) if math.isfinite(
            expected.cache_tokens) else None  # fmt: skip
        return {
            "model": model.model, "system": model.system, "framework": model.engine,
            "precision": model.precision, "serving_mode": model.mode,
            "tensor_parallel": model.layout.tp, "concurrency": expected.traits["users"],
            "rate": model.rate,
            "prompt_tokens": model.prompt, "new_tokens": model.new,
            "ttft_ms": self.ttft[1], "ttft_low_ms": self.ttft[0], "ttft_high_ms": self.ttft[2],
            "tpot_ms": self.tpot[1], "tpot_low_ms": self.tpot[0], "tpot_high_ms": self.tpot[2],
            "output_tokens_s": self.tokens_per_second,
            "output_tokens_s_per_gpu": self.tokens_per_second / gpus,
            "gpus": gpus, "fits": expected.fits and most != 0, "weights_gib": expected.weights_gib,
            "cache_tokens": expected.cache_tokens, "largest_concurrency": most,
            "batch_occupancy": expected.percentiles.get("occupancy"),
            "basis": "measured servers" if self.learned_from else "operator tables",
            "learned_from": self.learned_from, "notes": list(expected.notes),
        }  # fmt: skip


class ServingPredictor:
    """Predictions from operator tables and the measured servers that correct them."""

    def __init__(
        self, times: ServingTimes, measured: Sequence[MeasuredServer], keep: Path | None = None
    ) -> None:
        self.times = times
        usable = [one for one in measured if _is_described(one.question)]
        expected = times.expect_all([one.question for one in usable], keep)
        pairs = [(one.question, entry) for one, entry in zip(usable, expected, strict=True)]
        self.count = len(pairs)
        self._corrections = {
            "ttft": Correction("ttft", pairs, np.log([one.ttft for one in usable])),
            "tpot": Correction("tpot", pairs, np.log([one.tpot for one in usable])),
        }

    def predict(
        self, questions: Sequence[ServingQuestion], keep: Path | None = None
    ) -> list[ServingPrediction]:
        expected = self.times.expect_all(questions, keep)
        pairs = list(zip(questions, expected, strict=True))
        bands = {}
        for target, correction in self._corrections.items():
            middle, deviation = correction.predict(pairs)
            bands[target] = [
                (math.exp(m - _BAND * d), math.exp(m), math.exp(m + _BAND * d))
                for m, d in zip(middle, deviation, strict=True)
            ]
        return [
            ServingPrediction(question, entry, ttft, tpot, self.count)
            for question, entry, ttft, tpot in zip(
                questions, expected, bands["ttft"], bands["tpot"], strict=True
            )
        ]


def _is_described(question: ServingQuestion) -> bool:
    try:
        served_model(question.model, Path(question.config) if question.config else None)
        system_of(question.system)
    except UsageError:
        return False
    return True


def predict_servers(
    questions: Sequence[ServingQuestion],
    tables: Path,
    database: Database | None,
    files: Sequence[Path],
    hear: Callable[[str], None] = lambda _: None,
) -> list[ServingPrediction]:
    """Return predictions, learned from the measured servers of a database and of files."""
    measured = [] if database is None or not database.is_created else measured_servers(database)
    if files:
        from accelbench.exchange.imports.reading import read_import

        bodies = [body for file in files for body in read_import("aiconfigurator", file).bodies]
        measured = distinct([*measured, *map(measured_server, bodies)])
    times = ServingTimes(tables)
    keep = default_folder() / "serving" / f"{_fingerprint(tables)}.json"
    if measured and not keep.exists():
        hear(f"Deriving the times of {len(measured):,} measured servers …")
    return ServingPredictor(times, measured, keep).predict(questions)


def _fingerprint(tables: Path) -> str:
    """Return a digest of the files of a folder by their names, sizes and times."""
    files = sorted(tables.rglob("*")) if tables.is_dir() else []
    facts = [
        (str(file), stat.st_size, stat.st_mtime_ns)
        for file in files
        if file.is_file() and (stat := file.stat())
    ]
    return hashlib.sha256(repr([VERSION, facts]).encode()).hexdigest()[:24]
