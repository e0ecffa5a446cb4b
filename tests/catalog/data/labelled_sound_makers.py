"""Class folders of sounds, and a case that is fed with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from data_makers import tone

from accelbench.catalog.data.labelled_feed import LabelledSounds, labelled_data
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.model import InputSpec, ModelSpec
from accelbench.core.run_spec import JobSettings
from accelbench.core.vocabulary import Architecture, Family

RATE = 8000
WAVE = InputSpec("wave", ("batch", RATE), "float32")


def case(input_: InputSpec = WAVE, **config: Any) -> Case:
    model = ModelSpec(
        "m", Family.AUDIO, Architecture.SPEECH, ("audio",), "", "tiny", "made:up", config,
        (input_,), 1,
    )  # fmt: skip
    return Case(model, Target("onnxruntime", "cpu"), "fp32", Shapes(2))


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
