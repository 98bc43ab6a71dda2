"""Pictures: upright, RGB, on white, in the size that is wanted."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from isogloss.media.api import MediaError
from isogloss.media.decoding.protocol import Bounds, PictureFacts, PictureWish

# Our own bound is looked at before any pixel is decoded; Pillow's would only warn.
Image.MAX_IMAGE_PIXELS = None

_ORIENTATION = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_LYING = range(5, 9)
"""Orientations that swap height and width."""


class Picture:
    """A picture whose header has been read. Of several in a file, it is the first."""

    def __init__(self, file: BinaryIO, format_: str, bounds: Bounds) -> None:
        self._image = Image.open(file, formats=[format_.upper()])
        if self._image.width * self._image.height > bounds.pixels:
            raise MediaError("too_many_pixels")
        self._orientation = _orientation(self._image)

    @property
    def facts(self) -> PictureFacts:
        """Its size."""
        width, height = self._image.size
        return PictureFacts(width, height) if self._orientation in _LYING else PictureFacts(height, width)

    def take(self, wish: PictureWish) -> NDArray[np.uint8]:
        """Its pixels, shape (height, width, 3)."""
        image = rgb(self._image)
        if self._orientation in _TURNS:
            image = image.transpose(_TURNS[self._orientation])
        return resized(image, wish.height, wish.width)


def rgb(image: Image.Image) -> Image.Image:
    """A picture of any mode in RGB; what shines through becomes white."""
    if image.has_transparency_data:
        with_alpha = image.convert("RGBA")
        white = Image.new("RGB", image.size, "white")
        white.paste(with_alpha, mask=with_alpha)
        return white
    if image.mode.startswith("I"):  # sixteen bits of grey, which `convert` would cut off instead of scaling
        image = Image.fromarray((np.asarray(image) >> 8).clip(0, 255).astype(np.uint8))
    return image.convert("RGB")


def resized(image: Image.Image, height: int, width: int) -> NDArray[np.uint8]:
    """Pixels of a picture in another size, shape (height, width, 3)."""
    if image.size != (width, height):
        image = image.resize((width, height), Image.Resampling.BICUBIC)
    return np.ascontiguousarray(image, dtype=np.uint8)


def _orientation(image: Image.Image) -> int:
    if image.format == "PNG":  # whose EXIF block may lie behind the pixels; what is wrong with these is not forgiven
        image.load()
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # Pillow raises whatever a broken EXIF block leads to, and the picture may be good all the same
        return 1
