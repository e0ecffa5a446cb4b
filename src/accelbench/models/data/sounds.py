"""Sound as a model takes it: decoded, mixed to one channel, resampled, cut, turned into features.

Features are those of the models' own extractors in transformers, made on the CPU without the
network, never within a step. A recipe comes from the publishers, from a preprocessor_config.json
next to the weights, or from a name with a rate (`wave:16000`, `normalised:16000`); it is never
guessed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core import jsonc
from accelbench.core.case import Case
from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.core.model import InputSpec, ModelSpec
from accelbench.core.safe_text import in_quotes
from accelbench.models.data.captions import Captions, Fed, letters, targets
from accelbench.models.data.folder import Entry, Folder, classes_of
from accelbench.models.data.pictures import CONFIG
from accelbench.models.data.rows import Saw, UnreadableError, contents, label_of, need, number

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


#: Makes a model's input of one sound.
Recipe = Callable[["Array"], "Array"]


def decode(data: bytes, seconds: int, rate: int) -> Array:
    """Return the first seconds of a sound, in one channel, at a rate; it may be shorter."""
    soundfile = need("soundfile", "soundfile", "data", "Reading sound")
    try:
        with soundfile.SoundFile(BytesIO(data)) as file:
            own_rate = int(file.samplerate)
            read = file.read(seconds * own_rate, dtype="float32", always_2d=True)
    except Exception as error:  # a decoder of foreign bytes raises whatever it likes
        raise UnreadableError(_error_text(error)) from error
    if not len(read):
        raise UnreadableError("it holds no sound")
    return resample(read.mean(axis=1), own_rate, rate)[: seconds * rate]


def _error_text(error: Exception) -> str:
    return str(error).partition("\n")[0].rpartition(": ")[2] or type(error).__name__


def resample(wave: Array, rate: int, wanted: int) -> Array:
    """Return the sound at another rate, by a polyphase filter."""
    import numpy as np

    if rate == wanted:
        return wave
    signal = need("scipy.signal", "scipy", "data", "Resampling sound")
    common = math.gcd(rate, wanted)
    made: Array = signal.resample_poly(wave, wanted // common, rate // common)
    return made.astype(np.float32)


def normalise_sound(wave: Array, samples: int) -> Array:
    """Return Wav2Vec2's input: zero mean, variance one, then silence up to the length."""
    import numpy as np

    made = np.zeros(samples, np.float32)
    wave = wave[:samples]
    made[: len(wave)] = (wave - wave.mean()) / np.sqrt(wave.var() + 1e-7)
    return made


def features(spec: ModelSpec, shape: tuple[int, ...], seconds: int, rate: int) -> Recipe:
    """Return the function that makes a model's input, of this shape, of one sound."""
    if len(shape) == 1:
        return lambda wave: normalise_sound(wave, shape[0])
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


#: wav2vec2's published vocabulary.
_LETTERS = 32


