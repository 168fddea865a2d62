"""The address of a run in a PostgreSQL database, such as ``postgresql://trainer@host/rewards?run=grpo-7``.

A run is named by the parameter ``run``; without it the address is that of all runs of the database. Everything else is
libpq's own: user, password, host, port, database, ``sslmode``, ``options``. Nothing that is shown has the password.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from rewardkit.errors import RecordError

SCHEMES = ("postgresql", "postgres")  # How an address begins, before `://`
LONGEST_NAME = 63  # Bytes of a run's name, at most: it names a schema, and PostgreSQL would cut a longer one
_RUN = "run"
_SECRETS = ("password", "sslpassword")
_PORTS = re.compile(r"\d{1,5}(,\d{1,5})*")
_SCHEME = re.compile(r"([A-Za-z][\w+.-]*)://")
_CODED = "a letter such as @ : / ? # in its user, password or run has to be written in per cent, as %40 for @"


@dataclass(frozen=True, slots=True)
class RunAddress:
    """Where a run is in a database, or where the runs are."""

    server: str = field(repr=False)  # The address for libpq, with the password and without the run
    label: str  # The address for people, without a password
    name: str | None  # The run's name; `None` for all runs of the database
    secrets: tuple[str, ...] = field(repr=False)  # What must not be shown anywhere

    def __str__(self) -> str:
        return self.label

    @property
    def locator(self) -> str:
        """The address with its password, for another process of this user: it goes into a pipe, and is never shown."""
        return self.server if self.name is None else _with_run(self.server, self.name)

    def of_run(self, name: str) -> RunAddress:
        """Return the address of a run in this database; RecordError where no run can have this name."""
        _check_name(name)
        base = self.label if self.name is None else self.label.rpartition(f"{_RUN}=")[0].rstrip("?&")
        return RunAddress(self.server, _with_run(base, name), name, self.secrets)

    def redact(self, text: str) -> str:
        """Return a text of the server or of libpq without the password."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def is_address(run: object) -> bool:
    """Return whether a run is named by the address of a database, and not by a path.

    Raises RecordError for an address that was made a path, which drops a slash, and for one of another scheme.
    """
    if isinstance(run, os.PathLike) and str(run).startswith(tuple(f"{scheme}:/" for scheme in SCHEMES)):
        raise RecordError("an address of a database is given as text, and not as a path, which drops a slash of it")
    scheme = _SCHEME.match(run) if isinstance(run, str) else None
    if scheme is not None and scheme[1] not in SCHEMES:
        what = "the address of a server is not a run; " if scheme[1] in ("http", "https") else ""
        raise RecordError(
            f"{scheme[0]}: {what}a record lies in a folder, or at postgresql://USER@HOST/DATABASE?run=NAME"
        )
    return scheme is not None


def address_of(text: str) -> RunAddress:
    """Parse an address; RecordError where it is malformed, without the text, which may hold a password anywhere."""
    try:
        parts = urlsplit(text)
    except ValueError:
        raise RecordError(f"the address of the database cannot be read; {_CODED}") from None
    _check_parts(parts)
    pairs = parse_qsl(parts.query.replace("+", "%2B"), keep_blank_values=True)  # to libpq a plus is no space
    names = [value for key, value in pairs if key == _RUN]
    if len(names) > 1:
        raise RecordError("the address of the database names two runs; expected one ?run=NAME")
    settings = [(key, value) for key, value in pairs if key != _RUN]
    login, _, host = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    public = [(key, value) for key, value in settings if key not in _SECRETS]
    label = _url(f"{user}@{host}" if login else host, parts.path, public)
    secrets = {password, unquote(password), *(value for key, value in settings if key in _SECRETS)} - {""}
    server = _url(parts.netloc, parts.path, settings)
    database = RunAddress(server, label, None, tuple(sorted(secrets, key=len)[::-1]))
    return database.of_run(names[0]) if names else database


def run_address(text: str) -> RunAddress:
    """Return the address of one run; RecordError where the text is not an address, or names no run."""
    address = address_of(text)
    if address.name is None:
        raise RecordError(f"{address}: names no run; expected {_with_run(address.label, 'NAME')}")
    return address


def _check_parts(parts: SplitResult) -> None:
    """Raise RecordError where a letter that is not encoded makes an address mean something else."""
    port = parts.netloc.rpartition("@")[2].rpartition("]")[2].partition(":")[2]
    ports = re.findall(r":(\d*)", port) if "," in port else [port]
    is_loose = "@" in f"{parts.path}{parts.query}" or parts.fragment or "@" in parts.netloc.rpartition("@")[0]
    has_bad_port = any(port and not _PORTS.fullmatch(port) for port in ports)
    if is_loose or has_bad_port or "\x00" in f"{parts.netloc}{parts.path}":
        raise RecordError(f"the address of the database cannot be read; {_CODED}")


def _check_name(name: str) -> None:
    """Raise RecordError where a name cannot be that of a run's schema."""
    is_odd = not name or any(ord(letter) < 32 or letter in '/\\"' for letter in name) or name.startswith(("pg_", "."))
    if is_odd or name == "information_schema" or len(name.encode("utf-8", "replace")) > LONGEST_NAME:
        raise RecordError(
            f"run={name[:60]!r}: not a run's name; expected at most {LONGEST_NAME} bytes without slashes and quotes, "
            "which begin with neither a dot nor pg_"
        )


def _with_run(address: str, name: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}{_RUN}={quote(name, safe='')}"


def _url(netloc: str, path: str, query: list[tuple[str, str]]) -> str:
    return f"postgresql://{netloc}{path}{'?' if query else ''}{urlencode(query, quote_via=quote, safe='/:,')}"
