"""Terms of a case: the parts of a step's time, or of its memory, before efficiencies. Pure numpy.

A step takes the sum, over operator classes, of the time that its products take at the device's peak
and that its values take at its bandwidth, each divided by an efficiency, and a time for each
launch. If an engine hands operators to an accelerator one by one, a step takes at least as long as
the host needs for that. Memory is weights, what is alive at once, and a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypedDict

import numpy as np

from accelbench.core.calibration import CalibratedLimits
from accelbench.core.case import Shapes
from accelbench.core.device_facts import DeviceFacts, facts_of
from accelbench.core.precision import PRECISIONS
from accelbench.core.vocabulary import Mode
from accelbench.predict.cases import (
    DECODE,
    ON_CPUS,
    PREFILL,
    CaseConfiguration,
    PredictedCase,
    kind_of,
    numbers_of_places,
    sizes_of,
)
from accelbench.predict.signatures import (
    CLASSES,
    MULTIPLYING,
    PRODUCT_SIZES,
    VALUE_SIZES,
    Floats,
    Ints,
    PassTrace,
)

#: Products of each class that multiplies, values moved by each class, both by size, and launches.
TIME_TERMS = (
    *(f"products of {name}, 1e{size:.0f}"
      for name in CLASSES[:MULTIPLYING] for size in PRODUCT_SIZES),
    *(f"values of {name}, 1e{size:.0f}" for name in CLASSES for size in VALUE_SIZES),
    "dispatch", "weights", "launches",
)  # fmt: skip
#: How many neighbouring terms are of one class each.
SIZES_OF_TERMS = (*[len(PRODUCT_SIZES)] * MULTIPLYING, *[len(VALUE_SIZES)] * len(CLASSES))
#: How many of them are products.
PRODUCT_TERMS = MULTIPLYING * len(PRODUCT_SIZES)
MEMORY_TERMS = (
    "weights multiplied", "other weights", "results alive", "attention scores", "constant",
)  # fmt: skip

#: Terms of operators that a compiler joins to their neighbours, whose values then are not stored,
#: and how much of them is left: the same models on an RTX 4090, eager and by torch.compile.
_FUSED = [
    PRODUCT_TERMS + CLASSES.index(name) * len(VALUE_SIZES) + size
    for name in ("bn", "act", "elt", "copy") for size in range(len(VALUE_SIZES))
]  # fmt: skip
_LEFT_BY_FUSING = 0.3
#: How many times longer than at the peak, or than at the bandwidth, operators usually take: a
#: class that is not named twice as long. Of GPUs the factors fit 5,789 public results of an RTX
#: 3090 and an RTX 4090, of CPUs 744 of a Core i9.
_USUAL = 2.0
_USUAL_PRODUCTS = {
    "GPU": {"conv": 1.2, "pw": 1.2, "dw": 30.0, "grp": 2.9, "lin": 1.2, "bmm": 1.6, "sdpa": 2.6},
    "CPU": {"conv": 1.5, "pw": 1.3, "grp": 1.3, "lin": 1.2},
}
_USUAL_VALUES = {
    "GPU": {
        "conv": 3.8, "pw": 3.1, "dw": 2.6, "grp": 4.8, "bn": 0.6, "ln": 5.0, "act": 0.9,
        "pool": 4.0, "softmax": 1.5, "copy": 2.5, "elt": 1.5,
    },
    "CPU": {"conv": 1.7, "pw": 1.4, "grp": 1.7, "bn": 1.4, "ln": 5.0, "copy": 4.5, "elt": 1.1},
}  # fmt: skip
_LAUNCH_MS = 0.005
#: Of one card to the next, values move faster by more than the memory does, as caches and their
#: clocks grow with the units that calculate: models that hardly multiply are 1.34 times as fast on
#: an RTX 4090 as on an RTX 3090, which has 0.93 of its bandwidth and 0.43 of its peak.
_CACHED_SHARE, _BYTES_PER_OPERATION = 0.28, 0.026
#: What PyTorch's own Python takes of the host for each operator, while an accelerator works on
#: those before it: beside an NVIDIA H200, 26 µs for bert-base, 24 for resnet-50, 18 for gpt2; in
#: public results of batch 1 on the hosts of an A100, a V100 and a T4 30 to 60 µs.
_DISPATCH_MS = 0.036
#: Under autocast the host looks at the type of each operator's inputs too: resnet-50 and
#: efficientnet-b0 at batch 1 take 1.2 times as long as in fp32.
_AUTOCAST = 1.2
_DISPATCHED_BY = "pytorch"
#: The power by which times of a device and its host are summed: equal ones take 1.2 times one.
SHARPNESS = 4.0
USUAL_MEMORY = np.array([1.0, 1.0, 1.0, 2.0, 1.0])
_CONSTANT_MB = 100.0
#: A backward pass does the products of the forward pass twice, for two gradients: what a training
#: step is taken for that could not be traced.
_TRAINING = 3.0
#: SGD with momentum moves 8 values for each weight where AdamW moves 20, in 3 operations for 9.
_SGD_MOVED, _SGD_STEPS = 0.4, 1 / 3
#: On accelerators the optimizer takes some thirty tensors at once, on CPUs one by one.
_TOGETHER = 1 / 30
#: Weights, gradients and the two moments of AdamW.
_TRAINED_COPIES = 4.0
_INT8 = "int8"
#: Imports have fp64 too.
_BYTES = {"fp64": 8.0, "fp32": 4.0, _INT8: 1.0}
_MIB = 2.0**20

#: Of a device whose peaks are not known: a middle one of its kind. What was measured moves it.
_UNKNOWN = {
    "cpu": DeviceFacts("a CPU", {"fp32": 1.0}, 50, "assumed"),
    "": DeviceFacts("a GPU", {"fp32": 20, "fp16": 60}, 600, "assumed"),
}
#: The engine of the probes that calibrate a device.
_PROBED_BY = "pytorch"

#: Measured limits of devices, by platform and device name.
Calibrated = Mapping[tuple[str, str], CalibratedLimits]
NOT_CALIBRATED: Calibrated = {}


@dataclass(frozen=True)
class TracedCase:
    """A case with the passes of its model."""

    case: PredictedCase
    passes: Mapping[str, PassTrace]

    @property
    def repeats(self) -> Mapping[str, float]:
        """How often a step, or the part of a request that is asked for, makes each pass."""
        shapes, place, part = self.case.shapes, self.case.configuration, self.case.part
        if part:
            return {part: 1.0}
        is_narrowed = is_autocast(place.precision)
        is_sgd = "sgd" in place.options
        return {
            "forward": float(shapes.steps or 1),
            PREFILL: 1.0,
            DECODE: float(max((shapes.new_tokens or 1) - 1, 0)),
            "training": 1.0,
            # Under autocast weights stay in fp32: twice as many bytes as other values have.
            "optimizer": (_SGD_MOVED if is_sgd else 1.0) * (2.0 if is_narrowed else 1.0),
            "tensors": (_SGD_STEPS if is_sgd else 1.0)
            * (1.0 if place.hardware in ON_CPUS else _TOGETHER),
            "casts": float(is_narrowed),
        }

    @property
    def is_trained_by_rule(self) -> bool:
        """Whether it is a training step of which the forward pass alone is known."""
        return self.case.configuration.mode == Mode.TRAINING and "training" not in self.passes


def facts_for(
    configuration: CaseConfiguration, calibrated: Calibrated = NOT_CALIBRATED
) -> DeviceFacts:
    """The peaks of a configuration's device, or those of a middle one of its kind.

    What was measured of a device goes before what its vendor says of all that have its name.
    """
    kind = "cpu" if configuration.hardware in ON_CPUS else ""
    return _measured(configuration, calibrated) or _known(configuration) or _UNKNOWN[kind]


def peaks_are_known(
    configuration: CaseConfiguration, calibrated: Calibrated = NOT_CALIBRATED
) -> bool:
    """Whether the peaks of a configuration's device were measured or are documented."""
    return configuration.calibrated_as in calibrated or _known(configuration) is not None


