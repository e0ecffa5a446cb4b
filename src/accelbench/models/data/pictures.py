"""Preprocessing of pictures for vision models: pictures, frames of a video, tiles."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core import jsonc
from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.core.model import ModelSpec
from accelbench.core.safe_text import in_quotes
from accelbench.models.data.captions import Captions, Fed
from accelbench.models.data.folder import Entry, Folder, classes_of
from accelbench.models.data.rows import Saw, UnreadableError, contents, label_of, need, number

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

    Array = np.ndarray[Any, Any]


_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
_HALF = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


_BYTE = 1 / 255


@dataclass(frozen=True)
class PictureRecipe:
    """From a decoded picture to pixels."""

    name: str  # what states it
    mean: tuple[float, ...] = (0.0,)  # subtracted after scaling, one per channel or one for all
    std: tuple[float, ...] = (1.0,)  # divided by after that
    scale: float = _BYTE  # of bytes, first
    filter: str = "BILINEAR"  # of resizing, by Pillow's name
    stretched: bool = False  # to the model's size; else by the shorter side, the middle cut out
    margin: float = 1.0  # times the model's size, before the middle is cut out
    size: tuple[int, int] | None = None  # height and width of the result, if stated

    @property
    def note(self) -> str:
        how = "stretched" if self.stretched else "resized by the shorter side, the middle cut out"
        scale = "as bytes" if self.scale == 1.0 else f"times {self.scale:.4g}"
        mean, std = (", ".join(f"{v:g}" for v in values) for values in (self.mean, self.std))
        return (
            f"Pictures as {self.name} says: {how} ({self.filter.lower()}), {scale},"
            f" less {mean}, over {std}."
        )

    def pixels(self, image: Image.Image, height: int, width: int, channels: int) -> Array:
        import numpy as np

        image = fit_picture(image.convert("L" if channels == 1 else "RGB"), height, width, self)
        values = np.asarray(image, np.float32).reshape(height, width, channels)
        mean, std = np.asarray(self.mean, np.float32), np.asarray(self.std, np.float32)
        scaled = (values * np.float32(self.scale) - mean) / std
        return np.ascontiguousarray(scaled.transpose(2, 0, 1))


#: What is published for most models is said with this filter.
_published = partial(PictureRecipe, "its publishers", filter="BICUBIC")
#: By the beginning of the class that a builder names. Mean, deviation and filter are those of the
#: checkpoints' published preprocessor configs. Where those squash a picture to a square (ViT) or
#: scale it to the side without a square (DETR), the middle is cut out here, as a case has one size.
_PUBLISHED: Mapping[str, PictureRecipe] = {
    "ResNet": _published(*_IMAGENET, margin=256 / 224),
    "ViT": _published(*_HALF, margin=256 / 224, filter="BILINEAR"),
    "VisionEncoderDecoder": _published(*_HALF, filter="BILINEAR"),  # vit-gpt2
    "Detr": _published(*_IMAGENET, filter="BILINEAR"),
    "CLIP": _published(*_CLIP),
    "XCLIP": _published(*_IMAGENET, filter="BILINEAR"),
    "Llava": _published(*_CLIP),  # LLaVA-NeXT too: both see through CLIP
}
#: ImageNet's, for a model without a published one.
_USUAL = _published(*_IMAGENET, margin=256 / 224)


def preprocessing(spec: ModelSpec) -> PictureRecipe | None:
    """Return what is published for a model, or None."""
    name = spec.builder.rpartition(":")[2].replace("_", "").lower()
    for prefix, recipe in _PUBLISHED.items():
        if name.startswith(prefix.lower()):
            return recipe
    return None


#: What is decoded. Of the other formats that Pillow knows some are handed to programs, as EPS is to
#: Ghostscript, which runs the code in it.
_DECODED = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")


def decode(data: bytes) -> Image.Image:
    """Return a picture in RGB, upright; raise UnreadableError if it is broken or not a picture."""
    image_module = need("PIL.Image", "pillow", "data", "Reading images")
    from PIL import ImageOps, UnidentifiedImageError

    try:
        image = image_module.open(BytesIO(data), formats=_DECODED)
        image.load()
        image = ImageOps.exif_transpose(image)
        if image.mode.startswith("I"):  # 16 bits: Pillow's own conversion would clip them to white
            image = _to_8_bit(image)
        if image.mode == "P":
            image = image.convert("RGBA")  # a palette's transparency is lost without a warning
        rgb: Image.Image = image.convert("RGB")
    except UnidentifiedImageError as error:
        raise UnreadableError("it is no picture") from error
    except Exception as error:  # a decoder of foreign bytes raises whatever it likes
        raise UnreadableError(str(error).partition("\n")[0] or type(error).__name__) from error
    return rgb


def _to_8_bit(image: Image.Image) -> Image.Image:
    import numpy as np
    from PIL import Image

    return Image.fromarray((np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))


def fit_picture(image: Image.Image, height: int, width: int, how: PictureRecipe) -> Image.Image:
    """Resize a picture, by its shorter side unless it is stretched, and cut out the middle."""
    from PIL import Image

    wide, high = image.size
    size = (width, height)
    if not how.stretched:
        scale = how.margin * max(height / high, width / wide)
        size = (max(width, round(wide * scale)), max(height, round(high * scale)))
    if size != image.size:
        image = image.resize(size, Image.Resampling[how.filter])
    left, top = (size[0] - width) // 2, (size[1] - height) // 2
    return image.crop((left, top, left + width, top + height))


def normalise_pixels(image: Image.Image, how: PictureRecipe) -> Array:
    """Return pixels in float32, channels first."""
    import numpy as np

    pixels = np.asarray(image, np.float32) / np.float32(255)
    values = (pixels - np.asarray(how.mean, np.float32)) / np.asarray(how.std, np.float32)
    return np.ascontiguousarray(values.transpose(2, 0, 1))


def best_grid(size: tuple[int, int], grids: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Return the height and width of the grid that LLaVA-NeXT lays a picture on.

    It is the grid that keeps most of the picture, and of those the one that wastes least.
    """

    def worth(grid: Sequence[int]) -> tuple[int, int]:
        scale = min(grid[0] / size[0], grid[1] / size[1])
        kept = min(int(size[0] * scale) * int(size[1] * scale), size[0] * size[1])
        return kept, kept - grid[0] * grid[1]

    best = max(grids, key=worth)
    return best[0], best[1]


