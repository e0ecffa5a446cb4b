"""Sound as a model takes it: decoded, mixed to one channel, resampled, cut, turned into features.

The features are those of the models' own extractors in transformers: NumPy or
torch on the CPU, without the network. Making them is preprocessing, never part
of a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any

from accelbench.catalog.data.rows import UnreadableError, need
from accelbench.core.errors import UnsupportedError
from accelbench.core.model import ModelSpec

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: Makes a model's input of one sound.
Recipe = Callable[["Array"], "Array"]


def decode(data: bytes, seconds: int, rate: int) -> Array:
    """The first seconds of a sound, one channel, at a rate; shorter where it is shorter.

    Raises:
        UnreadableError: it is no sound, or broken.
    """
    soundfile = need("soundfile", "soundfile", "data", "Reading sound")
    try:
        with soundfile.SoundFile(BytesIO(data)) as file:
            own_rate = int(file.samplerate)
            read = file.read(seconds * own_rate, dtype="float32", always_2d=True)
    except Exception as error:  # a decoder of foreign bytes raises whatever it likes
        raise UnreadableError(_said(error)) from error
    if not len(read):
        raise UnreadableError("it holds no sound")
    return resampled(read.mean(axis=1), own_rate, rate)[: seconds * rate]


def _said(error: Exception) -> str:
    """libsndfile's words, without the address of what it was to open."""
    return str(error).partition("\n")[0].rpartition(": ")[2] or type(error).__name__


def resampled(wave: Array, rate: int, wanted: int) -> Array:
    """The same sound at another rate, by a polyphase filter."""
    import numpy as np

    if rate == wanted:
        return wave
    signal = need("scipy.signal", "scipy", "data", "Resampling sound")
    common = math.gcd(rate, wanted)
    made: Array = signal.resample_poly(wave, wanted // common, rate // common)
    return made.astype(np.float32)


def normalised(wave: Array, samples: int) -> Array:
    """Wav2vec2's input: zero mean, variance one, then silence up to the length."""
    import numpy as np

    made = np.zeros(samples, np.float32)
    wave = wave[:samples]
    made[: len(wave)] = (wave - wave.mean()) / np.sqrt(wave.var() + 1e-7)
    return made


def features(spec: ModelSpec, shape: tuple[int, ...], seconds: int, rate: int) -> Recipe:
    """What makes a model's input of one sound.

    Args:
        spec: the model.
        shape: of one sound's input, without the batch.
        seconds: how much of a sound the case has.
        rate: the model's sampling rate.

    Raises:
        UnsupportedError: no recipe is known that gives this shape.
    """
    if len(shape) == 1:
        return lambda wave: normalised(wave, shape[0])
    name = spec.builder.rpartition(":")[2].lower()
    recipe: Recipe | None = None
    if name.startswith("whisper") and len(shape) == 2 and shape[1] == seconds * 100:
        recipe = _whisper(shape[0], seconds, rate)
    elif name.startswith("clap") and len(shape) == 3 and shape[1] == seconds * 100 + 1:
        recipe = _clap(shape[2], seconds, rate)
    if recipe is None:
        raise UnsupportedError(
            "no_real_inputs",
            f"{spec.id} takes sound as {shape}, which no recipe makes of files.",
            "Leave out --data.",
        )
    return recipe


def _whisper(bins: int, seconds: int, rate: int) -> Recipe:
    transformers = need("transformers", "transformers", "torch", "Whisper's log-mel spectra")
    extract = transformers.WhisperFeatureExtractor(
        feature_size=bins, sampling_rate=rate, chunk_length=seconds, hop_length=rate // 100
    )
    return _first(extract, rate)


def _clap(bins: int, seconds: int, rate: int) -> Recipe:
    # As published for clap-htsat-unfused: short sounds are repeated to the length.
    transformers = need("transformers", "transformers", "torch", "CLAP's mel spectra")
    extract = transformers.ClapFeatureExtractor(
        feature_size=bins, sampling_rate=rate, max_length_s=seconds, hop_length=rate // 100,
        frequency_min=50, frequency_max=14_000, truncation="rand_trunc", padding="repeatpad",
    )  # fmt: skip
    return _first(extract, rate)


def _first(extract: Any, rate: int) -> Recipe:
    import numpy as np

    def recipe(wave: Array) -> Array:
        made = extract(wave, sampling_rate=rate, return_tensors="np")["input_features"][0]
        return np.ascontiguousarray(made, np.float32)

    return recipe
