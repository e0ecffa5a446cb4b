"""Parts of the day in their order: short ones first, those that take what time is left last."""

from __future__ import annotations

from gpu_day.against_bare import fidelity, perturbation
from gpu_day.compiling import compiling
from gpu_day.detection import detection
from gpu_day.energy import energy
from gpu_day.engines import jax, onnxruntime
from gpu_day.launches import launches
from gpu_day.memory import memory
from gpu_day.part import Part
from gpu_day.precisions import precisions
from gpu_day.telemetry import telemetry
from gpu_day.tests_on_device import conformance
from gpu_day.training import training
from gpu_day.versions import versions

#: Slack of a part that goes on for as long as it has time.
FILLS = 1.0

PARTS = (
    Part("environment", 3, versions),
    Part("detection", 3, detection),
    Part("telemetry", 6, telemetry),
    Part("energy", 22, energy),
    Part("memory", 28, memory),
    Part("precisions", 71, precisions),
    Part("training", 75, training),
    Part("compile", 58, compiling),
    Part("onnxruntime", 5, onnxruntime),
    Part("jax", 90, jax),
    Part("fidelity", 120, fidelity, FILLS),
    Part("perturbation", 72, perturbation, FILLS),
    Part("launches", 54, launches, FILLS),
    Part("conformance", 48, conformance, FILLS),
)
