"""Graders of texts of other projects, as their documentation calls them."""

from __future__ import annotations

from .harnesses import Harness

TEXT_GRADERS: tuple[Harness, ...] = ()
