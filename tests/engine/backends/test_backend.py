"""Options say which back end is opened, and what is said while it opens."""

from __future__ import annotations

import pytest

from vitnas.engine.backends.backend import open_backend, opening
from vitnas.engine.backends.serial import SerialBackend
from vitnas.engine.options import SearchOptions
from vitnas.errors import RunError

SERIAL = SearchOptions(backend="serial", gpus_per_trial=0.0)


def test_this_process_is_opened_where_it_is_asked_for() -> None:
    assert isinstance(open_backend(SERIAL), SerialBackend)
    assert opening(SERIAL) == "loading torch"


def test_this_process_joins_no_cluster() -> None:
    with pytest.raises(RunError, match="--backend serial uses no cluster"):
        open_backend(SearchOptions(backend="serial", ray_address="auto"))
    assert opening(SearchOptions(ray_address="auto")) == "joining the cluster at auto"
    assert opening(SearchOptions()) == "starting Ray"