def peak_limits(configuration: CaseConfiguration, calibrated: Calibrated = NOT_CALIBRATED) -> float:
    """Return the share of the time at a configuration's peak that no products take less than.

    0 if no limit is known. It must be known in that very precision: what stands in for int8 is a
    peak of 16 or 32 bits, which units for int8 exceed twice to four times. A sustained rate is no
    limit: the documented peak is.
    """
    if configuration.precision != _INT8:
        if not peaks_are_known(configuration, calibrated):
            return 0.0
        taken = facts_for(configuration, calibrated)
        rate = taken.peak(configuration.precision)
        return rate / taken.half_rate if taken.half_rate and rate == taken.sustained else 1.0
    measured = calibrated.get(configuration.calibrated_as)
    if measured is not None:
        return _INT8 in measured.peaks
    facts = _known(configuration)
    return facts is not None and _INT8 in facts.teraops


def _measured(configuration: CaseConfiguration, calibrated: Calibrated) -> DeviceFacts | None:
    """The peaks that a calibration measured of a device.

    The probes ran in PyTorch, which multiplies in a type that the device has no unit for by slow
    loops. Another engine widens such values, so that its products meet no less than the fp32 peak.
    """
    limits = calibrated.get(configuration.calibrated_as)
    if limits is None:
        return None
    fp32 = limits.peaks["fp32"]
    narrow = limits.peak(configuration.precision) or fp32
    if configuration.runtime != _PROBED_BY:
        narrow = max(narrow, fp32)
    peaks = {"fp32": fp32 / 1e12}
    precision = configuration.precision.removeprefix("amp-")
    if precision in PRECISIONS:
        peaks.setdefault(precision, narrow / 1e12)
    day = f"measured {limits.day}"
    return DeviceFacts(limits.device_name, peaks, limits.bandwidth / 1e9, day)


