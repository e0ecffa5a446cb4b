"""`HardwareSelector` recommends hardware for a model by stored results.

Every answer uses three methods that can be overridden: `_encode_hardware_type`,
`_estimate_model_size`, `select_hardware`.

Stored models ranked for a task, and advice on several devices for one model. Pure.

No time on several devices is predicted: it depends on their connection, which was not measured.

A selector's answers for the devices of this machine, without emulated ones.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from accelbench.core.case import Shapes
from accelbench.core.errors import AccelbenchError
from accelbench.core.facts import utc_now
from accelbench.core.model import ModelSpec
from accelbench.core.protocols import Absent, Device, Inventory
from accelbench.core.rows import Json, number, text
from accelbench.core.vocabulary import HARDWARE, MIB, Mode, Provenance
from accelbench.hardware.detect import LazyInventory
from accelbench.models.cost import memory_estimate_bytes
from accelbench.models.find import every_model
from accelbench.predict.questions import MemoryByDevice
from accelbench.recommend.answers import Answer, selection_map, sharers, told
from accelbench.recommend.candidate_predictions import CandidatePredictions
from accelbench.recommend.choosing import (
    THROUGHPUT,
    AnswerBasis,
    Choice,
    choose,
    objective_named,
)
from accelbench.recommend.config import (
    BROWSERS,
    Config,
    ModelSize,
    estimated_size,
    from_name,
    known_size,
    size_of,
    stored_names,
)
from accelbench.recommend.constraints.best_under import LimitAnswer, Limits, limits_named, under
from accelbench.recommend.constraints.measurement_candidates import BATCHES, MeasurementTarget
from accelbench.recommend.evidence.candidates import (
    Candidate,
    candidates,
    deployed,
    every,
    order_in,
    placed,
)
from accelbench.recommend.evidence.cells import engines_of
from accelbench.recommend.evidence.model_evidence import own_of
from accelbench.recommend.evidence.reader import (
    EvidenceStore,
    StrPath,
    configured,
    destination,
    opened,
)
from accelbench.recommend.matrices import Matrices, of_config, of_results, pages
from accelbench.recommend.platform_rules import is_generation, why_no_engine
from accelbench.recommend.pricing import Costs, Given, costs_of
from accelbench.recommend.query import (
    Query,
    RawQuery,
    StoredModel,
    family_named,
    task_key,
    task_named,
)
from accelbench.recommend.validation import batches

if TYPE_CHECKING:
    from accelbench.store.database import Database


#: The documents' tasks → words in the catalogue's tasks.
_TASKS: Mapping[str, tuple[str, ...]] = {
    "classification": ("classification", "detection"),
    "generation": ("generation", "to-text", "to-image"),
    "embedding": ("feature", "embedding", "similarity", "zero-shot"),
    "speech_recognition": ("speech", "recognition"),
}
#: The same for models of no catalogue → their families.
_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "classification": ("vision",),
    "generation": ("text_generation",),
    "embedding": ("embedding",),
    "speech_recognition": ("audio",),
}


def does(task: str, model: str, family: str | None) -> bool:
    """Return whether a model is for a task; training and fine-tuning suit all."""
    if task not in _TASKS:
        return True
    spec = _spec(model)
    if spec is None:
        return family in _FAMILIES[task]
    return any(word in spec.task for word in _TASKS[task])


def may_do(task: str, model: str, family: str | None) -> bool:
    """Return whether the task of a model is unknown, so that it may be this one."""
    return task in _TASKS and not family and _spec(model) is None


def _spec(model: str) -> ModelSpec | None:
    return next((spec for spec in every_model() if spec.id == model), None)


def ranked(answers: Mapping[str, Json]) -> list[dict[str, object]]:
    """Return models by the throughput of their best hardware, those without a result last.

    The answers are those of `select_hardware` by model. Rates of tokens and images do not compare:
    models are ranked within a unit, and the unit of most models comes first.
    """
    entries: list[dict[str, object]] = []
    for name, answer in answers.items():
        first = answer.get("primary_recommendation")
        scores = _part(_part(answer, "all_scores"), str(first)) if first else {}
        predictions = _part(scores, "predictions")
        if predictions.get("provenance") == Provenance.PREDICTED:
            predictions = {}  # predictions rank no models
        entries.append(
            {
                "model": name,
                "hardware": first,
                "device": scores.get("device"),
                "runtime": scores.get("runtime"),
                "precision": scores.get("precision"),
                "sizes": answer.get("sizes", {}),
                "basis": scores.get("basis"),
                "provenance": scores.get("provenance"),
                "rests_on": scores.get("rests_on", []),
                "sources": scores.get("sources", []),
                "latency": predictions.get("latency"),
                "throughput": predictions.get("throughput"),
                "throughput_unit": predictions.get("throughput_unit"),
            }
        )
    units = Counter(_unit(entry) for entry in entries if entry["throughput"] is not None)

    def place(entry: Json) -> tuple[bool, int, str, bool, float, str]:
        rate, unit = number(entry, "throughput"), _unit(entry)
        measured = entry["basis"] == "measured"
        return rate is None, -units[unit], unit, not measured, -(rate or 0.0), text(entry, "model")

    return sorted(entries, key=place)


def _part(answer: Json, name: str) -> Json:
    part = answer.get(name)
    return part if isinstance(part, Mapping) else {}


def _unit(entry: Json) -> str:
    return text(entry, "throughput_unit")


#: Platforms whose frameworks have a way for several devices.
DISTRIBUTES = ("cuda", "rocm", "tpu", "cpu")
#: Weight, gradient and two moments of AdamW in fp32; a forward pass keeps weights alone.
_TRAINING_BYTES, _INFERENCE_BYTES = 16, 4
_GIB = 2**30


def advised(query: Query, ranked: Iterable[str]) -> dict[str, object] | None:
    """Return the advice on several devices; None if one was asked for."""
    given = query.distributed
    if given is None or given["gpu_count"] < 2:
        return None
    count, gib = given["gpu_count"], given["max_memory_gb"]
    able = [name for name in dict.fromkeys(ranked) if name in DISTRIBUTES]
    needed = _needed(query)
    strategy, fits, why = _strategy(query, needed, count, gib)
    return {
        "gpu_count": count,
        "max_memory_gb": gib,
        "hardware": able,
        "memory_needed_gb": None if needed is None else needed / _GIB,
        "strategy": strategy,
        "fits": fits,
        "reason": why,
        "speed": "not predicted: what connects the devices was not measured",
    }


def _needed(query: Query) -> float | None:
    """Bytes that one device would need alone, at its share of the batch."""
    count = query.distributed["gpu_count"] if query.distributed else 1
    share = max(1, math.ceil(query.batch / count))
    if query.spec is not None:
        try:
            estimate = memory_estimate_bytes(
                query.spec, Shapes(share), query.precision or "fp32", query.mode
            )
        except AccelbenchError:
            estimate = None
        if estimate is not None:
            return float(estimate)
    parameters = query.size.parameters
    if parameters is None:
        return None
    each = _TRAINING_BYTES if query.mode == Mode.TRAINING else _INFERENCE_BYTES
    return float(parameters) * each


def _strategy(
    query: Query, needed: float | None, count: int, gib: float | None
) -> tuple[str, bool | None, str]:
    """How to part the model, whether that fits, and why."""
    training = query.mode == Mode.TRAINING
    whole = "ddp" if training else "replicas"
    if needed is None:
        return whole, None, "how many weights the model has is not known"
    mb = f"{needed / MIB:,.0f} MB"
    if gib is None:
        return whole, None, f"it needs {mb} on each device; how much each has was not said"
    if needed <= gib * _GIB:
        return whole, True, f"{mb} fit on each of {count} devices"
    parted = "fsdp" if training else "sharded"
    each = needed / count
    fits = each <= gib * _GIB
    note = f"{mb} do not fit on one device; parted among {count} they are {each / MIB:,.0f} MB each"
    return parted, fits, note if fits else f"{note}, which do not fit either"


#: A model's name → number of weights, or small, medium or large; None if it has no size.
Estimate = Callable[[str], int | float | str | None]


#: So many models stand for a size of a family in the map.
_MOST_OF_SIZE = 2


class Knowledge:
    """Everything that answers rest on: the store, predictions, matrices, this machine."""

    def __init__(
        self,
        database_path: StrPath | None,
        matrix_file: StrPath | None,
        config: Config,
        machine: str | None = None,
        hear: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.database: Database | None = opened(database_path)
        self.store = EvidenceStore(self.database, machine)
        self._detected: Inventory = LazyInventory()
        self.predictions = CandidatePredictions(
            self.database,
            self._device_name,
            lambda: self.store.machine_devices(),
            MemoryByDevice(lambda platform: self._detected.get(platform, ()), self.database),
            hear,
        )
        self._pages = pages(matrix_file, own_hardware(config))
        #: Words of `run` that store its results in this store, and why there are none.
        self.where, self.unwritable = destination(database_path)

    def answering(self) -> AbstractContextManager[None]:
        return self.store.answering()

    def models(self, family: str | None = None) -> dict[str, StoredModel]:
        return {
            name: model
            for name, model in self.store.models().items()
            if family is None or model["family"] == family
        }

    def of_size(self, categories: Mapping[str, float]) -> Callable[[str, str], list[str]]:
        """Return what finds the models of a family and size: stored ones, else the catalogue's."""

        def alike(
            known: Iterable[tuple[str, str | None, int | None]],
        ) -> dict[tuple[str, str], list[str]]:
            found: dict[tuple[str, str], list[tuple[int, str]]] = {}
            for name, family, weights in known:
                if family and weights:
                    key = family, size_of(weights, categories)
                    found.setdefault(key, []).append((weights, name))
            return {key: [name for _, name in sorted(some)] for key, some in found.items()}

        stored = alike((n, m["family"], m["parameters"]) for n, m in self.store.models().items())
        listed = alike((s.id, s.family.value, s.parameters) for s in every_model())

        def models(family: str, size: str) -> list[str]:
            some = stored.get((family, size)) or listed.get((family, size), [])
            # Evenly from the smallest to the largest: each model is a question of its own.
            return some[:: max(1, -(-len(some) // _MOST_OF_SIZE))][:_MOST_OF_SIZE]

        return models

    def asked(self, put: RawQuery, config: Config, estimate: Estimate) -> Query:
        def size(name: str, spec: ModelSpec | None, parameters: int | None) -> ModelSize:
            categories = config["model_size_categories"]
            known = known_size(spec, parameters, categories)
            return known or estimated_size(estimate(name), categories)

        models = self.store.models()
        stored = stored_names(put.names, models, self.store.named())
        model = models[stored[0]] if stored else {}
        table = self.predictions.model(put.model)
        precisions = self.store.precisions() if put.precision is not None else ()
        return put.understood(stored, model, size, precisions, table)

    def candidates(
        self, config: Config, names: Sequence[str] | None, deployment: str | None = None
    ) -> list[Candidate]:
        choices = candidates(names, self.store.devices(), self._others(config))
        if deployment is None:
            return choices
        return deployed(choices, deployment, all_asked=names is None)

    def platforms(self, config: Config) -> list[str]:
        return every(self.store.devices(), self._others(config))

    def _others(self, config: Config) -> list[str]:
        own = own_hardware(config)
        return [*own, *(name for name in self.matrices(config).platforms() if name not in own)]

    def _devices(self, platform: str) -> list[Device]:
        """Return the devices of a platform on this machine without emulated ones."""
        entries = self._detected.get(platform, ())
        return [entry for entry in entries if isinstance(entry, Device) and not entry.emulated]

    def is_here(self, platform: str, device: str | None = None) -> bool:
        """Return whether this machine has a platform, or that very device of it."""
        return any(device in (None, "", entry.name) for entry in self._devices(platform))

    def _device_name(self, platform: str) -> str | None:
        return next((device.name for device in self._devices(platform)), None)

    def beside(self, chosen: Choice) -> MeasurementTarget:
        """Return what new results must be like to be compared with those of an answer."""
        return MeasurementTarget(
            chosen.shapes, chosen.circumstances, self.where, self.unwritable, sharers(chosen)
        )

    def matrices(self, config: Config) -> Matrices:
        first, last = self._pages
        layer = of_config(config["compatibility"])
        return Matrices((layer, *first, of_results(self.store.tried()), *last))


def own_hardware(config: Config) -> list[str]:
    """Return the platforms that only the configuration names."""
    named = [*config["hardware_preferences"]]
    named += [name for entries in config["compatibility"].values() for name in entries]
    return [name for name in dict.fromkeys(named) if name not in HARDWARE]


_log = logging.getLogger("hardware_selector")
#: Progress is reported from so many models on, and after each so many.
_MANY = 200


class HardwareSelector:
    """Recommends hardware for models.

    Args:
        database_path: a database, a lake, or a folder of results; the default database without it.
            A missing path is logged, and the rules answer.
        config_path: a configuration, JSON with comments, or a mapping.
        matrix_file: a Markdown page with a compatibility matrix, which precedes the database.
        prices: a price file (docs/cost.md), or a function from a result to dollars per million
            items, or None if no price is known.
        machine: a host name, an id or a source, whose results alone count.
        debug: log details on standard error.
        hear: is called with a text before anything that takes seconds.
    """

    def __init__(
        self,
        database_path: StrPath | None = None,
        config_path: StrPath | Mapping[str, object] | None = None,
        matrix_file: StrPath | None = None,
        prices: Given | None = None,
        *,
        machine: str | None = None,
        debug: bool = False,
        hear: Callable[[str], None] = lambda _: None,
    ) -> None:
        if debug:
            _log.setLevel(logging.DEBUG)
        self.config = configured(config_path)
        self._hear = hear
        self._knows = Knowledge(database_path, matrix_file, self.config, machine, hear)
        self.prices = prices
        _log.debug("evidence: %s", self.database.name if self.database else "none")

    @property
    def database(self) -> Database | None:
        return self._knows.database

    @property
    def hardware_types(self) -> list[str]:
        return self._knows.platforms(self.config)

    @property
    def prices(self) -> Costs | None:
        """The costs of a million items; a path, a function or None can be assigned."""
        return self._costs

    @prices.setter
    def prices(self, given: Given | None) -> None:
        self._costs = costs_of(given, self.database)

    def is_here(self, hardware: str, device: str | None = None) -> bool:
        """Return whether this machine has the hardware of a candidate."""
        return self._knows.is_here(hardware.partition(":")[0], device)

    def model_of_tables(self, name: str) -> ModelSpec | None:
        """Return the model of a table of operators or of a file, or None."""
        return self._knows.predictions.model(name)

    # -- to be overridden

    def _encode_hardware_type(self, hardware_type: str) -> float:
        """Return the order of a platform among equals: the lower, the earlier."""
        order = self.config["fallback_order"]
        return float(order.index(hardware_type) if hardware_type in order else len(order))

    def _estimate_model_size(self, model_name: str) -> int | float | str | None:
        """Return the size of a model that neither the catalogue nor the database knows.

        It is a number of weights, or small, medium or large; None if the name has no size.
        """
        return from_name(model_name)

    def select_hardware(
        self,
        model_family: str | None = None,
        model_name: str = "",
        batch_size: int = 1,
        mode: str = "inference",
        available_hardware: Sequence[str] | None = None,
        task_type: str | None = None,
        distributed_config: Mapping[str, object] | None = None,
        *,
        precision: str | None = None,
        shapes: Mapping[str, int] | None = None,
        deployment: str | None = None,
        parameters: int | None = None,
        objective: str | None = None,
        anywhere: bool = False,
    ) -> Answer:
        """Return the recommended hardware for a model, and the evidence for every candidate.

        Args:
            model_family: one of the five families; by default the model's.
            model_name: of the catalogue, of the database, or any other.
            batch_size: items in a step.
            mode: inference or training; a task has its own.
            available_hardware: platforms ("cuda"), devices ("cuda:NVIDIA GeForce RTX 4090"), or a
                part of the name of one device ("rtx 4090"). Without it every platform but browsers,
                and what this machine has comes first.
            task_type: classification, generation, embedding, speech_recognition, fine_tuning or
                training; it sets the mode.
            distributed_config: {"gpu_count": 4, "max_memory_gb": 16}.
            precision: only results in this one.
            shapes: sizes of a step, as {"image_size": 224}; the model's own without it.
            deployment: browser, mobile, edge, intel, mac, battery or development.
            parameters: the number of weights, if it is not known otherwise.
            objective: latency, throughput, cost or energy; by default latency, or the weights of
                the configuration if it has its own.
            anywhere: rank what this machine lacks together with what it has.

        Returns:
            Plain data: primary_recommendation, fallback_options, all_scores by hardware with their
            predictions, explanation and more. docs/choosing.md has all keys.
        """
        put = RawQuery(
            model_family, model_name, batch_size, mode, task_type, distributed_config,
            precision, shapes, parameters,
        )  # fmt: skip
        knows, config = self._knows, self.config
        with knows.answering():
            query = knows.asked(put, config, self._estimate_model_size)
            among = knows.candidates(config, available_hardware, deployment)
            order = (
                placed(self._encode_hardware_type) if deployment is None else order_in(deployment)
            )
            unnamed = available_hardware is None and deployment is None
            ground = AnswerBasis(
                config, knows.matrices(config), order, self.prices,
                present=knows.is_here if unnamed and not anywhere else None,
                unasked=BROWSERS if unnamed else (), predict=knows.predictions.of,
                objective=objective_named(
                    objective, config, has_prices=self.prices is not None
                ),
                room=knows.predictions.room,
            )  # fmt: skip
            chosen = choose(query, among, knows.store, ground)
        answer = told(chosen, self.prices, knows.beside(chosen), knows.is_here)
        spread = advised(query, [candidate.candidate.platform for candidate in chosen.ranked])
        if spread is not None:
            answer["distributed"] = spread
        _log.debug("%s", answer["explanation"])
        return answer

    # -- resting on it

    def select_hardware_for_task(
        self,
        model_family: str | None = None,
        model_name: str = "",
        task_type: str = "classification",
        batch_size: int = 1,
        available_hardware: Sequence[str] | None = None,
        distributed_config: Mapping[str, object] | None = None,
        **more: object,
    ) -> Answer:
        """Return the answer of `select_hardware` with the mode and the weights of a task."""
        task = task_named(task_type)
        select: Callable[..., Answer] = self.select_hardware  # which checks what more is said
        return select(
            model_family=model_family,
            model_name=model_name,
            batch_size=batch_size,
            mode=task.mode,
            available_hardware=available_hardware,
            task_type=task_type,
            distributed_config=distributed_config,
            **more,
        )

    def create_hardware_selection_map(
        self, available_hardware: Sequence[str] | None = None
    ) -> dict[str, object]:
        """Return an answer for every family, size, batch and mode, in the documents' format.

        Without a list, every platform is a candidate, browsers included.
        """
        among = self.hardware_types if available_hardware is None else available_hardware

        def select(family: str, name: str, batch: int, mode: str) -> Answer:
            return self.select_hardware(
                model_family=family,
                model_name=name,
                batch_size=batch,
                mode=mode,
                available_hardware=among,
            )

        self._knows.store.expect_many()
        categories = self.config["model_size_categories"]
        return selection_map(select, categories, utc_now(), self._knows.of_size(categories))

    def select_for_all_models(
        self,
        batch_size: int = 1,
        mode: str = "inference",
        *,
        model_family: str | None = None,
        **more: object,
    ) -> dict[str, Answer]:
        """Return an answer for each stored model by its name, or for those of one family."""
        return self._answers(
            lambda *_: True, model_family, batch_size=batch_size, mode=mode, **more
        )

    def rank_models(
        self,
        task_type: str,
        available_hardware: Sequence[str] | None = None,
        batch_size: int = 1,
        *,
        model_family: str | None = None,
        **more: object,
    ) -> list[dict[str, object]]:
        """Return the stored models for a task, ranked by their throughput on that hardware.

        Models are ranked within a unit of throughput; the unit of most models comes first.
        """
        task = task_key(task_type)
        answers = self._answers(
            lambda name, family: does(task, name, family),
            model_family,
            batch_size=batch_size,
            mode=task_named(task).mode,
            task_type=task,
            available_hardware=available_hardware,
            **more,
        )
        return ranked(answers)

    def of_no_known_family(self, task_type: str) -> list[str]:
        """Return the stored models that `rank_models` leaves out, because their task is unknown."""
        task = task_key(task_type)
        models = self._knows.models().items()
        return [name for name, model in models if may_do(task, name, model["family"])]

    def best_under(
        self,
        limits: Limits | Mapping[str, float | None],
        model_family: str | None = None,
        model_name: str = "",
        mode: str = "inference",
        available_hardware: Sequence[str] | None = None,
        *,
        batch_sizes: Iterable[int] = (),
        precision: str | None = None,
        shapes: Mapping[str, int] | None = None,
        objective: str | None = None,
        anywhere: bool = False,
    ) -> LimitAnswer:
        """Return the best batch size, precision and engine under limits, and the Pareto front.

        Args:
            limits: `Limits`, or a mapping: memory_mb, max_latency_ms, min_throughput, max_error,
                max_cost, max_power, max_energy.
            model_family: as for `select_hardware`, like the following ones.
            model_name: the model.
            mode: inference or training.
            available_hardware: the candidates; by default every platform but browsers.
            batch_sizes: the only ones that count; by default all measured ones, and predictions of
                1 to 128.
            precision: only this one.
            shapes: sizes of a step.
            objective: latency, throughput, cost or energy; by default throughput.
            anywhere: rank what this machine lacks together with what it has.

        Returns:
            Plain data: best, fits, does_not_fit (each with why), pareto, to_verify (measurements
            that are worthwhile), explanation; with prices also currency and cost_notes.
        """
        put = RawQuery(model_family, model_name, 1, mode, None, None, precision, shapes)
        bounds = limits if isinstance(limits, Limits) else limits_named(limits)
        sizes, knows = batches(batch_sizes), self._knows
        with knows.answering():
            query = knows.asked(put, self.config, self._estimate_model_size)
            cells = knows.store.cells(query.names)
            failures = knows.store.failures(query.names)
            unusable = knows.store.unusable(query.names)
            own = own_of(query, cells, failures, any_batch=True, inexact=True, unusable=unusable)
            among = knows.candidates(self.config, available_hardware)
            generates = is_generation(query, own.sizes)
            able = [
                candidate
                for candidate in among
                if not why_no_engine(candidate.platform, query, generates=generates)
            ]
            failed = {each.name: engines_of(own.of(each).ruled_out(1)) for each in able}
            known = {cell.batch for cell in own.cells}
            predicted = knows.predictions.of(
                query, able, own.sizes, failed, sizes or sorted({*BATCHES, *known})
            )
        ground = AnswerBasis(
            self.config, knows.matrices(self.config), lambda _: 0.0, self.prices,
            present=None if anywhere or available_hardware else knows.is_here,
            objective=objective_named(
                objective or THROUGHPUT, self.config, has_prices=self.prices is not None
            ),
            room=knows.predictions.room,
        )  # fmt: skip
        here = MeasurementTarget(where=knows.where, unwritable=knows.unwritable)
        answer = under(query, bounds, own, among, predicted, sizes, ground, here)
        if self.prices is None:
            return answer
        matches = [cell for cell in own.cells if any(candidate.has(cell) for candidate in among)]
        priced = [{**cell.row, "throughput": cell.throughput} for cell in matches]
        notes = self.prices.notes(priced) if priced else []
        return {**answer, "currency": self.prices.currency, "cost_notes": notes}

    @property
    def compatibility_matrix(self) -> dict[str, object]:
        """The compatibility and rating of each platform for each family, with their sources."""
        return self._knows.matrices(self.config).document(self.hardware_types, utc_now())

    def _answers(
        self,
        wanted: Callable[[str, str | None], bool],
        model_family: str | None,
        **question: object,
    ) -> dict[str, Answer]:
        family = None if model_family is None else family_named(model_family)
        self._knows.store.expect_many()
        select: Callable[..., Answer] = self.select_hardware  # which checks what more is said
        models = self._knows.models(family).items()
        asked = {name: model for name, model in models if wanted(name, model["family"])}
        answers = {}
        for done, (name, model) in enumerate(asked.items()):
            if len(asked) >= _MANY and done % _MANY == 0:
                self._hear(f"Choosing for {len(asked):,} models: {done:,} done …")
            answers[name] = select(
                model_family=model["family"] or None, model_name=name, **question
            )
        return answers


_DEVICES = """
SELECT hardware, device_name, bool_and(coalesce(emulated, false)) FROM benchmark_results
WHERE hardware IS NOT NULL AND device_name IS NOT NULL AND status = 'ok' GROUP BY ALL
"""


class LocalSelector:
    """A selector restricted to the devices of this machine."""

    def __init__(
        self, selector: HardwareSelector, inventory: Inventory, database: Database | None
    ) -> None:
        self._selector = selector
        self._stored: dict[str, dict[str, bool]] = {}
        rows = [] if database is None else database.query(_DEVICES)[1]
        for hardware, device, emulated in rows:
            self._stored.setdefault(str(hardware), {})[str(device)] = bool(emulated)
        #: The detected devices without emulated ones. A browser's adapter is only known to be
        #: emulated by its results.
        self.found: Inventory = {
            name: [
                device
                for device in ones
                if isinstance(device, Absent) or not self._stands_in(device)
            ]
            for name, ones in inventory.items()
        }

    def select_hardware(self, *, available_hardware: Sequence[str], **question: Any) -> Json:
        """Return the answer for the devices of these platforms here.

        Browsers only count if there is nothing else, because they were not named.
        """
        plain = [name for name in available_hardware if name not in BROWSERS]
        hardware = [self.word(platform) for platform in plain or available_hardware]
        return self._selector.select_hardware(available_hardware=hardware, **question)

    def words(self, *, browsers: bool = False) -> list[str]:
        """Return all devices here as a selector takes them, with browsers if asked."""
        present = (
            name
            for name, ones in self.found.items()
            if any(isinstance(device, Device) for device in ones)
            and (browsers or name not in BROWSERS)
        )
        return [self.word(name) for name in present]

    def word(self, platform: str) -> str:
        """Return the platform, or its device by name if other devices have results."""
        device = next((o for o in self.found.get(platform, ()) if isinstance(o, Device)), None)
        others = set(self._stored.get(platform, {})) - {device.name if device else ""}
        return f"{platform}:={device.name}" if device is not None and others else platform

    def _stands_in(self, device: Device) -> bool:
        return device.emulated or self._stored.get(device.hardware, {}).get(device.name, False)
