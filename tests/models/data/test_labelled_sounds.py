"""Labelled sounds: class folders of files, as a model's owner says that it takes them."""

import json

import numpy as np
import pytest
import soundfile
from labelled_sound_makers import RATE, case, labelled, sounds

from accelbench.core.errors import CaseError
from accelbench.core.model import InputSpec


def test_sounds_of_any_length_are_cut_or_filled_and_numbered(tmp_path):
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


def test_another_rate_is_resampled_to_that_of_the_model(tmp_path):
    data = labelled(sounds(tmp_path / "s", 2 * RATE))
    high = next(data.rows())[0]["wave"]
    assert np.abs(np.fft.rfft(high)).argmax() == 2000  # a second of it: a bin a hertz


def test_a_recipe_lies_beside_or_is_asked_for_and_is_never_guessed(tmp_path):
    root = sounds(tmp_path / "s")
    with pytest.raises(CaseError, match="Nothing says how sounds are prepared for m") as caught:
        labelled(root, preprocessing=None)
    assert "wave:16000, normalised:16000" in caught.value.advice
    config = {
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


def test_what_is_no_sound_is_skipped_and_counted(tmp_path):
    root = sounds(tmp_path / "s")
    (root / "low" / "broken.wav").write_bytes(b"RIFF")
    data = labelled(root)
    assert len(list(data.rows())) == 4
    assert "Skipped, as unreadable: 1 of 5 sounds." in data.notes
    for path in root.rglob("*.wav"):
        path.write_bytes(b"nothing")
    with pytest.raises(CaseError, match=r"None of the 5 sounds can be read; high/long\.wav"):
        list(labelled(root).rows())


def test_a_channel_may_stand_between_and_other_inputs_are_refused(tmp_path):
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
