"""What a selector knows: its store, the pages with a matrix, and where new results would go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from accelbench.core.model import ModelSpec
from accelbench.core.protocols import Device, Inventory
from accelbench.core.vocabulary import HARDWARE
from accelbench.hardware.detect import Detected
from accelbench.predict.device_memory import MemoryByDevice
from accelbench.select.answer.explanation import sharers
from accelbench.select.constraints.measure_command import MeasurementTarget
from accelbench.select.estimate.candidate_predictions import CandidatePredictions
from accelbench.select.evidence.candidates import Candidate, candidates, deployed, every
from accelbench.select.evidence.reader import EvidenceStore
from accelbench.select.evidence.sources import EmptyStore, StrPath
from accelbench.select.evidence.stores import destination, opened
from accelbench.select.query.config import Config
from accelbench.select.query.model_names import stored_names
from accelbench.select.query.model_size import ModelSize, estimated_size, known_size
from accelbench.select.query.query import Query, RawQuery, StoredModel
from accelbench.select.rank.choosing import Choice
from accelbench.select.rank.matrices import Matrices, of_config, of_results
from accelbench.select.rank.matrix_files import pages

if TYPE_CHECKING:
    from accelbench.store.database import Database

#: Named weights, or small, medium or large, by a model's name; None where it says nothing.
Estimate = Callable[[str], int | float | str | None]


class Knowledge:
    """What answers stand on, whatever is asked.

    Args:
        database_path: as `HardwareSelector` has it.
        matrix_file: likewise.
        config: the configuration as it is to begin with.
        machine: as `HardwareSelector` has it.
        hear: likewise.
    """

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

    def present(self, platforms: Iterable[str]) -> frozenset[str]:
        """Which platforms this machine has: a stand-in is none. Each is looked for once."""
        return frozenset(
            name
            for name in platforms
            if any(isinstance(o, Device) and not o.emulated for o in self._detected.get(name, ()))
        )

    def is_here(self, platform: str, device: str | None = None) -> bool:
        """Whether this machine has a platform; and where a device is named, that very one."""
        return any(
            isinstance(entry, Device) and not entry.emulated and device in (None, "", entry.name)
            for entry in self._detected.get(platform, ())
        )

    def _device_name(self, platform: str) -> str | None:
        """The first device of a platform on this machine; None where it has none."""
        entries = self._detected.get(platform, ())
        devices = (o for o in entries if isinstance(o, Device) and not o.emulated)
        return next((device.name for device in devices), None)

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
