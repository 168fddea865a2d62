"""Where pictures are in a column or a message, without pillow, and what stands in their place in a record.

A picture that a row holds itself, as an object, bytes or a data URL, is replaced by a reference: ``picture:`` and a key
of its content. One that a row names by its path keeps the path; its key is of the path. No address on another machine
is ever asked for.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeGuard

if TYPE_CHECKING:
    from PIL import Image

MARK = "picture:"  # How a reference begins
MOST_PIXELS = 50_000_000  # Pixels of a picture that is read, at most
MOST_BYTES = 32 << 20  # Bytes of a picture's file, at most
_MOST_DEPTH = 8  # Containers inside one another in which pictures are looked for
_PATH_CHARS = 1024  # Characters of a path, at most
_REFERENCE = re.compile(r"picture:([0-9a-f]{32})")
_SUFFIX = re.compile(r"\.(?:png|jpe?g|gif|webp|bmp)\Z", re.IGNORECASE)
_PATH_SIGN = re.compile(r'\.(?:png|jpe?g|gif|webp|bmp)"', re.IGNORECASE)  # What JSON with a picture's path has in it
_BEGINNINGS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM")
_SLOTS = frozenset(("image", "images", "image_url", "input_image", "path", "picture", "pictures", "url"))
"""Names under which a path stands for a picture."""

Content: TypeAlias = "bytes | Path | Image.Image | str"
"""What a picture is read from: its file's bytes, its path, an object of pillow; or a text why it cannot be."""


class PictureSource(NamedTuple):
    """A picture in a row, to be scaled and stored."""

    key: str  # 32 hexadecimal digits
    content: Content

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        if isinstance(self.content, bytes | str):
            return len(self.content)
        if isinstance(self.content, Path):
            return MOST_BYTES // 8
        return self.content.width * self.content.height * max(1, len(self.content.getbands()))


def may_have_pictures(text: str, *, has_paths: bool) -> bool:
    """Return whether JSON may name a picture: by a data URL or a media type, or where it ``has_paths`` by a path."""
    return "image/" in text.lower() or (has_paths and _PATH_SIGN.search(text) is not None)


def key_in(text: str) -> str | None:
    """Return the key that a reference has; ``None`` for any other text."""
    match = _REFERENCE.fullmatch(text)
    return None if match is None else match[1]


class PictureReference(NamedTuple):
    """What stands for a picture in a recorded value."""

    key: str  # The picture's key
    is_path: bool  # Whether it is a path, which may be of no picture, and not a reference


def picture_references(value: object, *, is_slot: bool = True, depth: int = 0) -> Iterator[PictureReference]:
    """Yield what may stand for pictures in a recorded value; ``is_slot`` says whether a text may be a path."""
    if isinstance(value, str):
        key = key_in(value)
        if key is not None:
            yield PictureReference(key, is_path=False)
        elif is_slot and _is_path(value):
            yield PictureReference(_path_key(value), is_path=True)
    elif depth < _MOST_DEPTH and isinstance(value, Mapping):
        parts = {"bytes": value["bytes"]} if isinstance(value.get("bytes"), str) else value
        for name, part in parts.items():
            yield from picture_references(part, is_slot=name in _SLOTS, depth=depth + 1)
    elif depth < _MOST_DEPTH and isinstance(value, list):
        for part in value:
            yield from picture_references(part, is_slot=is_slot, depth=depth + 1)


class _Slot(NamedTuple):
    """What may stand at a place of a row."""

    is_picture: bool = False  # Whether its name says that it is a picture
    may_be_path: bool = False  # Whether a text there may be a picture's path whatever its name is
    has_paths: bool = False  # Whether the row may name files at all
    depth: int = 0


