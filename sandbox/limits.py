"""What isolated code may use, unless its caller says otherwise."""

from __future__ import annotations

DEFAULT_MEMORY_BYTES = 4 << 30
"""Memory of one worker, as the kernel counts private data (RLIMIT_DATA)."""
