"""How pictures become a model's pixels: said by its publishers or by its owner, never guessed.

A recipe is a preprocessor_config.json, as checkpoints have it beside their weights, or one of a few
that have a name. What is applied is in the evidence of the result, and in a note of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core import jsonc
from accelbench.core.errors import CaseError
from accelbench.core.visible import in_quotes

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

    Array = np.ndarray[Any, Any]

CONFIG = "preprocessor_config.json"
#: Pillow's numbers of its filters, which such configs hold.
_FILTERS = ("NEAREST", "LANCZOS", "BILINEAR", "BICUBIC", "BOX", "HAMMING")
_BYTE = 1 / 255


@dataclass(frozen=True)
class PictureRecipe:
    """From a decoded picture to pixels.

    Attributes:
        name: what said it.
        mean: taken off what was scaled, one a channel or one for all.
        std: divided by after that.
        scale: of bytes, before that.
        filter: of resizing, by Pillow's name.
        stretched: resized to what the model takes whatever its proportions; else by its shorter
            side, and cut to the middle.
        margin: so many times what the model takes, before the middle is cut out.
        size: height and width that come of it, where the recipe says so.
    """

    name: str
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    scale: float = _BYTE
    filter: str = "BILINEAR"
    stretched: bool = False
    margin: float = 1.0
    size: tuple[int, int] | None = None

    @property
    def note(self) -> str:
        """What is applied, in a sentence."""
        how = "stretched" if self.stretched else "resized by the shorter side, the middle cut out"
        scale = "as bytes" if self.scale == 1.0 else f"times {self.scale:.4g}"
        mean, std = (", ".join(f"{v:g}" for v in values) for values in (self.mean, self.std))
        return (
            f"Pictures as {self.name} says: {how} ({self.filter.lower()}), {scale},"
            f" less {mean}, over {std}."
        )

    def pixels(self, image: Image.Image, height: int, width: int, channels: int) -> Array:
        """Channels first, in float32."""
        import numpy as np
        from PIL import Image as Pillow

        image = image.convert("L" if channels == 1 else "RGB")
        wide, high = image.size
        size = (width, height)
        if not self.stretched:
            scale = self.margin * max(height / high, width / wide)
            size = (max(width, round(wide * scale)), max(height, round(high * scale)))
        if size != image.size:
            image = image.resize(size, Pillow.Resampling[self.filter])
        left, top = (size[0] - width) // 2, (size[1] - height) // 2
        image = image.crop((left, top, left + width, top + height))
        values = np.asarray(image, np.float32).reshape(height, width, channels)
        mean, std = np.asarray(self.mean, np.float32), np.asarray(self.std, np.float32)
        scaled = (values * np.float32(self.scale) - mean) / std
        return np.ascontiguousarray(scaled.transpose(2, 0, 1))


_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
#: Those that have a name of their own.
NAMED = {
    "imagenet": PictureRecipe("imagenet", *_IMAGENET, margin=256 / 224),
    "half": PictureRecipe("half", (0.5,), (0.5,)),
    "unit": PictureRecipe("unit"),
    "bytes": PictureRecipe("bytes", scale=1.0),
}
ADVICE = f"Say it with --preprocessing: {', '.join(NAMED)}, or the path of a {CONFIG}."


def recipe_of(asked: str | None, folders: Sequence[Path]) -> PictureRecipe | None:
    """The recipe that was asked for, or that lies beside a model; None where nothing says it.

    Args:
        asked: a name or a path.
        folders: where one may lie, the first that has one counts.

    Raises:
        CaseError: it is none, or says what is not done here.
    """
    if asked is not None:
        return NAMED.get(asked) or _read(Path(asked))
    for folder in folders:
        path = folder / CONFIG
        if path.is_file():
            return _read(path)
    return None


def _read(path: Path) -> PictureRecipe:
    try:
        config = jsonc.read(path)
        if not isinstance(config, Mapping):
            raise ValueError("it is no object")
        return recipe_in(config)
    except OSError as error:
        raise _refused(path, error.strerror or str(error)) from error
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise _refused(path, str(error)) from error


def _refused(path: Path, why: str) -> CaseError:
    return CaseError(
        "data_mismatch", f"{in_quotes(str(path))} says no way to prepare pictures: {why}.", ADVICE
    )


def recipe_in(config: Mapping[str, Any]) -> PictureRecipe:
    """The recipe of a preprocessor_config.json. Raises ValueError where it has what is unknown."""
    size, crop = _size(config.get("size")), _size(config.get("crop_size"))
    resizes, crops = config.get("do_resize", True), config.get("do_center_crop", crop is not None)
    normalises = config.get("do_normalize", "image_mean" in config)
    scale = float(config.get("rescale_factor", _BYTE)) if config.get("do_rescale", True) else 1.0
    resample = config.get("resample", 2)
    if not resizes:
        raise ValueError("it does not resize, and pictures have sizes of their own")
    if size is None:
        raise ValueError("it has no size of one side or of two")
    given = config["size"]
    # A number alone is of both sides, but where a middle is cut out: then of the shorter one.
    alone = not isinstance(given, Mapping) and not crops and "crop_pct" not in config
    square = alone or (isinstance(given, Mapping) and "height" in given)
    percent = float(config.get("crop_pct") or 1.0)
    end = crop if crops and crop is not None else size
    if not 0 < percent <= 1:
        raise ValueError(f"its crop_pct is {percent}")
    return PictureRecipe(
        CONFIG,
        mean=_values(config["image_mean"]) if normalises else (0.0,),
        std=_values(config["image_std"]) if normalises else (1.0,),
        scale=scale,
        filter=_FILTERS[int(resample)],
        stretched=square and end == size,
        margin=max(size[0] / end[0], 1.0) / percent,
        size=end,
    )


def _size(value: Any) -> tuple[int, int] | None:
    """Height and width; of the shorter side alone that of a square."""
    if isinstance(value, Mapping):
        if "height" in value and "width" in value:
            return int(value["height"]), int(value["width"])
        value = value.get("shortest_edge")
    if value is None:
        return None
    side = int(value)
    if side < 1:
        raise ValueError(f"a side is {side}")
    return side, side


def _values(value: Any) -> tuple[float, ...]:
    values = tuple(float(part) for part in (value if isinstance(value, list) else [value]))
    if len(values) not in (1, 3):
        raise ValueError(f"it has {len(values)} values where there are 3 channels")
    return values