class PictureFinder:
    """Finds the pictures of a batch and replaces them by references.

    Args:
        stored: Keys whose pictures are stored already; of these nothing is read.
    """

    def __init__(self, stored: AbstractSet[str] = frozenset()) -> None:
        self._stored = stored
        self._keys: dict[int, tuple[object, str]] = {}  # The key of an object, which is held so that its id stays its
        self.sources: dict[str, PictureSource] = {}
        """The pictures that are not known yet, by key."""

    def in_columns(self, columns: Mapping[str, object]) -> dict[str, object]:
        """Return a row's columns with references in place of their pictures; any column may have a path."""
        return {
            name: self._replaced(value, _Slot(is_picture=name in _SLOTS, may_be_path=True, has_paths=True))
            for name, value in columns.items()
        }

    def in_messages(self, messages: Iterable[object], *, has_paths: bool) -> list[object]:
        """Return messages with references in place of their pictures.

        ``has_paths`` says whether a part may name a file; what a model writes may not.
        """
        return [self._replaced(message, _Slot(has_paths=has_paths)) for message in messages]

    def _replaced(self, value: object, slot: _Slot) -> object:
        if isinstance(value, str):
            return self._of_text(value, slot)
        if isinstance(value, bytes | bytearray):
            return self._of_bytes(bytes(value)) if slot.is_picture or is_picture(value) else value
        if is_image(value):
            return self._of_image(value)
        if slot.depth == _MOST_DEPTH:
            return value
        if isinstance(value, list | tuple):
            inner = slot._replace(depth=slot.depth + 1)
            return [self._replaced(part, inner) for part in value]
        if not isinstance(value, Mapping):
            return value
        if isinstance(value.get("bytes"), bytes | bytearray) and set(value) <= {"bytes", "path"}:
            content = bytes(value["bytes"])
            is_shown = slot.is_picture or is_picture(content) or _SUFFIX.search(str(value.get("path")))
            return {**value, "bytes": self._of_bytes(content) if is_shown else content}
        if _is_base64_picture(value):
            return {**value, "data": self._of_base64(str(value["data"]))}
        return {
            name: self._replaced(part, _Slot(name in _SLOTS, False, slot.has_paths, slot.depth + 1))
            for name, part in value.items()
        }

    def _of_text(self, text: str, slot: _Slot) -> str:
        if text[:11].lower() == "data:image/":
            head, _, data = text.partition(",")
            return self._of_base64(data) if head.lower().endswith(";base64") else self._refused(text, "no base64")
        if slot.has_paths and (slot.is_picture or slot.may_be_path) and _is_path(text):
            key = _path_key(text)
            if key not in self._stored and key not in self.sources and (slot.is_picture or Path(text).is_file()):
                self._add(key, Path(text))
        return text

    def _of_base64(self, text: str) -> str:
        if len(text) > MOST_BYTES * 4 // 3 + 4:
            return self._refused(text, _too_large(len(text) * 3 // 4))
        try:
            return self._of_bytes(base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError):
            return self._refused(text, "damaged: its base64 cannot be read")

    def _of_bytes(self, content: bytes) -> str:
        if len(content) > MOST_BYTES:
            return self._refused(f"{len(content)} {content[:4096]!r}", _too_large(len(content)))
        return self._add(_digest(b"bytes", content), content)

    def _refused(self, text: str, reason: str) -> str:
        return self._add(_digest(b"refused", text.encode("utf-8", "surrogatepass")), reason)

    def _of_image(self, image: Image.Image) -> str:
        """Return the reference of an object of pillow, copied: the training may change it, and reads it meanwhile."""
        entry = self._keys.get(id(image))
        if entry is None:
            key, content = _image_content(image, self._stored)
            entry = self._keys[id(image)] = (image, key)
            if content is not None:
                self._add(key, content)
        return MARK + entry[1]

    def _add(self, key: str, content: Content) -> str:
        if key not in self._stored:
            self.sources.setdefault(key, PictureSource(key, content))
        return MARK + key


def _image_content(image: Image.Image, stored: AbstractSet[str]) -> tuple[str, Content | None]:
    """Return the key of an object of pillow and a copy of it, ``None`` where it is known; or why it cannot be read."""
    about = f"{image.mode} {image.width} {image.height}"
    if image.width * image.height > MOST_PIXELS:
        reason = too_many_pixels(image.width, image.height)
        return _digest(b"refused", f"{about} {reason}".encode()), reason
    try:
        image.load()
        key = _digest(b"pixels", about.encode(), bytes(image.getpalette() or ()), image.tobytes())
        return key, None if key in stored else image.copy()
    except Exception as error:  # a file that is opened lazily is read only here
        reason = f"damaged: {type(error).__name__}: {' '.join(str(error).split())[:120]}"
        return _digest(b"refused", f"{about} {reason} {getattr(image, 'filename', '')}".encode()), reason


def is_image(value: object) -> TypeGuard[Image.Image]:
    """Return whether a value is an object of pillow, which is not imported for that.

    The thread that makes records' pictures imports it, so that for a moment it stands there without its class.
    """
    image = getattr(sys.modules.get("PIL.Image"), "Image", None)
    return image is not None and isinstance(value, image)


def is_picture(content: bytes | bytearray) -> bool:
    """Return whether bytes begin as a file of a picture does."""
    head = bytes(content[:12])
    return head.startswith(_BEGINNINGS) or (head[:4] == b"RIFF" and head[8:] == b"WEBP")


def too_many_pixels(width: int, height: int) -> str:
    """Return why a picture of this size is not read."""
    return f"{width:,} by {height:,} pixels; at most {MOST_PIXELS:,} are read"


def _too_large(size: int) -> str:
    return f"{size:,} bytes; at most {MOST_BYTES:,} are read"


def _is_base64_picture(part: Mapping[object, object]) -> bool:
    kind = part.get("media_type", part.get("mime_type", part.get("mimeType")))
    return isinstance(part.get("data"), str) and isinstance(kind, str) and kind.lower().startswith("image/")


def _path_key(path: str) -> str:
    return _digest(b"path", path.encode("utf-8", "surrogatepass"))


def _is_path(text: str) -> bool:
    return (
        len(text) <= _PATH_CHARS
        and _SUFFIX.search(text) is not None
        and "://" not in text
        and "\n" not in text
        and "\x00" not in text
        and not text.startswith("data:")
    )


def _digest(kind: bytes, *parts: bytes) -> str:
    digest = hashlib.sha256(kind + b"\x00")  # processors have instructions for it: half the time of blake2b
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:32]
