"""Tiny files of every kind, made by the tests themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile
from PIL import Image

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.model import InputSpec, ModelSpec
from accelbench.core.vocabulary import Architecture, Family, Mode
from accelbench.models.find import find

#: 24 different sentences, more text than a vocabulary of bytes needs to grow.
SENTENCES = [f"The {a} {b} sat on the mat.\n" for a in ("red", "old", "big", "sly")
             for b in ("cat", "fox", "hen", "dog", "bat", "owl")]  # fmt: skip


def picture(path: Path, color: tuple[int, int, int] = (255, 0, 0), size: tuple[int, int] = (40, 30),
            mode: str = "RGB", **how: object) -> Path:  # fmt: skip
    """One colour all over, so that resizing changes nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, color).convert(mode).save(path, **how)
    return path


def pictures(root: Path, classes: tuple[str, ...] = ("cat", "red_fox"), each: int = 3) -> Path:
    """Class folders; every picture has a grey of its own."""
    for i, name in enumerate(classes):
        for j in range(each):
            grey = 7 * (1 + i * each + j)
            picture(root / name / f"{j}.png", (grey, grey, grey))
    return root


def tone(path: Path, seconds: float = 1.0, rate: int = 16_000, hertz: float = 440.0,
         channels: int = 1) -> Path:  # fmt: skip
    """A sine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    wave = 0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)
    soundfile.write(path, np.stack([wave] * channels, axis=1), rate)
    return path


def tones(root: Path, count: int = 4, transcripts: bool = False) -> Path:
    for i in range(count):
        path = tone(root / f"{i}.wav", seconds=0.5, hertz=200 + 100 * i)
        if transcripts:
            path.with_suffix(".txt").write_text(f"tone number {i}")
    return root


def texts(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    (root / "a.txt").write_text("".join(SENTENCES[:12]))
    (root / "b.txt").write_text("".join(SENTENCES[12:]))
    return root


def a_case(model: str, batch: int = 2, mode: Mode = Mode.INFERENCE, **sizes: int) -> Case:
    return Case(find(model), Target("pytorch", "cpu"), "fp32", Shapes(batch, **sizes), mode)


def case_of(modality: str, *inputs: InputSpec, batch: int = 2, sequence: int | None = None,
            **config: object) -> Case:  # fmt: skip
    """A case of an owner's model `m` with such inputs."""
    model = ModelSpec(
        "m", Family.UNKNOWN, Architecture.UNKNOWN, (modality,), "", "tiny", "made:up", config,
        inputs, 1, sequence=sequence,
    )  # fmt: skip
    return Case(model, Target("onnxruntime", "cpu"), "fp32", Shapes(batch, sequence=sequence))