class Written:
    """The text of each sound: the .txt of the same name, else its class in words.

    One of the two for all of a folder; if a sound has neither, none has a text.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.spoken = all(_transcript(e).is_file() for e in folder.sounds)
        self.known = self.spoken or bool(classes_of(folder.sounds))

    def of(self, entry: Entry) -> str:
        if not self.spoken:
            return f"the sound of a {self._folder.title(entry.label)}"
        try:
            return _transcript(entry).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise UnreadableError(f"its transcript: {error}") from error

    def all(self) -> Iterator[str]:
        for entry in self._folder.sounds:
            with suppress(UnreadableError):  # skipped, and counted, when its turn comes
                yield self.of(entry)


def _transcript(entry: Entry) -> Path:
    return entry.path.with_suffix(".txt")


class SoundReader:
    """One item is one file of sound."""

    def __init__(
        self,
        folder: Folder,
        spec: ModelSpec,
        fed: Fed,
        seconds: int,
        written: Written,
        captions: Captions | None,
    ) -> None:
        self.notes: list[str] = []
        self.classes = classes_of(folder.sounds)
        self._entries = folder.sounds
        self.count = len(self._entries)
        self._written = written
        self._name = "input_values" if "input_values" in fed else "input_features"
        if spec.sampling_rate is None:
            raise UnsupportedError(
                "no_real_inputs", f"{spec.id} does not say its sampling rate.",
                "State sampling_rate with the model.",
            )  # fmt: skip
        self._seconds, self._rate = seconds, spec.sampling_rate
        self._features = features(spec, fed[self._name][1][1:], seconds, self._rate)
        self._captions = captions
        self._labels: dict[str, int] = {}
        self._letters = 0
        if "labels" in fed:
            self._learn(spec, *fed["labels"])
        self.gives = frozenset(
            {self._name}
            | (set(self._captions.gives) if self._captions else set())
            | ({"labels"} if self._labels or self._letters else set())
        )
        self.facts: Mapping[str, Any] = {
            "kind": "sound",
            "files": len(self._entries),
            "classes": len(self.classes),
            "transcripts": self._written.spoken,
            "sampling_rate": self._rate,
        }

    def _learn(self, spec: ModelSpec, labels: InputSpec, shape: tuple[int, ...]) -> None:
        if len(shape) == 1:
            self._labels = label_of(labels, self.classes, "sounds", self.notes)
        elif spec.training is None or spec.training.loss != "ctc":
            return  # the words of a caption, which has them
        elif not self._written.spoken:
            self.notes.append("The labels are drawn: not every sound has a .txt beside it.")
        elif labels.high < _LETTERS:
            self.notes.append(f"The labels are drawn: {labels.high} ids are too few for letters.")
        else:
            self._letters = shape[1]
            self.notes.append(f"Of each transcript, up to {shape[1]} letters are learned.")

    def name(self, index: int) -> str:
        return self._entries[index].name

    def read(self, index: int, saw: Saw) -> dict[str, Array]:
        entry = self._entries[index]
        data = contents(entry.path)
        row = {self._name: self._features(decode(data, self._seconds, self._rate))}
        if self._captions is not None:
            row |= self._captions.rows(self._written.of(entry))
        if self._letters:
            row["labels"] = targets(letters(self._written.of(entry)), self._letters)
        if self._labels:
            row["labels"] = number(self._labels[entry.label])
        saw(data)
        return row


WAVES = ("wave", "normalised")
_NAMED = re.compile(rf"({'|'.join(WAVES)}):(\d{{3,6}})")
#: What is done of a wave alone; other extractors make spectra, and are asked themselves.
_PLAIN = "Wav2Vec2FeatureExtractor"
#: Read of a sound at most, where its extractor does not say how much it takes.
_SECONDS = 60
ADVICE = (
    f"Say it with --preprocessing: {', '.join(f'{name}:16000' for name in WAVES)} with the rate"
    f" that it takes, or the path of a {CONFIG}."
)


def is_sound_word(word: str) -> bool:
    """Return whether a word names a recipe of sound."""
    return _NAMED.fullmatch(word) is not None


@dataclass(frozen=True)
class SoundRecipe:
    """From the bytes of a sound to a model's input."""

    name: str  # what states it
    rate: int  # of the wave, in hertz
    does: str  # what is done with a wave, in words
    makes: Callable[[Array], Array]  # the input of one wave
    seconds: int  # of a sound that are read

    @property
    def note(self) -> str:
        return f"Sounds as {self.name} says: one channel at {self.rate:,} Hz, {self.does}."

    def input(self, data: bytes) -> Array:
        return self.makes(decode(data, self.seconds, self.rate))


