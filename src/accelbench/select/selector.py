"""`HardwareSelector`: which hardware for a model, from what was measured, and why.

Three methods can be overridden, and every answer goes through them: `_encode_hardware_type`,
`_estimate_model_size`, `select_hardware`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from accelbench.core.facts import utc_now
from accelbench.core.model import ModelSpec
from accelbench.core.protocols import Device, Inventory
from accelbench.core.vocabulary import HARDWARE
from accelbench.hardware.detect import Detected
from accelbench.predict.device_memory import MemoryByDevice
from accelbench.select.answer.answers import Answer, selection_map, told
from accelbench.select.answer.explanation import sharers
from accelbench.select.constraints.best_under import LimitAnswer, Limits, limits_named, under
from accelbench.select.constraints.measure_command import MeasurementTarget, installed
from accelbench.select.estimate.candidate_predictions import CandidatePredictions
from accelbench.select.evidence.candidates import (
    Candidate,
    candidates,
    deployed,
    every,
    order_in,
    placed,
)
from accelbench.select.evidence.cells import ModelKnowledge
from accelbench.select.evidence.model_evidence import own_of
from accelbench.select.evidence.reader import EmptyStore, EvidenceStore, StrPath, configured
from accelbench.select.evidence.stores import destination, opened
from accelbench.select.query.config import Config
from accelbench.select.query.model_size import (
    BROWSERS,
    ModelSize,
    estimated_size,
    from_name,
    known_size,
    stored_names,
)
from accelbench.select.query.query import (
    Query,
    RawQuery,
    StoredModel,
    family_named,
    task_key,
    task_named,
)
from accelbench.select.query.validation import amount, batches
from accelbench.select.rank.choosing import AnswerBasis, Choice, choose
from accelbench.select.rank.matrices import Matrices, of_config, of_results, pages
from accelbench.select.rank.pricing import Costs, Given, costs_of
from accelbench.select.rank.ranking import advised, does, may_do, ranked

if TYPE_CHECKING:
    from accelbench.store.database import Database


#: Named weights, or small, medium or large, by a model's name; None where it says nothing.
Estimate = Callable[[str], int | float | str | None]


class Knowledge:
    """What answers stand on, whatever is asked."""

    def __init__(
        self,
        database_path: StrPath | None,
        matrix_file: StrPath | None,
        config: Config,
        machine: str | None = None,
        hear: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.database: Database | None = opened(database_path)
        self.store: EvidenceStore | EmptyStore = (
            EmptyStore() if self.database is None else EvidenceStore(self.database, machine)
        )
        self._detected: Inventory = Detected()
        self.predictions = CandidatePredictions(
            self.database,
            self._device_name,
            lambda: self.store.machine_devices(),
            MemoryByDevice(lambda platform: self._detected.get(platform, ()), self.database),
            hear,
        )
        self._pages = pages(matrix_file, own_hardware(config))
        #: Words of `run` that put its results where they are looked for; or why none do.
        self.where, self.unwritable = destination(database_path)

    def answering(self) -> AbstractContextManager[None]:
        """The store is opened once for all that an answer has to read."""
        return self.store.answering()

    def models(self, family: str | None = None) -> dict[str, StoredModel]:
        """The stored models; of one family, where one is named."""
        return {
            name: model
            for name, model in self.store.models().items()
            if family is None or model["family"] == family
        }

    def asked(self, put: RawQuery, config: Config, estimate: Estimate) -> Query:
        """A question with every word looked up."""

        def size(name: str, spec: ModelSpec | None, parameters: int | None) -> ModelSize:
            categories = config["model_size_categories"]
            known = known_size(spec, parameters, categories)
            return known or estimated_size(estimate(name), categories)

        models = self.store.models()
        stored = stored_names(put.names, models, self.store.named())
        model = models[stored[0]] if stored else {}
        precisions = self.store.precisions() if put.precision is not None else ()
        return put.understood(stored, model, size, precisions)

    def candidates(
        self, config: Config, names: Sequence[str] | None, deployment: str | None = None
    ) -> list[Candidate]:
        """What can be chosen among."""
        choices = candidates(names, self.store.devices(), self._others(config))
        if deployment is None:
            return choices
        return deployed(choices, deployment, all_asked=names is None)

    def platforms(self, config: Config) -> list[str]:
        """Every platform that there is anything to say of."""
        return every(self.store.devices(), self._others(config))

    def _others(self, config: Config) -> list[str]:
        own = own_hardware(config)
        return [*own, *(name for name in self.matrices(config).platforms() if name not in own)]

    def _devices(self, platform: str) -> list[Device]:
        """Return the devices of a platform on this machine; a stand-in is none of them."""
        entries = self._detected.get(platform, ())
        return [entry for entry in entries if isinstance(entry, Device) and not entry.emulated]

    def present(self, platforms: Iterable[str]) -> frozenset[str]:
        """Return which platforms this machine has. Each is looked for once."""
        return frozenset(name for name in platforms if self._devices(name))

    def is_here(self, platform: str, device: str | None = None) -> bool:
        """Return whether this machine has a platform, or that very device of it."""
        return any(device in (None, "", entry.name) for entry in self._devices(platform))

    def _device_name(self, platform: str) -> str | None:
        """Return the first device of a platform on this machine; None if it has none."""
        return next((device.name for device in self._devices(platform)), None)

    def beside(self, chosen: Choice) -> MeasurementTarget:
        """What a new result has to be like to be compared with the figures of an answer."""
        return MeasurementTarget(
            chosen.shapes, chosen.circumstances, self.where, self.unwritable, sharers(chosen)
        )

    def matrices(self, config: Config) -> Matrices:
        """Who is believed of what runs where, in order."""
        first, last = self._pages
        layer = of_config(config["compatibility"])
        return Matrices((layer, *first, of_results(self.store.tried()), *last))


def own_hardware(config: Config) -> list[str]:
    """Platforms that only the configuration knows."""
    named = [*config["hardware_preferences"]]
    named += [name for entries in config["compatibility"].values() for name in entries]
    return [name for name in dict.fromkeys(named) if name not in HARDWARE]


_log = logging.getLogger("hardware_selector")
#: Of so many models, and after each so many, it is said how far an answer for all of them is.
_MANY = 200


class HardwareSelector:
    """Recommends hardware for models.

    Args:
        database_path: a database, a lake, or a folder of results; the usual database without it.
            A path that leads nowhere is said in the log, and the rules answer.
        config_path: a configuration, JSON with comments; or the same as a mapping.
        matrix_file: a Markdown page with a compatibility matrix, believed before the database.
        prices: a price file, as docs/cost.md has it; or a function: of a result, dollars per
            million items, or None where no price is known.
        machine: a host name, an id or a source, whose results alone are figures here; without it
            those of every machine, and each answer says which ones.
        debug: say on standard error each thing that is looked at.
        hear: told what takes seconds, before it does.
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
        """What answers rest on; None where nothing was measured."""
        return self._knows.database

    @property
    def hardware_types(self) -> list[str]:
        """Every platform that there is anything to say of, browsers too."""
        return self._knows.platforms(self.config)

    @property
    def _store(self) -> EvidenceStore | EmptyStore:
        """Where figures are from; benchmarks put in one that hides some of them."""
        return self._knows.store

    @_store.setter
    def _store(self, store: EvidenceStore | EmptyStore) -> None:
        self._knows.store = store

    @property
    def prices(self) -> Costs | None:
        """What a million items of a result cost; a path, a function or None can be assigned."""
        return self._costs

    @prices.setter
    def prices(self, given: Given | None) -> None:
        self._costs = costs_of(given, self.database)

    def is_here(self, hardware: str, device: str | None = None) -> bool:
        """Whether this machine can measure on a candidate, and on a device by its name.

        Args:
            hardware: a candidate's name, as in `all_scores`.
            device: of its figure, where it is to be the same.
        """
        return self._knows.is_here(hardware.partition(":")[0], device)

    # -- to be overridden

    def _encode_hardware_type(self, hardware_type: str) -> float:
        """Where a platform stands among equals: the lower, the earlier."""
        order = self.config["fallback_order"]
        return float(order.index(hardware_type) if hardware_type in order else len(order))

    def _estimate_model_size(self, model_name: str) -> int | float | str | None:
        """How large a model is that neither the catalogue nor the database knows.

        Returns:
            A number of weights, or small, medium or large; None where the name says nothing.
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
        flops: float | None = None,
    ) -> Answer:
        """The hardware for a model, and everything that speaks for it and for the others.

        Args:
            model_family: one of the five; the catalogue's or the database's without it.
            model_name: as the catalogue or the database knows it, or any other.
            batch_size: items in a step.
            mode: inference or training; a task has its own.
            available_hardware: platforms ("cuda"), devices ("cuda:NVIDIA GeForce RTX 4090"), or a
                part of the name of one device ("rtx 4090"). Without it every platform but browsers,
                and of those that nothing is known of first what this machine has.
            task_type: classification, generation, embedding, speech_recognition, fine_tuning or
                training: which figures matter more.
            distributed_config: {"gpu_count": 4, "max_memory_gb": 16}.
            precision: only figures in this one; any without it.
            shapes: sizes of a step, as {"image_size": 224}; the model's own without it.
            deployment: where it is to run: browser, mobile, edge, intel, mac, battery, development.
            parameters: number of weights, where nobody else knows it.
            flops: operations of one item, where nobody else knows them.

        Returns:
            Plain data: primary_recommendation, fallback_options, all_scores by hardware with their
            predictions, explanation, and what they rest on. docs/choosing.md has all keys.
        """
        put = RawQuery(
            model_family, model_name, batch_size, mode, task_type, distributed_config,
            precision, shapes, parameters,
        )  # fmt: skip
        work = None if flops is None else amount("flops", flops, "Use the operations of one item.")
        knows, config = self._knows, self.config
        with knows.answering():
            query = knows.asked(put, config, self._estimate_model_size)
            known = None if work is None else ModelKnowledge(query.size.parameters, work)
            among = knows.candidates(config, available_hardware, deployment)
            order = (
                placed(self._encode_hardware_type) if deployment is None else order_in(deployment)
            )
            anywhere = available_hardware is None and deployment is None
            ground = AnswerBasis(
                config, knows.matrices(config), order, self.prices,
                present=knows.present if anywhere else None, unasked=BROWSERS if anywhere else (),
                predict=knows.predictions.of,
            )  # fmt: skip
            chosen = choose(query, among, knows.store, ground, known)
        answer = told(chosen, self.prices, knows.beside(chosen))
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
        """As `select_hardware`, in the mode of a task and with what matters there."""
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
        """An answer for every family, size, batch and mode, as the documents nest it.

        It is of every platform, browsers too, wherever they may be.
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
        return selection_map(select, self.config["model_size_categories"], utc_now())

    def select_for_all_models(
        self,
        batch_size: int = 1,
        mode: str = "inference",
        *,
        model_family: str | None = None,
        **more: object,
    ) -> dict[str, Answer]:
        """An answer for each stored model, by its name; only those of a family, if one is named."""
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
        """The stored models that are for a task, by what they do in a second on that hardware.

        Those whose throughput counts the same stand together: most of them first.
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
        """The stored models that `rank_models` leaves out, as nobody says what they are for."""
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
    ) -> LimitAnswer:
        """The best batch size, precision and way under limits, and the Pareto front.

        Args:
            limits: `Limits`, or the same as a mapping: memory_mb, max_latency_ms, min_throughput,
                max_error, max_cost, max_power, max_energy.
            model_family: as `select_hardware` has it, and all that follows.
            model_name: the model.
            mode: inference or training.
            available_hardware: what counts; everything but browsers without it.
            batch_sizes: the only ones that count, estimated if they were not measured; all that
                were measured if none is named.
            precision: only this one.
            shapes: sizes of a step.

        Returns:
            Plain data: best, fits, does_not_fit (each with why), pareto, to_verify (words of cases
            worth measuring), explanation; with prices also currency and cost_notes.
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
        here = installed(self._knows.where, self._knows.unwritable)
        answer = under(query, bounds, own, among, sizes, self.prices, here)
        if self.prices is None:
            return answer
        matches = [cell for cell in own.cells if any(candidate.has(cell) for candidate in among)]
        priced = [{**cell.row, "throughput": cell.throughput} for cell in matches]
        notes = self.prices.notes(priced) if priced else []
        return {**answer, "currency": self.prices.currency, "cost_notes": notes}

    @property
    def compatibility_matrix(self) -> dict[str, object]:
        """What each platform is worth for each family, and which source says so."""
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
        for number, (name, model) in enumerate(asked.items()):
            if len(asked) >= _MANY and number % _MANY == 0:
                self._hear(f"Choosing for {len(asked):,} models: {number:,} done …")
            answers[name] = select(
                model_family=model["family"] or None, model_name=name, **question
            )
        return answers
