"""Answers that any run may reuse, in the user's cache folder: one small file each.

A file that is damaged, or a folder that cannot be written, only means that a training is done
again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vitnas.engine.batch.request import Answer, Request
from vitnas.environment import cache_home
from vitnas.files import read_bytes, write_text
from vitnas.records import Outcome

_KEPT = (Outcome.COMPLETE, Outcome.DIVERGED)  # what another try would give, too
_MOST_BYTES = 1 << 24


class Cache:
    """Answers by request, for one state of the images, the packages and the device.

    Args:
        facts: plain values; answers that were got with other ones are not found. None = nothing is
            found or kept.
    """

    def __init__(self, facts: Mapping[str, Any] | None) -> None:
        self._folder: Path | None = None
        home = cache_home()
        if facts is not None and home is not None:
            text = json.dumps(facts, sort_keys=True, default=str)
            self._folder = home / "answers" / hashlib.sha256(text.encode()).hexdigest()[:12]

    def get(self, request: Request) -> Answer | None:
        """What is kept, if it can be read."""
        if self._folder is None:
            return None
        try:
            return Answer.model_validate_json(read_bytes(self._path(request), _MOST_BYTES))
        except (OSError, ValidationError):
            return None

    def put(self, request: Request, answer: Answer) -> None:
        """Keep an answer that does not depend on the moment; nothing where that fails."""
        if self._folder is not None and answer.outcome in _KEPT:
            with contextlib.suppress(OSError):
                write_text(self._path(request), answer.model_dump_json(exclude_defaults=True))

    def _path(self, request: Request) -> Path:
        assert self._folder is not None
        return self._folder / f"{request.key}.json"
