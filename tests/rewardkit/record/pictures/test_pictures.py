"""Pictures of rows in a record: scaled, each once, hostile ones refused with a reason, and no score the worse."""

from __future__ import annotations

import base64
import io
import os
import struct
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from databases import STORES, place_on

from rewardkit.record.batch_rows import rows_of
from rewardkit.record.pictures.keeping import PictureKeeper
from rewardkit.record.pictures.scaling import MISSING, scale
from rewardkit.record.pictures.sources import MOST_PIXELS, picture_references
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status, Text

Image = pytest.importorskip("PIL.Image")

SCRIPT = b"<script>window.hit = 1</script>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="window.hit = 1"><script>window.hit = 2</script></svg>'


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """The place of a run on each store."""
    return place_on(request.param, request, tmp_path)


def photograph(width: int = 640, height: int = 480) -> Any:
    """Return a picture of many colours."""
    return Image.merge("RGB", [Image.effect_noise((width, height), 60 + band) for band in range(3)])


def drawing(width: int = 64, height: int = 48, colour: str = "red") -> Any:
    return Image.new("RGB", (width, height), colour)


def as_file(image: Any, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def data_url(content: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def huge_png(side: int = 10_000) -> bytes:
    """Return a small file that unpacks to 100 megapixels."""
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"\x00" * (side + 1) * side, 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def batch(rows: list[Mapping[str, Any]], prompt: Text = "What is it?") -> ScoreBatch:
    rollouts = [Rollout(prompt, f"answer {number}", row) for number, row in enumerate(rows)]
    outcomes = [Outcome(Status.SCORED, float(number), version="0" * 12) for number in range(len(rows))]
    return ScoreBatch(rollouts, {"right": outcomes}, {"right": 1.0})


def recorded(place: Any, *batches: ScoreBatch, **options: Any) -> RunReader:
    with Recorder(place, **options) as recorder:
        for step, scored in enumerate(batches):
            recorder.record(scored, step=step)
    assert recorder.lost == 0
    return RunReader(place)


def abouts(reader: RunReader) -> list[Any]:
    """Return what the record has of the pictures in each prompt's columns, a list a prompt."""
    prompts = list(reader.prompts())
    return [
        list(reader.pictures(reference.key for reference in picture_references(dict(prompt.columns))).values())
        for prompt in prompts
    ]


FORMS: Mapping[str, Callable[[bytes, Path], object]] = {
    "object": lambda content, folder: Image.open(io.BytesIO(content)),
    "bytes": lambda content, folder: content,
    "bytearray": lambda content, folder: bytearray(content),
    "datasets": lambda content, folder: {"bytes": content, "path": "cat.png"},
    "datasets, a path": lambda content, folder: {"bytes": None, "path": str(folder / "cat.png")},
    "path": lambda content, folder: str(folder / "cat.png"),
    "data URL": lambda content, folder: data_url(content),
    "list": lambda content, folder: [content],
    "messages": lambda content, folder: [{"role": "user", "content": [{"type": "image", "image": content}]}],
}


@pytest.mark.parametrize("form", FORMS)
def test_a_picture_is_kept_in_each_form_of_a_column(form: str, place: Any, tmp_path: Path) -> None:
    """It is scaled to the side that was asked for, and its own size is noted."""
    content = as_file(photograph())
    (tmp_path / "cat.png").write_bytes(content)
    with recorded(place, batch([{"image": FORMS[form](content, tmp_path)}]), picture_side=320) as reader:
        ((about,),) = abouts(reader)
        assert (None, 320, 240, 640, 480) == about[1:6]
        picture = reader.picture(about.key)
        assert picture is not None
        assert (320, 240) == Image.open(io.BytesIO(picture.body)).size
        (stored,) = reader._tuples("SELECT count(*) FROM picture")[0]
        assert 1 == stored


PARTS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "image": lambda url: {"type": "image", "image": url},
    "image_url": lambda url: {"type": "image_url", "image_url": {"url": url}},
    "input_image": lambda url: {"type": "input_image", "image_url": url},
    "source": lambda url: {
        "type": "image", "source": {"type": "base64", "media_type": "image/png", "data": url.partition(",")[2]}
    },
    "inline_data": lambda url: {"inline_data": {"mime_type": "image/png", "data": url.partition(",")[2]}},
}  # fmt: skip


@pytest.mark.parametrize("form", PARTS)
def test_a_picture_is_kept_in_each_form_of_a_message(form: str, tmp_path: Path) -> None:
    """Neither prompt nor completion keeps the bytes; both name the one stored picture."""
    part = PARTS[form](data_url(as_file(photograph())))
    messages = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, part]}]
    scored = batch([{}], messages)
    scored.rollouts[0] = Rollout(messages, [{"role": "assistant", "content": [part]}], {})  # type: ignore[index]
    with recorded(tmp_path / "one", scored) as reader:
        (row,) = reader.by_id([1])
        assert row.completion is not None
        assert "base64," not in str(row.prompt) + str(row.completion)
        keys = {reference.key for reference in picture_references(row.prompt)}
        assert keys == {reference.key for reference in picture_references(row.completion)}
        assert reader.picture(*keys) is not None


