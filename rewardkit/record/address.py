"""The address of a run in a PostgreSQL database, such as ``postgresql://trainer@host/rewards?run=grpo-7``.

A run is named by the parameter ``run``; without it the address is that of all runs of the database. Everything else is
libpq's own: user, password, host, port, database, ``sslmode``, ``options``. The password is in nothing that is shown.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from rewardkit.errors import RecordError

SCHEMES = ("postgresql", "postgres")
"""How an address begins, before ``://``."""
LONGEST_NAME = 63
"""Bytes of a run's name, at most: it names a schema, and PostgreSQL would cut a longer one."""
_OURS = "run"
_HIDDEN = ("password", "sslpassword")
_PORTS = re.compile(r"\d{1,5}(,\d{1,5})*")
_SCHEME = re.compile(r"([A-Za-z][\w+.-]*)://")
_CODED = "a letter such as @ : / ? # in its user, password or run has to be written in per cent, as %40 for @"


@dataclass(frozen=True, slots=True)
class RunAddress:
    """Where a run is in a database, or where the runs are.

    Attributes:
        server: The address for libpq, with the password and without the run.
        shown: The address for people, without a password.
        name: The run's name; ``None`` for all runs of the database.
        secrets: What must not be shown anywhere.
    """

    server: str = field(repr=False)
    shown: str
    name: str | None
    secrets: tuple[str, ...] = field(repr=False)

    def __str__(self) -> str:
        return self.shown

    @property
    def whole(self) -> str:
        """The address with its password, for another process of this user: it goes into a pipe, and is never shown."""
        joint = "&" if "?" in self.server else "?"
        return self.server if self.name is None else f"{self.server}{joint}{_OURS}={quote(self.name, safe='')}"

    def of_run(self, name: str) -> RunAddress:
        """Return the address of a run in this database.

        Raises:
            RecordError: No run can have this name.
        """
        _check_name(name)
        base = self.shown if self.name is None else self.shown.rpartition(f"{_OURS}=")[0].rstrip("?&")
        joint = "&" if "?" in base else "?"
        return RunAddress(self.server, f"{base}{joint}{_OURS}={quote(name, safe='')}", name, self.secrets)

    def hidden(self, words: str) -> str:
        """Return words of the server or of libpq without the password."""
        for secret in self.secrets:
            words = words.replace(secret, "***")
        return words


def is_address(run: object) -> bool:
    """Return whether a run is named by an address of a database, and not by a place of the file system.

    Raises:
        RecordError: The address was made a path, which has lost a slash of it, or is of something else.
    """
    if isinstance(run, os.PathLike) and str(run).startswith(tuple(f"{one}:/" for one in SCHEMES)):
        raise RecordError("an address of a database is given as text, and not as a path, which drops a slash of it")
    scheme = _SCHEME.match(run) if isinstance(run, str) else None
    if scheme is not None and scheme[1] not in SCHEMES:
        raise RecordError(f"{scheme[0]}: a record lies in a folder, or at postgresql://USER@HOST/DATABASE?run=NAME")
    return isinstance(run, RunAddress) or scheme is not None


def address_of(text: str | RunAddress) -> RunAddress:
    """Return an address as its parts.

    Raises:
        RecordError: It is not written as one. The words hold nothing of it, because a password may stand anywhere in
            it.
    """
    if isinstance(text, RunAddress):
        return text
    try:
        parts = urlsplit(text)
    except ValueError:
        raise RecordError(f"the address of the database cannot be read; {_CODED}") from None
    _check_parts(parts)
    given = parse_qsl(parts.query.replace("+", "%2B"), keep_blank_values=True)  # to libpq a plus is no space
    names = [value for key, value in given if key == _OURS]
    if len(names) > 1:
        raise RecordError("the address of the database names two runs; expected one ?run=NAME")
    rest = [(key, value) for key, value in given if key != _OURS]
    user, _, place = parts.netloc.rpartition("@")
    who, _, password = user.partition(":")
    open_ones = [(key, value) for key, value in rest if key not in _HIDDEN]
    shown = _written(f"{who}@{place}" if user else place, parts.path, open_ones)
    secrets = {password, unquote(password), *(value for key, value in rest if key in _HIDDEN)} - {""}
    database = RunAddress(_written(parts.netloc, parts.path, rest), shown, None, tuple(sorted(secrets, key=len)[::-1]))
    return database.of_run(names[0]) if names else database


def run_address(text: str | RunAddress) -> RunAddress:
    """Return the address of one run.

    Raises:
        RecordError: The text is not an address, or names no run.
    """
    found = address_of(text)
    if found.name is None:
        joint = "&" if "?" in found.shown else "?"
        raise RecordError(f"{found}: names no run; expected {found}{joint}run=NAME")
    return found


def _check_parts(parts: SplitResult) -> None:
    port = parts.netloc.rpartition("@")[2].rpartition("]")[2].partition(":")[2]
    ports = re.findall(r":(\d*)", port) if "," in port else [port]
    loose = "@" in f"{parts.path}{parts.query}" or parts.fragment or "@" in parts.netloc.rpartition("@")[0]
    if loose or any(one and not _PORTS.fullmatch(one) for one in ports) or "\x00" in f"{parts.netloc}{parts.path}":
        raise RecordError(f"the address of the database cannot be read; {_CODED}")


def _check_name(name: str) -> None:
    odd = not name or any(ord(one) < 32 or one in '/\\"' for one in name) or name.startswith(("pg_", "."))
    if odd or name == "information_schema" or len(name.encode("utf-8", "replace")) > LONGEST_NAME:
        raise RecordError(
            f"run={name[:60]!r}: not a run's name; expected at most {LONGEST_NAME} bytes without slashes and quotes, "
            "which begin with neither a dot nor pg_"
        )


def _written(place: str, path: str, query: list[tuple[str, str]]) -> str:
    return f"postgresql://{place}{path}{'?' if query else ''}{urlencode(query, quote_via=quote, safe='/:,')}"
