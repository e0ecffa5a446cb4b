"""Why a configuration that was never measured is not predicted: what no engine would run. Pure.

What was measured there has run, and is never asked about here.
"""

from __future__ import annotations

from collections.abc import Container

from accelbench.core.devices import cards, title_of
from accelbench.core.vocabulary import Mode
from accelbench.hardware.rooflines import called
from accelbench.predict.cases import ON_CPUS, CaseConfiguration, is_calibrated

#: What training or autocast computes in is no precision of weights.
_AUTOCAST = "amp-"
_USUAL = "fp32"


def why_not(
    place: CaseConfiguration, calibrated: Container[tuple[str, str]], *, generates: bool
) -> str:
    """Why nothing is predicted in a configuration; "" where it is.

    Args:
        place: the configuration.
        calibrated: platforms and names of devices whose peaks were measured.
        generates: whole requests are asked for, token by token.
    """
    card, name = cards().get(place.runtime), title_of(place.runtime)
    if card is None:
        return f"there is no runtime {place.runtime}"
    if place.hardware not in card.hardware:
        return f"{name} does not run on {place.hardware}"
    if place.mode == Mode.TRAINING and card.consumes != "torch":
        return f"{name} does not train"
    if place.mode == Mode.TRAINING and place.precision == "int8":
        return "a model quantised to int8 is not trained"
    if generates and not card.generates:
        return f"{name} does not generate token by token"
    if place.precision not in card.precisions:
        return f"{name} has no {place.precision}"
    return _unknown_peak(place, calibrated)


def _unknown_peak(place: CaseConfiguration, calibrated: Container[tuple[str, str]]) -> str:
    """Why the peak of a precision is not known.

    A CPU without units for a narrow type computes it by loops that take ten to five hundred times
    as long as fp32 (bert-tiny in PyTorch: bf16 231 ms, int8 548 ms, fp32 2.8 ms).
    """
    precision = place.precision.removeprefix(_AUTOCAST)
    if precision == _USUAL or is_calibrated(place, calibrated):
        return ""
    known = called(place.hardware, place.device)
    if known and precision not in known.teraops:
        return f"no document gives a peak of {place.device} in {precision}"
    if not known and place.hardware in ON_CPUS:
        return (
            f"how fast {place.device} is in {precision} is not known: measure a case in it there, "
            "or run accelbench hardware --calibrate"
        )
    return ""