@cache
def _known(configuration: CaseConfiguration) -> DeviceFacts | None:
    """Return what vendors document of a configuration's device, if that bounds its times."""
    facts = facts_of(configuration.device, configuration.hardware)
    return facts if facts is not None and facts.bandwidth else None


def value_bytes(precision: str) -> float:
    """Bytes of a value in a precision; of autocast half of one in fp32, as most tensors are."""
    return _BYTES.get(precision, 2.0)


def weight_bytes(precision: str) -> float:
    """Bytes of a weight that is kept in a precision: under autocast weights stay in fp32."""
    return _BYTES["fp32"] if is_autocast(precision) else value_bytes(precision)


def is_autocast(precision: str) -> bool:
    """Whether products alone are in a narrow type."""
    return precision.startswith("amp-")


@cache
def usual_time(kind: str) -> Floats:
    """Return the usual factor of each of `TIME_TERMS` on a kind of platform."""
    products, values = _USUAL_PRODUCTS.get(kind, {}), _USUAL_VALUES.get(kind, {})
    return np.array([
        *(products.get(name, _USUAL) for name in CLASSES[:MULTIPLYING] for _ in PRODUCT_SIZES),
        *(values.get(name, _USUAL) for name in CLASSES for _ in VALUE_SIZES),
        1.0, _USUAL, 1.0,
    ])  # fmt: skip


def longer_of(device: Floats, host: Floats | float) -> Floats:
    """Return the time of a device that works while its host hands over: about the longer one."""
    return np.asarray((device**SHARPNESS + np.asarray(host) ** SHARPNESS) ** (1 / SHARPNESS))


def time_terms(traced: Sequence[TracedCase], calibrated: Calibrated = NOT_CALIBRATED) -> Floats:
    """Return milliseconds of each of `TIME_TERMS` in a step, at the device's peaks; a row a case.

    Cases that differ only in their batch are calculated together: a matrix has a hundred thousand.
    """
    rows = np.zeros((len(traced), len(TIME_TERMS)))
    for places in _alike(traced):
        batches = np.array([traced[place].case.shapes.batch for place in places])
        rows[places] = _terms_of(traced[places[0]], batches, calibrated)
    return rows


