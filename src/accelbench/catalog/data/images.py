"""Pictures as a vision model takes them: decoded, turned upright, resized, cropped, normalised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from accelbench.catalog.data.rows import UnreadableError, need
from accelbench.core.model import ModelSpec

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

    Array = np.ndarray[Any, Any]

_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
_HALF = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


@dataclass(frozen=True)
class Preprocessing:
    """How a model's publishers prepare a picture.

    The shorter side is resized to `margin` times what the model takes, and the
    middle cut out; pixels from 0 to 1 then lose `mean` and are divided by `std`.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    margin: float = 1.0
    filter: str = "BICUBIC"


#: By the beginning of the class that a builder names. Mean, deviation and filter are those of the
#: checkpoints' published preprocessor configs. Where those squash a picture to a square (ViT) or
#: scale it to the side without a square (DETR), the middle is cut out here, as a case has one size.
_PUBLISHED: Mapping[str, Preprocessing] = {
    "ResNet": Preprocessing(*_IMAGENET, margin=256 / 224),
    "ViT": Preprocessing(*_HALF, margin=256 / 224, filter="BILINEAR"),
    "VisionEncoderDecoder": Preprocessing(*_HALF, filter="BILINEAR"),  # vit-gpt2
    "Detr": Preprocessing(*_IMAGENET, filter="BILINEAR"),
    "CLIP": Preprocessing(*_CLIP),
    "XCLIP": Preprocessing(*_IMAGENET, filter="BILINEAR"),
    "Llava": Preprocessing(*_CLIP),  # LLaVA-NeXT too: both see through CLIP
}
_USUAL = Preprocessing(*_IMAGENET, margin=256 / 224)


def preprocessing(spec: ModelSpec) -> Preprocessing | None:
    """What is published for a model; None where nothing is."""
    name = spec.builder.rpartition(":")[2].replace("_", "").lower()
    for prefix, recipe in _PUBLISHED.items():
        if name.startswith(prefix.lower()):
            return recipe
    return None


def usual_preprocessing() -> Preprocessing:
    """ImageNet's, for a model of which nothing is published."""
    return _USUAL


#: What is decoded. Of the other formats that Pillow knows some are handed to programs, as EPS is to
#: Ghostscript, which runs the code in it.
_DECODED = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")


def decode(data: bytes) -> Image.Image:
    """A picture in RGB, upright.

    Raises:
        UnreadableError: it is no picture, or broken.
    """
    image_module = need("PIL.Image", "pillow", "data", "Reading images")
    from PIL import ImageOps, UnidentifiedImageError

    try:
        image = image_module.open(BytesIO(data), formats=_DECODED)
        image.load()
        image = ImageOps.exif_transpose(image)
        if image.mode.startswith("I"):  # 16 bits: Pillow's own conversion would clip them to white
            image = _narrowed(image)
        if image.mode == "P":
            image = image.convert("RGBA")  # a palette's transparency is lost without a warning
        rgb: Image.Image = image.convert("RGB")
    except UnidentifiedImageError as error:
        raise UnreadableError("it is no picture") from error
    except Exception as error:  # a decoder of foreign bytes raises whatever it likes
        raise UnreadableError(str(error).partition("\n")[0] or type(error).__name__) from error
    return rgb


def _narrowed(image: Image.Image) -> Image.Image:
    import numpy as np
    from PIL import Image

    return Image.fromarray((np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))


def fitted(image: Image.Image, height: int, width: int, how: Preprocessing) -> Image.Image:
    """Resized by its shorter side and cut to the middle, in the proportions of the target."""
    from PIL import Image

    wide, high = image.size
    scale = how.margin * max(height / high, width / wide)
    size = (max(width, round(wide * scale)), max(height, round(high * scale)))
    if size != image.size:
        image = image.resize(size, Image.Resampling[how.filter])
    left, top = (size[0] - width) // 2, (size[1] - height) // 2
    return image.crop((left, top, left + width, top + height))


def normalised(image: Image.Image, how: Preprocessing) -> Array:
    """Channels first, in float32."""
    import numpy as np

    pixels = np.asarray(image, np.float32) / np.float32(255)
    values = (pixels - np.asarray(how.mean, np.float32)) / np.asarray(how.std, np.float32)
    return np.ascontiguousarray(values.transpose(2, 0, 1))


def best_grid(size: tuple[int, int], grids: Sequence[Sequence[int]]) -> tuple[int, int]:
    """The height and width that LLaVA-NeXT lays a picture on.

    Of its grids the one that keeps most of the picture, and of those the one
    that wastes least.
    """

    def worth(grid: Sequence[int]) -> tuple[int, int]:
        scale = min(grid[0] / size[0], grid[1] / size[1])
        kept = min(int(size[0] * scale) * int(size[1] * scale), size[0] * size[1])
        return kept, kept - grid[0] * grid[1]

    best = max(grids, key=worth)
    return best[0], best[1]


def tiled(
    image: Image.Image, size: tuple[int, int], grid: tuple[int, int], tile: int, how: Preprocessing
) -> list[Array]:
    """LLaVA-NeXT's view of a picture of a size: the whole as one tile, and tile by tile.

    It is scaled into the grid, in the middle of black, which is cut into tiles.
    """
    from PIL import Image

    whole = fitted(image, *size, how)
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
    return [normalised(part, how) for part in (small, *tiles)]