def sound_recipe(
    asked: str | None, folders: Sequence[Path], case: Case, shape: tuple[int, ...]
) -> SoundRecipe:
    """Return the recipe that was asked for, lies next to a model, or is its publishers'.

    Raises CaseError if nothing states one, or it makes inputs of another shape.
    """
    if asked is not None and (named := _NAMED.fullmatch(asked)):
        return _wave(asked, int(named[2]), named[1] == "normalised", case, shape)
    paths = [Path(asked)] if asked is not None else [folder / CONFIG for folder in folders]
    for path in paths:
        if path.is_file():
            return _read_config(path, case, shape)
    model = case.model
    if (
        not model.is_user_model
        and model.folder is None
        and model.sampling_rate
        and case.shapes.audio
    ):
        seconds, rate = case.shapes.audio, model.sampling_rate
        makes = features(model, shape, seconds, rate)
        return SoundRecipe(
            f"its publishers of {model.id}", rate, "as its features are made", makes, seconds
        )
    raise CaseError(
        "data_mismatch",
        f"Nothing says how sounds are prepared for {model.id}: there is no {CONFIG} beside it.",
        ADVICE,
    )


def _wave(
    name: str, rate: int, normalises: bool, case: Case, shape: tuple[int, ...]
) -> SoundRecipe:
    samples = shape[-1]
    if any(size != 1 for size in shape[:-1]):
        raise CaseError(
            "data_mismatch",
            f"{case.model.id} takes {list(shape)} of a sound, which no wave of one channel is.",
            f"Name the {CONFIG} of its features, or store them in an .npz file.",
        )

    def makes(wave: Array) -> Array:
        import numpy as np

        if normalises:
            return normalise_sound(wave, samples).reshape(shape)
        made = np.zeros(samples, np.float32)
        made[: len(wave)] = wave[:samples]
        return made.reshape(shape)

    scaled = "mean 0 and variance 1" if normalises else "from −1 to 1"
    does = f"{scaled}, cut or filled with silence to {samples:,} samples"
    return SoundRecipe(name, rate, does, makes, max(1, -(-samples // rate)))


def _read_config(path: Path, case: Case, shape: tuple[int, ...]) -> SoundRecipe:
    try:
        config = jsonc.read(path, allow_infinity=True)
        if not isinstance(config, Mapping):
            raise ValueError("it is no object")
        rate = config.get("sampling_rate")
        if not isinstance(rate, int) or not 100 <= rate <= 1_000_000:
            raise ValueError("it has no sampling_rate")
    except OSError as error:
        raise _data_error(path, error.strerror or str(error)) from error
    except ValueError as error:
        raise _data_error(path, str(error)) from error
    if config.get("feature_extractor_type") == _PLAIN:
        return _wave(CONFIG, rate, bool(config.get("do_normalize", True)), case, shape)
    return _extract_features(path, rate, case, shape)


def _extract_features(path: Path, rate: int, case: Case, shape: tuple[int, ...]) -> SoundRecipe:
    """Make features by transformers' own class, never by code in the folder."""
    transformers = need("transformers", "transformers", "torch", "Making spectra")
    try:
        extract = transformers.AutoFeatureExtractor.from_pretrained(
            str(path.parent), local_files_only=True, trust_remote_code=False
        )
    except Exception as error:
        raise _data_error(path, str(error).partition("\n")[0]) from error
    longest = next(
        (int(n) for at in ("nb_max_samples", "n_samples") if (n := getattr(extract, at, None))),
        _SECONDS * rate,
    )

    def makes(wave: Array) -> Array:
        import numpy as np

        made = extract(wave[:longest], sampling_rate=rate, return_tensors="np")
        values = np.asarray(made[extract.model_input_names[0]][0], np.float32)
        if values.shape != shape:
            raise CaseError(
                "data_mismatch",
                f"{CONFIG} makes {list(values.shape)} of a sound, and {case.model.id} is fed"
                f" {list(shape)}.",
                "Ask for that size with --dim, or export the model for it.",
            )
        return np.ascontiguousarray(values)

    does = f"as {type(extract).__name__} of transformers makes its features"
    return SoundRecipe(CONFIG, rate, does, makes, -(-longest // rate))


def _data_error(path: Path, why: str) -> CaseError:
    return CaseError(
        "data_mismatch", f"{in_quotes(str(path))} says no way to prepare sounds: {why}.", ADVICE
    )