def _alike(traced: Sequence[TracedCase]) -> list[list[int]]:
    groups: dict[tuple[object, ...], list[int]] = {}
    configurations = numbers_of_places([entry.case for entry in traced])
    for place, (entry, configuration) in enumerate(zip(traced, configurations, strict=True)):
        shapes = entry.case.shapes
        part = entry.case.part
        key = (id(entry.passes), part, shapes.steps, shapes.new_tokens, configuration)
        groups.setdefault(key, []).append(place)
    return list(groups.values())


def _terms_of(traced: TracedCase, batches: Ints, calibrated: Calibrated) -> Floats:
    configuration = traced.case.configuration
    facts = facts_for(configuration, calibrated)
    width = value_bytes(configuration.precision)
    multiplied = 2e-9 / facts.peak(configuration.precision)  # ms of a multiply-accumulate
    read = width * 1e-6 / facts.bandwidth
    moved = width * 1e-6 / _bandwidth_of_values(facts)
    dispatch_ms = _DISPATCH_MS if _is_dispatched(configuration) else 0.0
    if is_autocast(configuration.precision):
        dispatch_ms *= _AUTOCAST
    terms = np.zeros((len(batches), len(TIME_TERMS)))
    usual = usual_time(kind_of(configuration))
    taken, device = np.zeros((2, len(batches)))
    for name, passed in traced.passes.items():
        sums, times = passed.sums, traced.repeats.get(name, 0.0)
        if not times:
            continue
        each = np.zeros_like(terms)
        each[:, :-3] = [passed.sized(batch) for batch in batches.tolist()]
        each[:, :PRODUCT_TERMS] *= multiplied
        each[:, PRODUCT_TERMS:-3] *= moved
        if configuration.compiled:
            each[:, _FUSED] *= _LEFT_BY_FUSING
        each[:, -2] = sums.weights_read * read
        each[:, -1] = sums.launches * _LAUNCH_MS
        on_device = each @ usual
        device += times * on_device
        taken += times * longer_of(on_device, sums.launches * dispatch_ms)
        terms += times * each
    # Passes follow one another: the host's time counts where a pass waits for it.
    waits = taken**SHARPNESS - device**SHARPNESS
    terms[:, -3] = np.maximum(waits, 0.0) ** (1 / SHARPNESS) if dispatch_ms else 0.0
    return terms * (_TRAINING if traced.is_trained_by_rule else 1.0)


def _bandwidth_of_values(facts: DeviceFacts) -> float:
    """Return the bandwidth that results of operators are moved at: caches take a part of them."""
    cached = _BYTES_PER_OPERATION * facts.peak("fp32") * 1e3
    return float(facts.bandwidth ** (1.0 - _CACHED_SHARE) * cached**_CACHED_SHARE)


def _is_dispatched(configuration: CaseConfiguration) -> bool:
    """Whether the host hands each operator to a device that works beside it."""
    is_eager = configuration.runtime == _DISPATCHED_BY and not configuration.compiled
    return is_eager and configuration.hardware not in ON_CPUS


def memory_terms(traced: Sequence[TracedCase]) -> Floats:
    """Megabytes of each of `MEMORY_TERMS`; a row a case."""
    rows = np.zeros((len(traced), len(MEMORY_TERMS)))
    for places in _alike(traced):
        batches = np.array([traced[place].case.shapes.batch for place in places])
        rows[places] = _memory(traced[places[0]], batches)
    return rows


def _memory(traced: TracedCase, batches: Ints) -> Floats:
    """Tables of embeddings are kept apart: of a mapped file only the rows that are looked up are in
    memory. So are scores: a fused attention never holds them, another holds all of a layer's."""
    configuration, passes = traced.case.configuration, traced.passes.values()
    width = value_bytes(configuration.precision) / _MIB
    weights = max(passed.weights for passed in passes)
    multiplied = min(max(passed.sums.weights_read for passed in passes), weights)
    is_trained = configuration.mode == Mode.TRAINING
    stored = weight_bytes(configuration.precision) / _MIB
    kept = stored * (_TRAINED_COPIES if is_trained else 1.0)
    alive = width * (_TRAINING if is_trained else 1.0)
    terms = np.full((len(batches), len(MEMORY_TERMS)), _CONSTANT_MB)
    if "training" in traced.passes:
        return _trained_memory(traced, batches, terms)
    terms[:, 0], terms[:, 1] = kept * multiplied, kept * (weights - multiplied)
    terms[:, 2] = alive * batches * max(passed.peak_bytes for passed in passes) / 4
    terms[:, 3] = alive * batches * max(passed.scores for passed in passes)
    return terms


