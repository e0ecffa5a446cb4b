"""Sound: one channel, the model's rate, the case's length, the model's features."""

import numpy as np
import pytest
import soundfile
from data_makers import tone
from labelled_sound_makers import case, labelled, sounds

from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.core.model import InputSpec
from accelbench.models.data import sounds as audio
from accelbench.models.data.rows import UnreadableError
from accelbench.models.find import find


@pytest.mark.parametrize("ending", ["wav", "flac", "ogg", "mp3"])
def test_formats_rates_and_channels(tmp_path, ending):
    path = tone(tmp_path / f"a.{ending}", seconds=2, rate=44_100, hertz=1000, channels=2)
    wave = audio.decode(path.read_bytes(), 1, 16_000)
    assert wave.dtype == np.float32
    assert wave.shape == (16_000,)
    spectrum = np.abs(np.fft.rfft(wave))
    assert spectrum.argmax() == 1000  # a second long: a bin a hertz


def test_resampling_keeps_length_and_loudness():
    wave = np.sin(2 * np.pi * 440 * np.arange(48_000) / 48_000).astype(np.float32)
    made = audio.resample(wave, 48_000, 16_000)
    assert made.shape == (16_000,)
    assert made.dtype == np.float32
    assert np.sqrt((made[1000:-1000] ** 2).mean()) == pytest.approx(np.sqrt(0.5), rel=1e-2)
    assert audio.resample(wave, 48_000, 48_000) is wave


def test_wav2vec2_is_fed_as_its_extractor_does():
    wave = np.random.default_rng(0).normal(3, 5, 8000).astype(np.float32)
    made = audio.normalise_sound(wave, 16_000)
    assert made[:8000].mean() == pytest.approx(0, abs=1e-5)
    assert made[:8000].std() == pytest.approx(1, abs=1e-5)
    assert not made[8000:].any()

    from transformers import Wav2Vec2FeatureExtractor

    wave = np.random.default_rng(0).normal(1, 3, 9000).astype(np.float32)
    theirs = Wav2Vec2FeatureExtractor()(
        wave, sampling_rate=16_000, padding="max_length", max_length=16_000,
        return_attention_mask=True, return_tensors="np",
    )["input_values"][0]  # fmt: skip
    assert np.allclose(audio.normalise_sound(wave, 16_000), theirs, atol=1e-6)


def test_broken_and_empty_sound(tmp_path):
    with pytest.raises(UnreadableError) as raised:
        audio.decode(b"RIFF and nothing else", 1, 16_000)
    assert "0x" not in str(raised.value)  # nothing that differs from run to run
    with pytest.raises(UnreadableError, match="no sound"):
        audio.decode(tone(tmp_path / "a.wav", seconds=0).read_bytes(), 1, 16_000)


@pytest.mark.parametrize(("model", "shape"), [("whisper-mini", (80, 300)), ("clap-tiny", None)])
def test_features_have_the_shape_of_the_input(model, shape):
    spec = find(model)
    assert spec.audio is not None
    assert spec.sampling_rate is not None
    wanted = next(t.shape[1:] for t in spec.inputs if t.name == "input_features")
    sizes = tuple(int(size) for size in wanted)
    assert shape is None or sizes == shape
    make = audio.features(spec, sizes, spec.audio, spec.sampling_rate)
    noise = np.random.default_rng(0).normal(size=spec.sampling_rate // 2).astype(np.float32)
    quiet, loud = make(0 * noise), make(noise)
    assert quiet.shape == loud.shape == sizes
    assert quiet.dtype == np.float32
    assert not np.array_equal(quiet, loud)


def test_an_unknown_shape_is_refused():
    with pytest.raises(UnsupportedError, match="which no recipe makes"):
        audio.features(find("whisper-mini"), (80, 299), 3, 16_000)


def test_spectra_are_what_the_extractor_beside_the_model_makes(tmp_path):
    from transformers import WhisperFeatureExtractor

    extract = WhisperFeatureExtractor(feature_size=8, chunk_length=1)
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
