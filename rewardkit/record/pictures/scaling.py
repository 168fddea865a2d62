"""Pictures made ready for a record by pillow: read within bounds, scaled, and written anew as PNG or JPEG.

Covered: nothing of the original's bytes is stored, so that a file which is also a script or a page is only a picture
afterwards, and neither place nor owner of a photograph stays in it; formats that are programs or draw from elsewhere,
such as SVG and EPS, are not read; more pixels or bytes than the limits are refused before they are unpacked.

Not covered: a fault in pillow's own code, which reads the file in the process that records.
"""

from __future__ import annotations

import io
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rewardkit.record.pictures.sources import MOST_BYTES, MOST_PIXELS, Content, is_picture, too_many_pixels

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")  # Formats of files that are read
KINDS = {"PNG": b"\x89PNG\r\n\x1a\n", "JPEG": b"\xff\xd8\xff"}  # Formats that are stored, and how each begins
_FEW_COLOURS = 256  # With as many colours at most a picture is drawn and no photograph
_QUALITY = 85
MISSING = "pillow is not installed (pip install pillow)"


class Picture(NamedTuple):
    """A picture as it is stored."""

    kind: str  # ``"PNG"`` or ``"JPEG"``
    width: int  # In pixels
    height: int
    body: bytes  # Its file

    @property
    def media_type(self) -> str:
        """``"image/png"`` or ``"image/jpeg"``."""
        return f"image/{self.kind.lower()}"


class ScaledPicture(NamedTuple):
    """What became of a picture: it as it is stored, or the reason why it is not."""

    picture: Picture | None
    reason: str | None = None
    width: int | None = None  # Of the original, in pixels, where it is known
    height: int | None = None


def scale(content: Content, side: int) -> ScaledPicture:
    """Return a picture, its longer side at most ``side`` pixels; whatever is wrong with it becomes the reason."""
    if isinstance(content, str):
        return ScaledPicture(None, content)
    try:
        from PIL import Image, ImageOps
    except ImportError:
        return ScaledPicture(None, MISSING)
    try:
        image = (
            Image.open(io.BytesIO(_file_bytes(content)), formats=FORMATS)
            if isinstance(content, bytes | Path)
            else content
        )
        width, height = image.size
        if width * height > MOST_PIXELS:
            return ScaledPicture(None, too_many_pixels(width, height), width, height)
        if image.format == "JPEG":  # pillow's own, which a picture that was made otherwise is not
            image.draft("RGB", (side, side))  # a large photograph is read at a fraction of its size
        plain = ImageOps.exif_transpose(_in_plain_mode(image))
        plain.thumbnail((side, side), reducing_gap=2.0)
        return ScaledPicture(_written(plain), None, width, height)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        return ScaledPicture(None, f"too many pixels; at most {MOST_PIXELS:,} are read")
    except Exception as error:  # pillow raises anything for a damaged file
        return ScaledPicture(None, _reason(content, error))


def _file_bytes(content: bytes | Path) -> bytes:
    """Return the bytes of a picture's file; ValueError where the path names no file or a larger one."""
    if isinstance(content, bytes):
        return content
    state = content.stat()
    if not stat.S_ISREG(state.st_mode):
        raise ValueError("no file")
    if state.st_size > MOST_BYTES:
        raise ValueError(f"{state.st_size:,} bytes; at most {MOST_BYTES:,} are read")
    with content.open("rb") as file:
        return file.read(MOST_BYTES)


def _in_plain_mode(image: Image.Image) -> Image.Image:
    """Return the first frame in a mode that is scaled and written without loss: ``L``, ``RGB`` or ``RGBA``."""
    image.seek(0)
    image.load()
    if image.mode.startswith("I;16") or image.mode in ("I", "F"):
        low, high = image.getextrema()
        span = float(high) - float(low) or 1.0  # type: ignore[arg-type]
        return image.convert("F").point(lambda value: (value - float(low)) * (255 / span)).convert("L")  # type: ignore[arg-type]
    if image.mode in ("L", "RGB", "RGBA"):
        return image
    has_alpha = image.mode in ("LA", "PA", "La", "RGBa") or "transparency" in image.info
    return image.convert("RGBA" if has_alpha else "L" if image.mode == "1" else "RGB")


def _written(image: Image.Image) -> Picture:
    """Return a picture as a file without anything beside its pixels: a drawing as PNG, a photograph as JPEG."""
    is_drawing = image.mode == "RGBA" or image.getcolors(_FEW_COLOURS) is not None
    kind = "PNG" if is_drawing else "JPEG"
    image.info = {}
    file = io.BytesIO()
    image.save(file, kind, **({"compress_level": 6} if is_drawing else {"quality": _QUALITY}))
    return Picture(kind, image.width, image.height, file.getvalue())


def _reason(content: Content, error: Exception) -> str:
    if isinstance(content, Path):
        if isinstance(error, FileNotFoundError):
            return "there is no such file"
        if isinstance(error, PermissionError):
            return "its file may not be read"
    if isinstance(content, bytes) and not content:
        return "damaged: empty"
    if isinstance(content, bytes) and not is_picture(content):
        return f"no picture that can be shown: expected {', '.join(FORMATS)}"
    message = " ".join(str(error).split())
    if "BytesIO" in message or not message:
        message = "its file cannot be read"
    return f"damaged: {message[:120]}"
