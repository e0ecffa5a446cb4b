"""Which devices are taken for typical ones, as nobody knows their peaks: a note each. Pure.

A store with others' results has dozens of such devices, and their notes were longer than the
answer: people are told how many they are, and a document names them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from accelbench.core.nouns import listed
from accelbench.predict.cases import CaseConfiguration
from accelbench.predict.terms import Calibrated, peaks_are_known

_KINDS_NAMED = 4


def peak_notes(places: Iterable[CaseConfiguration], calibrated: Calibrated) -> dict[str, str]:
    """A note for each device that no peaks are known of, with its platform.

    Args:
        places: where something is predicted.
        calibrated: measured limits of devices.
    """
    return {
        f"no peaks of {place.device or place.hardware} are documented, and none were measured"
        " (accelbench hardware --calibrate): it is taken for a typical device of its kind": (
            place.hardware
        )
        for place in places
        if not peaks_are_known(place, calibrated)
    }


def in_brief(notes: Sequence[str], of_peaks: Mapping[str, str]) -> list[str]:
    """The same notes, those of several devices' peaks as one that counts them by platform.

    Args:
        notes: all of them.
        of_peaks: those that `peak_notes` made.
    """
    if len(of_peaks) < 2:
        return list(notes)
    kinds = Counter(of_peaks.values()).most_common()
    how_many = listed([f"{count:,} on {kind}" for kind, count in kinds], _KINDS_NAMED)
    said = (
        f"no peaks of {len(of_peaks):,} devices are documented, and none were measured"
        f" ({how_many}): each is taken for a typical device of its kind; --json and --debug name"
        " them"
    )
    first = next((place for place, note in enumerate(notes) if note in of_peaks), len(notes))
    rest = [note for note in notes[first:] if note not in of_peaks]
    return [*notes[:first], said, *rest]
