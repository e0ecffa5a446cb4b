"""Labelled sounds: class folders of files, as a model's owner says that it takes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from data_makers import tone

from accelbench.catalog.data.labelled_feed import labelled_data
from accelbench.catalog.data.labelled_sounds import LabelledSounds
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError
from accelbench.core.job_settings import JobSettings
from accelbench.core.model import InputSpec, ModelSpec
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


def test_sounds_of_any_length_are_cut_or_filled_and_numbered(tmp_path: Path) -> None:
    data = labelled(sounds(tmp_path / "s"))
    walked = list(data.rows())
    assert [int(label) for _, label in walked] == [0, 0, 1, 1]
    long, short = walked[0][0]["wave"], walked[1][0]["wave"]
    own, _ = soundfile.read(tmp_path / "s/high/short.wav", dtype="float32")
    assert short.dtype == np.float32
    assert np.array_equal(short, np.concatenate([own, np.zeros(RATE // 2, np.float32)]))
    assert long.shape == (RATE,)
    assert np.abs(long[-100:]).max() > 0.4
    assert data.classes == 2
    assert data.notes[0] == (
        "Sounds as wave:8000 says: one channel at 8,000 Hz, from −1 to 1, cut or filled with"
        " silence to 8,000 samples."
    )
    assert len(data.digest()) == 16


def test_another_rate_is_resampled_to_that_of_the_model(tmp_path: Path) -> None:
    data = labelled(sounds(tmp_path / "s", 2 * RATE))
    high = next(data.rows())[0]["wave"]
    assert np.abs(np.fft.rfft(high)).argmax() == 2000  # a second of it: a bin a hertz


def test_a_recipe_lies_beside_or_is_asked_for_and_is_never_guessed(tmp_path: Path) -> None:
    root = sounds(tmp_path / "s")
    with pytest.raises(CaseError, match="Nothing says how sounds are prepared for m") as caught:
        labelled(root, preprocessing=None)
    assert "wave:16000, normalised:16000" in caught.value.advice
    config: dict[str, Any] = {
        "feature_extractor_type": "Wav2Vec2FeatureExtractor", "do_normalize": True,
        "sampling_rate": RATE,
    }  # fmt: skip
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    beside = labelled(root, preprocessing=None, weights=str(tmp_path))
    short, _ = list(beside.rows())[1]
    said = short["wave"][: RATE // 2]
    assert (abs(said.mean()), said.std()) == pytest.approx((0, 1), abs=1e-4)
    assert not short["wave"][RATE // 2 :].any()
    del config["sampling_rate"]
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    with pytest.raises(CaseError, match="it has no sampling_rate"):
        labelled(root, preprocessing=None, weights=str(tmp_path))


def test_spectra_are_what_the_extractor_beside_the_model_makes(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    extract = transformers.WhisperFeatureExtractor(feature_size=8, chunk_length=1)
    extract.save_pretrained(tmp_path)
    root = sounds(tmp_path / "s", 16_000)
    mel = case(InputSpec("input_features", ("batch", 8, 100), "float32"))
    data = labelled(root, mel, preprocessing=str(tmp_path / "preprocessor_config.json"))
    made = list(data.rows())[1][0]["input_features"]
    own, _ = soundfile.read(root / "high/short.wav", dtype="float32")
    expected = extract(own, sampling_rate=16_000, return_tensors="np")["input_features"][0]
    assert np.array_equal(made, expected)
    other = case(InputSpec("input_features", ("batch", 8, 90), "float32"))
    with pytest.raises(CaseError, match=r"makes \[8, 100\] of a sound, and m is fed \[8, 90\]"):
        list(labelled(root, other, preprocessing=str(tmp_path / "preprocessor_config.json")).rows())


def test_what_is_no_sound_is_skipped_and_counted(tmp_path: Path) -> None:
    root = sounds(tmp_path / "s")
    (root / "low" / "broken.wav").write_bytes(b"RIFF")
    data = labelled(root)
    assert len(list(data.rows())) == 4
    assert "Skipped, as unreadable: 1 of 5 sounds." in data.notes
    for path in root.rglob("*.wav"):
        path.write_bytes(b"nothing")
    with pytest.raises(CaseError, match=r"None of the 5 sounds can be read; high/long\.wav"):
        list(labelled(root).rows())


def test_a_channel_may_stand_between_and_other_inputs_are_refused(tmp_path: Path) -> None:
    root = sounds(tmp_path / "s")
    between = case(InputSpec("wave", ("batch", 1, RATE), "float16"))
    made = next(labelled(root, between).rows())[0]["wave"]
    assert (made.shape, made.dtype) == ((1, RATE), np.float16)
    mel = case(InputSpec("mel", ("batch", 64, 100), "float32"))
    with pytest.raises(CaseError, match="which no wave of one channel is"):
        labelled(root, mel)
    ids = case(InputSpec("ids", ("batch", 8), "int64", high=9))
    with pytest.raises(CaseError, match=r"m takes ids \[2, 8\], which no sound"):
        labelled(root, ids)