def test_a_picture_of_many_completions_lies_there_once(place: Any) -> None:
    """The same content is one picture, in whatever objects and however often it comes."""
    content = as_file(photograph())
    rows = [{"image": Image.open(io.BytesIO(content)), "n": 1} for _ in range(64)]
    with recorded(place, batch(rows), batch([{"image": content, "n": 2}])) as reader:
        assert [(1,)] == reader._tuples("SELECT count(*) FROM picture")
        assert 2 == reader.prompt_count


HOSTILE: Mapping[str, tuple[object, str]] = {
    "half-written": (as_file(drawing(600, 600, "blue"))[:60], "damaged"),
    "half of a photograph": (as_file(photograph())[:40_000], "damaged"),
    "damaged base64": ("data:image/png;base64,@@@@", "damaged: its base64 cannot be read"),
    "svg": ({"bytes": SVG, "path": "x.svg.png"}, "no picture that can be shown"),
    "svg URL": ("data:image/svg+xml;utf8,<svg onload='window.hit = 1'/>", "no base64"),
    "html": ({"bytes": SCRIPT, "path": "x.png"}, "no picture that can be shown"),
    "empty": ({"bytes": b"", "path": "x.png"}, "damaged: empty"),
    "no file": ({"bytes": None, "path": "/nowhere/x.png"}, "there is no such file"),
    "magic alone": (b"\x89PNG\r\n\x1a\n", "damaged"),
    "100 megapixels": (huge_png(), "pixels"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_picture_that_cannot_be_read_is_a_line_and_costs_nothing(
    name: str, place: Any, recwarn: pytest.WarningsRecorder
) -> None:
    """The scores are all there, and the record says why the picture is not."""
    value, reason = HOSTILE[name]
    with recorded(place, batch([{"image": value}, {"image": value}])) as reader:
        assert [0.0, 1.0] == [row.total for row in reader.completions()]
        ((about,),) = abouts(reader)
        assert reason in about.reason
        assert "\n" not in about.reason
        assert reader.picture(about.key) is None


def test_an_object_that_is_read_lazily_is_a_line_where_its_file_is_damaged(tmp_path: Path) -> None:
    """pillow opens the file's head alone, and raises where somebody wants its pixels."""
    lazy = [Image.open(io.BytesIO(as_file(photograph())[:40_000])), Image.new("1", (10_000, MOST_PIXELS // 9_000))]
    with recorded(tmp_path / "one", batch([{"image": image} for image in lazy])) as reader:
        damaged, large = abouts(reader)
        assert "damaged" in damaged[0].reason
        assert "pixels" in large[0].reason


POLYGLOTS = {
    "GIF": lambda: as_file(drawing(), "GIF") + b"/*" + SCRIPT + b"*/=1;alert(1)",
    "PNG": lambda: as_file(drawing()) + SCRIPT,
    "JPEG": lambda: as_file(drawing(), "JPEG", comment=SCRIPT),
    "BMP": lambda: as_file(drawing(), "BMP") + SCRIPT,
}


@pytest.mark.parametrize("kind", POLYGLOTS)
def test_a_polyglot_is_written_anew(kind: str, tmp_path: Path) -> None:
    """Nothing of the file is stored but the picture."""
    with recorded(tmp_path / "one", batch([{"image": POLYGLOTS[kind]()}])) as reader:
        ((about,),) = abouts(reader)
        picture = reader.picture(about.key)
        assert picture is not None
        assert picture.kind in ("PNG", "JPEG")
        assert b"script" not in picture.body


def test_place_and_owner_of_a_photograph_are_not_kept() -> None:
    """Its turn is applied, and the rest of its notes is gone."""
    notes = Image.Exif()
    notes[0x0112], notes[0x013B] = 6, "Somebody"  # turned by 90 degrees; the artist
    scaled = scale(as_file(photograph(), "JPEG", exif=notes.tobytes()), 640).picture
    assert scaled is not None
    assert (480, 640) == (scaled.width, scaled.height)
    assert b"Somebody" not in scaled.body


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "I;16", "I", "F", "HSV"])
def test_each_mode_of_a_picture_is_written(mode: str) -> None:
    image = Image.new(mode, (30, 20)) if mode != "P" else drawing(30, 20).convert("P")
    picture = scale(image, 10).picture
    assert picture is not None
    assert (10, 7) == (picture.width, picture.height)


def test_pixels_of_sixteen_bits_keep_their_differences() -> None:
    image = Image.new("I;16", (2, 1))
    image.putpixel((0, 0), 1000)
    image.putpixel((1, 0), 60_000)
    picture = scale(image, 10).picture
    assert picture is not None
    assert [0, 255] == list(Image.open(io.BytesIO(picture.body)).tobytes())


def test_without_pillow_the_record_says_why_a_picture_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else of the row is the worse."""
    content = as_file(drawing())
    monkeypatch.setitem(sys.modules, "PIL", None)
    with recorded(tmp_path / "one", batch([{"image": content}])) as reader:
        ((about,),) = abouts(reader)
        assert about.reason == MISSING
        assert 1 == reader.count()


@pytest.mark.parametrize(
    ("options", "reason"), [({"picture_side": 0}, "picture_side=0"), ({"picture_bytes": 1}, "picture_bytes")]
)
def test_the_limits_of_a_recorder_are_said(options: dict[str, int], reason: str, tmp_path: Path) -> None:
    """What is over a limit is left out with its name."""
    rows = [batch([{"image": as_file(drawing(colour=colour))}]) for colour in ("red", "blue")]
    with Recorder(tmp_path / "one", **options) as recorder:
        for scored in rows:
            recorder.record(scored)
            recorder.flush()
    with RunReader(tmp_path / "one") as reader:
        assert reason in abouts(reader)[-1][0].reason


def test_pictures_that_come_too_fast_are_left_out_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits is bounded; a picture that comes again has another chance."""
    from rewardkit.record.pictures import keeping
    from rewardkit.record.pictures.sources import PictureSource

    jobs: list[Any] = []
    keeper = PictureKeeper(64, 10**9, lambda job, size: jobs.append(job.keywords))
    monkeypatch.setattr(keeping, "WAITING_BYTES", 10)
    content = as_file(photograph())
    keeper.take([PictureSource("a", content)])
    assert keeper.wait(30)
    keeper.take([PictureSource("b", content)])
    keeper.close()
    assert ["a", "b"] == [job["key"] for job in jobs]
    assert jobs[0]["scaled"].picture is not None
    assert "faster" in jobs[1]["scaled"].reason
    assert {"a"} == keeper.handled


REMOTE = ("https://example.com/cat.png", "http://example.com/cat.jpg", "ftp://example.com/cat.png")


@pytest.mark.parametrize("address", REMOTE)
def test_no_address_elsewhere_is_asked_for(address: str, tmp_path: Path) -> None:
    """It stays the text that it is."""
    part = {"type": "image_url", "image_url": {"url": address}}
    messages = [{"role": "user", "content": [part]}]
    with recorded(tmp_path / "one", batch([{"image": address}], messages)) as reader:
        prompt = reader.prompt(0)
        assert {"image": address} == prompt.columns
        assert messages == prompt.prompt
        assert [[]] == abouts(reader)


def test_a_completion_names_no_file_of_this_machine(tmp_path: Path) -> None:
    """What a model writes is not a path that is read."""
    (tmp_path / "secret.png").write_bytes(as_file(drawing()))
    part = {"type": "image", "image": str(tmp_path / "secret.png")}
    scored = batch([{}])
    scored.rollouts[0] = Rollout("q", [{"role": "assistant", "content": [part]}], {})  # type: ignore[index]
    with recorded(tmp_path / "one", scored) as reader:
        assert not reader.has_pictures


def test_a_path_that_is_no_file_is_not_read(tmp_path: Path) -> None:
    """A pipe would never end."""
    os.mkfifo(tmp_path / "pipe.png")
    with recorded(tmp_path / "one", batch([{"image": str(tmp_path / "pipe.png")}])) as reader:
        ((about,),) = abouts(reader)
        assert "no file" in about.reason


def test_a_row_is_read_while_another_thread_imports_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module stands there for a moment without its class."""
    monkeypatch.setitem(sys.modules, "PIL.Image", ModuleType("PIL.Image"))
    assert [0] == rows_of(batch([{"image": {"bytes": b"cut off", "path": None}}])).groups


def test_a_record_without_pictures_has_no_tables_of_them(place: Any) -> None:
    """So it is as records were before, and one of these is read alike."""
    with recorded(place, batch([{"answer": "4", "raw": b"bytes that are none", "name": "cat.png"}])) as reader:
        assert not reader.has_pictures
        assert [[]] == [list(reader.pictures([]).values())]
        (about,) = reader.pictures(["0" * 32]).values()
        assert about.is_absent
        assert reader.picture("0" * 32) is None


def test_a_body_that_is_no_picture_is_not_handed_out(tmp_path: Path) -> None:
    """A record that somebody crafted serves no page of theirs."""
    with recorded(tmp_path / "one", batch([{"image": as_file(drawing())}])) as reader:
        key = abouts(reader)[0][0].key
    import sqlite3

    for column, value in (("body", SCRIPT), ("body", 7), ("kind", "HTML")):
        with sqlite3.connect(tmp_path / "one" / "record.db") as file:
            file.execute(f"UPDATE picture SET {column} = ?", (value,))
        file.close()
        with RunReader(tmp_path / "one") as reader:
            assert reader.picture(key) is None


def test_rows_with_equal_pictures_are_a_group() -> None:
    """Also in objects of their own, and where one of them is damaged."""
    red, blue = as_file(drawing()), as_file(drawing(colour="blue"))
    damaged = as_file(photograph())[:40_000]
    pictures = [Image.open(io.BytesIO(content)) for content in (red, red, blue, damaged, damaged)]
    assert [0, 0, 1, 2, 2] == rows_of(batch([{"image": picture} for picture in pictures])).groups
