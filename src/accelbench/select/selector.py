"""`HardwareSelector`: which hardware for a model, from what was measured, and why.

Three methods are there to be overridden, and every answer goes through them:
`_encode_hardware_type`, `_estimate_model_size`, `select_hardware`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.facts import utc_now
from accelbench.core.words import HARDWARE, Family
from accelbench.select.asking import (
    Asked,
    family_named,
    known_of,
    mode_named,
    precision_named,
    shapes_named,
    spec_of,
)
from accelbench.select.candidates import Candidate, candidates
from accelbench.select.choosing import Chosen, Ground, Prices, choose, told
from accelbench.select.config import defaults, over_defaults, read
from accelbench.select.distributed import advised, checked
from accelbench.select.evidence import Cell, Known, Tried
from accelbench.select.mapping import selection_map
from accelbench.select.matrices import Layer, Matrices, of_config, of_markdown, of_results
from accelbench.select.places import opened
from accelbench.select.reading import Store
from accelbench.select.rules import DEPLOYMENTS
from accelbench.select.sizes import Size, estimated_size, from_name, known_size
from accelbench.select.task import TASKS, task_named

_log = logging.getLogger("hardware_selector")
CLAUDE_FILE = "CLAUDE.md"
StrPath = str | PathLike[str]


class Nothing:
    """What is known where nothing was measured."""

    def cells(self, **wanted: Any) -> list[Cell]:
        return []

    def tried(self) -> list[Tried]:
        return []

    def models(self) -> dict[str, dict[str, Any]]:
        return {}

    def devices(self) -> dict[str, list[str]]:
        return {}


class HardwareSelector:
    """Recommends hardware for models.

    Args:
        database_path: a database, a lake, or a folder of results; the usual database without it.
            A path that leads nowhere is said in the log, and the rules answer.
        config_path: a configuration, JSON with comments; or the same as a mapping.
        matrix_file: a Markdown page with a compatibility matrix, believed before the database.
        prices: of a result, dollars per million items, or None where no price is known.
        debug: say on standard error each thing that is looked at.
    """

    def __init__(
        self,
        database_path: StrPath | None = None,
        config_path: StrPath | Mapping[str, Any] | None = None,
        matrix_file: StrPath | None = None,
        prices: Prices | None = None,
        *,
        debug: bool = False,
    ) -> None:
        if debug:
            _log.setLevel(logging.DEBUG)
        self.config = _configured(config_path)
        self.prices = prices
        database = opened(database_path)
        self.database = database
        self._store: Store | Nothing = Nothing() if database is None else Store(database)
        self._pages = _pages(matrix_file)
        _log.debug("evidence: %s", database.name if database else "none")

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
        distributed_config: Mapping[str, Any] | None = None,
        *,
        precision: str | None = None,
        shapes: Mapping[str, int] | None = None,
        deployment: str | None = None,
        parameters: int | None = None,
        flops: float | None = None,
    ) -> dict[str, Any]:
        """The hardware for a model, and everything that speaks for it and for the others.

        Args:
            model_family: one of the five; the catalogue's or the database's without it.
            model_name: as the catalogue or the database knows it, or any other.
            batch_size: items in a step.
            mode: inference or training; a task has its own.
            available_hardware: platforms ("cuda"), devices ("cuda:NVIDIA GeForce RTX 4090"), or a
                part of the name of one device ("rtx 4090"); every platform without it.
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

        Raises:
            UsageError: a word is none of those that are known.
        """
        chosen = self._chosen(
            model_family,
            model_name,
            batch_size,
            mode,
            self._candidates(available_hardware, deployment),
            task_type,
            distributed_config,
            precision=precision,
            shapes=shapes,
            parameters=parameters,
            flops=flops,
        )
        answer = told(chosen)
        spread = advised(chosen.asked, [one.candidate.platform for one in chosen.ranked])
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
        distributed_config: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """As `select_hardware`, in the mode of a task and with what matters there."""
        task = task_named(task_type)
        return self.select_hardware(
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
    ) -> dict[str, Any]:
        """An answer for every family, size, batch and mode, as the documents nest it."""

        def select(family: str, name: str, batch: int, mode: str) -> Mapping[str, Any]:
            return self.select_hardware(
                model_family=family,
                model_name=name,
                batch_size=batch,
                mode=mode,
                available_hardware=available_hardware,
            )

        return selection_map(select, self.config["model_size_categories"], utc_now())

    def select_for_all_models(
        self, batch_size: int = 1, mode: str = "inference", **more: Any
    ) -> dict[str, dict[str, Any]]:
        """An answer for each stored model, by its name."""
        return {
            name: self.select_hardware(
                model_family=said["family"] or None,
                model_name=name,
                batch_size=batch_size,
                mode=mode,
                **more,
            )
            for name, said in self._store.models().items()
        }

    @property
    def compatibility_matrix(self) -> dict[str, Any]:
        """What each platform is worth for each family, and which source says so."""
        matrices = self._matrices()
        names = [one.platform for one in self._candidates(None)]
        return matrices.document(list(dict.fromkeys(names)), utc_now())

    # -- how it is come to

    def _chosen(
        self,
        model_family: str | None,
        model_name: str,
        batch_size: int,
        mode: str,
        among: Sequence[Candidate],
        task_type: str | None = None,
        distributed_config: Mapping[str, Any] | None = None,
        *,
        precision: str | None = None,
        shapes: Mapping[str, int] | None = None,
        parameters: int | None = None,
        flops: float | None = None,
    ) -> Chosen:
        asked = self._asked(
            model_family, model_name, batch_size, mode, task_type, distributed_config,
            precision, shapes, parameters,
        )  # fmt: skip
        ground = Ground(self.config, self._matrices(), self._encode_hardware_type, self.prices)
        known = None
        if flops is not None:
            known = Known(asked.size.parameters, flops, known_of(asked, []).kin)
        return choose(asked, among, self._store, ground, known)

    def _asked(
        self,
        family: str | None,
        name: str,
        batch: int,
        mode: str,
        task: str | None,
        distributed: Mapping[str, Any] | None,
        precision: str | None,
        shapes: Mapping[str, int] | None,
        parameters: int | None,
    ) -> Asked:
        if isinstance(batch, bool) or batch != int(batch) or batch < 1:
            raise UsageError(f"A batch of {batch!r} holds no item.", "Use 1 or more.")
        spec = spec_of(name) if name else None
        stored = self._stored(name, spec.id if spec else "")
        if task is not None:
            wanted, task = task_named(task), task.strip().lower().replace("-", "_")
            mode = wanted.mode if task in TASKS else mode
        said = family or (spec.family.value if spec else "") or stored.get("family")
        if not said:
            raise UsageError(
                f"The family of {name or 'no model'} is not known.",
                f"Say it: one of {', '.join(Family)}.",
            )
        return Asked(
            model=name,
            family=family_named(said),
            batch=int(batch),
            mode=mode_named(mode),
            size=self._size(name, spec, parameters or stored.get("parameters")),
            spec=spec,
            precision=precision_named(precision),
            task=task,
            shapes=shapes_named(shapes),
            distributed=checked(distributed),
        )

    def _stored(self, *names: str) -> Mapping[str, Any]:
        models = self._store.models()
        return next((models[name] for name in names if name in models), {})

    def _size(self, name: str, spec: Any, parameters: int | None) -> Size:
        categories = self.config["model_size_categories"]
        known = known_size(spec, parameters, categories)
        return known or estimated_size(self._estimate_model_size(name), categories)

    def _candidates(
        self, asked: Sequence[str] | None, deployment: str | None = None
    ) -> list[Candidate]:
        known = set(HARDWARE)
        own = [name for name in self.config["hardware_preferences"] if name not in known]
        others = [*own, *(name for name in self._matrices().platforms() if name not in own)]
        found = candidates(asked, self._store.devices(), others)
        if deployment is None:
            return found
        if deployment not in DEPLOYMENTS:
            raise UsageError(
                f"There is no deployment {deployment!r}.", f"There are: {', '.join(DEPLOYMENTS)}."
            )
        there = DEPLOYMENTS[deployment]
        if asked is None:
            return [Candidate(name) for name in there]
        return [one for one in found if one.platform in there]

    def _matrices(self) -> Matrices:
        results = of_results(self._store.tried())
        config = of_config(self.config["compatibility"])
        named = [layer for layer, first in self._pages if first]
        beside = [layer for layer, first in self._pages if not first]
        return Matrices((config, *named, results, *beside))


def _configured(given: StrPath | Mapping[str, Any] | None) -> dict[str, Any]:
    if given is None:
        return defaults()
    return over_defaults(dict(given)) if isinstance(given, Mapping) else read(given)


def _pages(named: StrPath | None) -> list[tuple[Layer, bool]]:
    """The pages with a matrix, each with whether it is believed before the database."""
    if named is not None:
        path = Path(named).expanduser()
        try:
            layer = of_markdown(path.read_text(encoding="utf-8"), str(named))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"The matrix file {named} cannot be read ({error}).") from error
        if not layer.entries:
            raise UsageError(
                f"There is no compatibility matrix in {named}.",
                "A table is expected with families down, platforms across, levels in its cells.",
            )
        return [(layer, True)]
    path = Path(CLAUDE_FILE)
    try:
        layer = of_markdown(path.read_text(encoding="utf-8"), f"./{CLAUDE_FILE}")
    except (OSError, UnicodeDecodeError):
        return []
    return [(layer, False)]
