"""Dates, times of day, and angles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random
from typing import ClassVar, Self

from rewardkit.renderings.writing import Writing

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_HOURS, _MINUTES = 24, 60


@dataclass(frozen=True, slots=True)
class CalendarDay:
    """A day of a year."""

    kind: ClassVar[str] = "date"

    day: date

    @classmethod
    def draw(cls, random: Random) -> Self:
        return cls(date(1900, 1, 1) + timedelta(days=random.randrange(50_000)))

    @classmethod
    def read(cls, text: str) -> Self | None:
        bare = text.strip()
        written = re.fullmatch(rf"({'|'.join(_MONTHS)}) (\d{{1,2}}), (\d{{4}})", bare)
        try:
            if written:
                return cls(date(int(written[3]), _MONTHS.index(written[1]) + 1, int(written[2])))
            return cls(date.fromisoformat(bare)) if re.fullmatch(r"\d{4}-\d\d-\d\d", bare) else None
        except ValueError:
            return None

    @property
    def text(self) -> str:
        return self.day.isoformat()

    @property
    def _month(self) -> str:
        return _MONTHS[self.day.month - 1]

    def renderings(self) -> Iterator[Writing]:
        day, year = self.day.day, self.day.year
        ending = "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
        yield Writing("with the month first", f"{self._month} {day}, {year}")
        yield Writing("with the day first", f"{day} {self._month} {year}")
        yield Writing("with an ordinal", f"{self._month} {day}{ending}, {year}")
        yield Writing("with an ordinal of the month", f"{day}{ending} of {self._month} {year}")
        yield Writing("with a short month", f"{self._month[:3]} {day}, {year}")
        yield Writing("in text", f"\\text{{{self._month} {day}, {year}}}")

    def perturbations(self) -> Iterator[Writing]:
        for name, days in (("a day later", 1), ("a day earlier", -1), ("a month later", 31), ("a year earlier", -365)):
            if not date.min.toordinal() <= self.day.toordinal() + days <= date.max.toordinal():
                continue
            other = CalendarDay(self.day + timedelta(days=days))
            yield Writing(name, other.text)
            yield Writing(f"{name}, in words", f"{other._month} {other.day.day}, {other.day.year}")
        if self.day.day <= len(_MONTHS) and self.day.day != self.day.month:
            swapped = date(self.day.year, self.day.day, self.day.month)
            yield Writing("day and month swapped", swapped.isoformat())


@dataclass(frozen=True, slots=True)
class ClockTime:
    """A minute of a day."""

    kind: ClassVar[str] = "time"

    hour: int
    minute: int

    @classmethod
    def draw(cls, random: Random) -> Self:
        return cls(random.randint(13, 23), random.choice((0, random.randint(1, 59))))

    @classmethod
    def read(cls, text: str) -> Self | None:
        match = re.fullmatch(r"(\d{1,2}):(\d\d)", text.strip())
        if match is None or int(match[1]) >= _HOURS or int(match[2]) >= _MINUTES:
            return None
        # Before 13 o'clock it may be either half of the day, or a ratio.
        return cls(int(match[1]), int(match[2])) if int(match[1]) > 12 else None

    @property
    def text(self) -> str:
        return f"{self.hour}:{self.minute:02}"

    def renderings(self) -> Iterator[Writing]:
        hour = self.hour % 12 or 12
        for half in ("pm", "PM", "p.m."):
            yield Writing(f"with {half}", f"{hour}:{self.minute:02} {half}")
        yield Writing("in text", f"{hour}:{self.minute:02}\\text{{ p.m.}}")
        if not self.minute:
            yield Writing("without minutes", f"{hour} pm")

    def perturbations(self) -> Iterator[Writing]:
        hour = self.hour % 12 or 12
        yield Writing("in the other half of the day", f"{hour}:{self.minute:02} am")
        yield Writing("an hour more", f"{(self.hour + 1) % _HOURS}:{self.minute:02}")
        yield Writing("a minute more", f"{hour}:{(self.minute + 1) % _MINUTES:02} pm")
        yield Writing("without the half of the day", f"{hour}:{self.minute:02}")


@dataclass(frozen=True, slots=True)
class Angle:
    """A whole number of degrees."""

    kind: ClassVar[str] = "angle"

    degrees: int

    @classmethod
    def draw(cls, random: Random) -> Self:
        return cls(random.randint(2, 359))

    @classmethod
    def read(cls, text: str) -> Self | None:
        match = re.fullmatch(
            r"(\d{1,3})\s*(?:\u00b0|\^\s*\{?\s*\\circ\s*\}?|degrees?|\\text\{ ?degrees\})", text.strip()
        )
        return cls(int(match[1])) if match and int(match[1]) else None

    @property
    def text(self) -> str:
        return f"{self.degrees}^\\circ"

    def renderings(self) -> Iterator[Writing]:
        yield Writing("with braces", f"{self.degrees}^{{\\circ}}")
        yield Writing("with a sign", f"{self.degrees}\u00b0")
        yield Writing("in words", f"{self.degrees} degrees")
        yield Writing("in words in text", f"{self.degrees}\\text{{ degrees}}")
        yield Writing("as the side of an equation", f"x = {self.degrees}^\\circ")

    def perturbations(self) -> Iterator[Writing]:
        for name, degrees in (("another angle", self.degrees + 10), ("a degree less", self.degrees - 1)):
            yield Writing(name, Angle(degrees).text)
        yield Writing("with a minus", f"-{self.degrees}^\\circ")
        if self.degrees != 180:
            yield Writing("the rest of a circle", Angle(360 - self.degrees).text)
        yield Writing("with a power", f"{self.degrees}^2")
        yield Writing("with a second answer", f"{self.text} or {Angle(self.degrees + 20).text}")
        yield Writing("in meters", f"{self.degrees}\\text{{ meters}}")
        yield Writing("in percent", f"{self.degrees}\\%")
