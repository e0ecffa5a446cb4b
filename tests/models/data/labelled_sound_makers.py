"""Class folders of sounds, and a case that is fed with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from data_makers import case_of, tone

from accelbench.core.case import Case
from accelbench.core.model import InputSpec
from accelbench.core.run_options import JobSettings
from accelbench.models.data.labelled_feed import LabelledSounds, labelled_data

RATE = 8000
WAVE = InputSpec("wave", ("batch", RATE), "float32")


def case(input_: InputSpec = WAVE, **config: Any) -> Case:
    return case_of("audio", input_, **config)


def sounds(root: Path, rate: int = RATE) -> Path:
    for name, hertz in (("high", 2000), ("low", 200)):
        tone(root / name / "short.wav", 0.5, rate, hertz)
        tone(root / name / "long.wav", 2.0, rate, hertz, channels=2)
    return root


def labelled(root: Path, asked: Case | None = None, **settings: Any) -> LabelledSounds:
    settings = {"preprocessing": f"wave:{RATE}", **settings}
    found = labelled_data(JobSettings(data=str(root), **settings), asked or case())
    assert isinstance(found, LabelledSounds)
    return found
