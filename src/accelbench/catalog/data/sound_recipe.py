"""How sounds become a model's input: said by its publishers or by its owner, never guessed.

A recipe is a preprocessor_config.json, as checkpoints have it beside their weights, or a name with
the rate that the model takes: `wave:16000`, `normalised:16000`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.catalog.data import audio
from accelbench.catalog.data.picture_recipe import CONFIG
from accelbench.catalog.data.rows import need
from accelbench.core import jsonc
from accelbench.core.case import Case
from accelbench.core.errors import CaseError
from accelbench.core.visible import in_quotes

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

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
    """Whether a word names a recipe of sound."""
    return _NAMED.fullmatch(word) is not None


@dataclass(frozen=True)
class SoundRecipe:
    """From the bytes of a sound to a model's input.

    Attributes:
        name: what said it.
        rate: of the wave, in hertz.
        does: what is done with a wave of it, in words.
        makes: the input of one sound of a wave.
        seconds: of a sound that are read.
    """

    name: str
    rate: int
    does: str
    makes: Callable[[Array], Array]
    seconds: int

    @property
    def note(self) -> str:
        """What is applied, in a sentence."""
        return f"Sounds as {self.name} says: one channel at {self.rate:,} Hz, {self.does}."

    def input(self, data: bytes) -> Array:
        """The input of a sound. Raises UnreadableError where it is none."""
        return self.makes(audio.decode(data, self.seconds, self.rate))


def sound_recipe(
    asked: str | None, folders: Sequence[Path], case: Case, shape: tuple[int, ...]
) -> SoundRecipe:
    """The recipe that was asked for, lies beside a model, or is its publishers'.

    Args:
        asked: a name with a rate, or a path.
        folders: beside the model, the nearest first.
        case: whose model takes it.
        shape: of one sound's input.

    Raises:
        CaseError: nothing says it, or it makes inputs of another shape.
    """
    if asked is not None and (named := _NAMED.fullmatch(asked)):
        return _wave(asked, int(named[2]), named[1] == "normalised", case, shape)
    paths = [Path(asked)] if asked is not None else [folder / CONFIG for folder in folders]
    for path in paths:
        if path.is_file():
            return _configured(path, case, shape)
    model = case.model
    if not model.is_own and model.folder is None and model.sampling_rate and case.shapes.audio:
        seconds, rate = case.shapes.audio, model.sampling_rate
        makes = audio.features(model, shape, seconds, rate)
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
            return audio.normalised(wave, samples).reshape(shape)
        made = np.zeros(samples, np.float32)
        made[: len(wave)] = wave[:samples]
        return made.reshape(shape)

    scaled = "mean 0 and variance 1" if normalises else "from −1 to 1"
    does = f"{scaled}, cut or filled with silence to {samples:,} samples"
    return SoundRecipe(name, rate, does, makes, max(1, -(-samples // rate)))


def _configured(path: Path, case: Case, shape: tuple[int, ...]) -> SoundRecipe:
    try:
        config = jsonc.read(path, infinite=True)
        if not isinstance(config, Mapping):
            raise ValueError("it is no object")
        rate = config.get("sampling_rate")
        if not isinstance(rate, int) or not 100 <= rate <= 1_000_000:
            raise ValueError("it has no sampling_rate")
    except OSError as error:
        raise _refused(path, error.strerror or str(error)) from error
    except ValueError as error:
        raise _refused(path, str(error)) from error
    if config.get("feature_extractor_type") == _PLAIN:
        return _wave(CONFIG, rate, bool(config.get("do_normalize", True)), case, shape)
    return _extracted(path, rate, case, shape)


def _extracted(path: Path, rate: int, case: Case, shape: tuple[int, ...]) -> SoundRecipe:
    """What an extractor of transformers makes of a wave: its own class, and no code beside it."""
    transformers = need("transformers", "transformers", "torch", "Making spectra")
    try:
        extract = transformers.AutoFeatureExtractor.from_pretrained(
            str(path.parent), local_files_only=True, trust_remote_code=False
        )
    except Exception as error:
        raise _refused(path, str(error).partition("\n")[0]) from error
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


def _refused(path: Path, why: str) -> CaseError:
    return CaseError(
        "data_mismatch", f"{in_quotes(str(path))} says no way to prepare sounds: {why}.", ADVICE
    )