def _trained_memory(traced: TracedCase, batches: Ints, terms: Floats) -> Floats:
    """Weights with the state of their optimizer, and what is alive at the worst moment of a step.

    That is in the backward pass, of results kept and gradients so far, or the optimizer's, of all
    gradients. Autocast keeps weights, gradients and state in fp32, and a narrow copy of weights.
    """
    place, step = traced.case.configuration, traced.passes["training"]
    is_narrowed = is_autocast(place.precision)
    width, stored = (each(place.precision) / _MIB for each in (value_bytes, weight_bytes))
    state = 1.0 if "sgd" in place.options else 2.0
    terms[:, 0] = step.weights * (stored * (1.0 + state) + (width if is_narrowed else 0.0))
    terms[:, 1] = 0.0
    alive = width / 4 * (batches * step.peak_bytes + step.fixed_bytes)
    terms[:, 2] = np.maximum(alive, stored * step.weights)
    terms[:, 3] = 0.0
    return terms


def kernel_sizes(traced: Sequence[TracedCase], times: Floats) -> Floats:
    """Sizes along which residuals are smooth: work, batch, launches and length, as logarithms."""
    shapes = [entry.case.shapes for entry in traced]
    return np.column_stack([
        np.log(times[:, :-1].sum(axis=1) + 1e-6) / 2,
        np.log2([s.batch for s in shapes]) / 2,
        np.log(times[:, -1] + 1e-6) / 2,
        np.log([_length(s) for s in shapes]) / 2,
    ])  # fmt: skip


def _length(shapes: Shapes) -> int:
    return shapes.prompt_tokens or shapes.sequence or shapes.image or shapes.audio or 1


_FP32_BYTES = 4


class ClassCounts(TypedDict):
    """What the operators of a class take together, of a batch of one in fp32."""

    launches: int
    macs: int
    bytes: int  # operands, results and weights
    output_elements: int
    intensity: float | None  # operations a byte; None of what moves none


class PassCounts(TypedDict):
    """A pass of a model at its sizes."""

    model: str
    sizes: dict[str, int]
    part: str  # forward · prefill · decode
    weights: int
    classes: dict[str, ClassCounts]


def operator_counts(traced: Iterable[TracedCase]) -> list[PassCounts]:
    """The passes of cases, each once."""
    counted: dict[tuple[str, str, str], PassCounts] = {}
    for entry in traced:
        if not entry.case.has_operators:
            continue
        sizes = sizes_of(entry.case.shapes)
        for part, taken in entry.passes.items():
            key = (entry.case.model, str(sizes), part)
            if key not in counted:
                counted[key] = {
                    "model": entry.case.model, "sizes": sizes, "part": part,
                    "weights": taken.weights, "classes": _by_class(taken),
                }  # fmt: skip
    return list(counted.values())


def _by_class(taken: PassTrace) -> dict[str, ClassCounts]:
    classes: dict[str, ClassCounts] = {}
    for name in CLASSES:
        rows = [(s, number) for s, number in taken.signatures if s.op_class == name]
        if not rows:
            continue
        macs = sum(number * s.macs for s, number in rows)
        made = sum(number * s.output_elements for s, number in rows)
        read = sum(number * (s.input_elements + s.weight_elements) for s, number in rows)
        moved = _FP32_BYTES * (made + read)
        classes[name] = {
            "launches": sum(number for _, number in rows), "macs": macs, "bytes": moved,
            "output_elements": made, "intensity": 2 * macs / moved if moved else None,
        }  # fmt: skip
    return classes