def tile_picture(
    image: Image.Image, size: tuple[int, int], grid: tuple[int, int], tile: int, how: PictureRecipe
) -> list[Array]:
    """Return LLaVA-NeXT's view of a picture: the whole as one tile, then tile by tile.

    It is scaled into the grid, in the middle of black, which is cut into tiles.
    """
    from PIL import Image

    whole = fit_picture(image, *size, how)
    scale = min(grid[0] / size[0], grid[1] / size[1])
    high, wide = round(size[0] * scale), round(size[1] * scale)
    canvas = Image.new("RGB", (grid[1], grid[0]))
    inner = whole.resize((wide, high), Image.Resampling[how.filter])
    canvas.paste(inner, ((grid[1] - wide) // 2, (grid[0] - high) // 2))
    tiles = [
        canvas.crop((left, top, left + tile, top + tile))
        for top in range(0, grid[0], tile)
        for left in range(0, grid[1], tile)
    ]
    small = whole.resize((tile, tile), Image.Resampling[how.filter])
    return [normalise_pixels(part, how) for part in (small, *tiles)]


@dataclass(frozen=True)
class _View:
    height: int
    width: int
    frames: int | None = None  # of a video
    whole: tuple[int, int] | None = None  # height and width of a picture that is seen in tiles
    grid: tuple[int, int] = (0, 0)  # what it is laid on


class PictureReader:
    """One item is one picture, or `frames` of them in a row from one folder."""

    def __init__(
        self, folder: Folder, spec: ModelSpec, fed: Fed, captions: Captions | None
    ) -> None:
        self.notes: list[str] = []
        self.classes = classes_of(folder.images)
        self._folder = folder
        self._view = _view(spec, fed)
        self._how = preprocessing(spec) or _USUAL
        if preprocessing(spec) is None:
            self.notes.append(f"Nothing is published for {spec.id}: normalised as for ImageNet.")
        self._items = _items(folder.images, self._view.frames, self.notes)
        self.count = len(self._items)
        self._captions = captions
        labels = fed.get("labels")
        self._labels: dict[str, int] = {}
        if labels is not None and len(labels[1]) == 1:
            self._labels = label_of(labels[0], self.classes, "images", self.notes)
        self.gives = frozenset(
            {"pixel_values"}
            | (set(self._captions.gives) if self._captions else set())
            | ({"labels"} if self._labels else set())
        )
        self.facts: Mapping[str, Any] = {
            "kind": "images",
            "files": len(folder.images),
            "classes": len(self.classes),
            "mean": list(self._how.mean),
            "std": list(self._how.std),
        }

    def name(self, index: int) -> str:
        return self._items[index][0].name

    def read(self, index: int, saw: Saw) -> dict[str, Array]:
        entries = self._items[index]
        decoded = []
        for entry in entries:
            data = contents(entry.path)
            decoded.append(decode(data))
            saw(data)
        row = {"pixel_values": self._pixels(decoded)}
        label = entries[0].label
        if self._captions is not None:
            row |= self._captions.rows(f"a photo of a {self._folder.title(label)}")
        if self._labels:
            row["labels"] = number(self._labels[label])
        return row

    def _pixels(self, decoded: Sequence[Any]) -> Array:
        import numpy as np

        view, how = self._view, self._how
        if view.whole is not None:
            return np.stack(tile_picture(decoded[0], view.whole, view.grid, view.height, how))
        made = [
            normalise_pixels(fit_picture(image, view.height, view.width, how), how)
            for image in decoded
        ]
        return made[0] if view.frames is None else np.stack(made)


def _view(spec: ModelSpec, fed: Fed) -> _View:
    shape = fed["pixel_values"][1]
    *lead, channels, height, width = shape[1:]
    sizes = fed["image_sizes"][0].row if "image_sizes" in fed else None
    if channels == 3 and not lead:
        return _View(height, width)
    if channels == 3 and len(lead) == 1:
        if sizes is None:
            return _View(height, width, frames=lead[0])
        size = (int(sizes[0]), int(sizes[1]))
        grid = best_grid(size, spec.config.get("image_grid_pinpoints") or [size])
        if height == width and lead[0] == 1 + (grid[0] // height) * (grid[1] // width):
            return _View(height, width, whole=size, grid=grid)
    raise UnsupportedError(
        "no_real_inputs",
        f"{spec.id} takes pixels of shape {tuple(shape[1:])}, which no recipe makes of pictures.",
        "Leave out --data.",
    )


def _natural_key(name: str) -> list[tuple[int, str]]:
    """Return a sorting key by which frame 10 comes after frame 9."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _items(
    entries: Sequence[Entry], frames: int | None, notes: list[str]
) -> list[tuple[Entry, ...]]:
    if frames is None:
        return [(entry,) for entry in entries]
    items: list[tuple[Entry, ...]] = []
    by_folder = sorted(entries, key=lambda e: (e.folder, _natural_key(e.name)))
    for _, group in itertools.groupby(by_folder, key=lambda e: e.folder):
        members = list(group)
        if len(members) < frames:
            spread = [members[i * len(members) // frames] for i in range(frames)]
            items.append(tuple(spread))
        else:
            starts = range(0, len(members) - frames + 1, frames)
            items += [tuple(members[start : start + frames]) for start in starts]
    short = sum(len(set(item)) < frames for item in items)
    if short:
        notes.append(f"{short} of {len(items)} videos have fewer than {frames} frames: some twice.")
    return items


CONFIG = "preprocessor_config.json"
#: Pillow's numbers of its filters, which such configs hold.
_FILTERS = ("NEAREST", "LANCZOS", "BILINEAR", "BICUBIC", "BOX", "HAMMING")


#: Those that have a name of their own.
NAMED = {
    "imagenet": PictureRecipe("imagenet", *_IMAGENET, margin=256 / 224),
    "half": PictureRecipe("half", (0.5,), (0.5,)),
    "unit": PictureRecipe("unit"),
    "bytes": PictureRecipe("bytes", scale=1.0),
}
ADVICE = f"Say it with --preprocessing: {', '.join(NAMED)}, or the path of a {CONFIG}."


def recipe_of(asked: str | None, folders: Sequence[Path]) -> PictureRecipe | None:
    """Return the recipe that was asked for by name or path, or the first one of the folders."""
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
        raise _data_error(path, error.strerror or str(error)) from error
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise _data_error(path, str(error)) from error


def _data_error(path: Path, why: str) -> CaseError:
    return CaseError(
        "data_mismatch", f"{in_quotes(str(path))} says no way to prepare pictures: {why}.", ADVICE
    )


def recipe_in(config: Mapping[str, Any]) -> PictureRecipe:
    """Return the recipe of a preprocessor_config.json; raise ValueError if it is not supported."""
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
