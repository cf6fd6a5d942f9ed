"""dask's configuration becomes the collector's settings."""

from __future__ import annotations

import dask.config
import pytest

from daskscope.client.config import settings
from daskscope.errors import DaskscopeError


def test_the_defaults_record_everything_but_child_processes() -> None:
    found = settings()
    assert (found.code, found.profile, found.exception_text, found.keys, found.hostnames) == (True,) * 5
    assert (found.edges, found.transfers, found.logs, found.children) == (True, True, True, False)


def test_keys_of_dasks_configuration_are_honoured() -> None:
    with dask.config.set(
        {"daskscope.analytics.profile.transmit": False, "daskscope.analytics.samples.interval": "500ms"}
    ):
        found = settings()
    assert (found.profile, found.sample_interval) == (False, 0.5)


def test_switches_win_over_the_configuration() -> None:
    with dask.config.set({"daskscope.analytics.edges": False}):
        assert settings(edges=True).edges is True


def test_a_misspelt_switch_is_refused_with_the_ones_there_are() -> None:
    with pytest.raises(DaskscopeError, match=r"There is no switch 'profle'.*profile"):
        settings(profle=False)


def test_no_token_comes_from_dasks_configuration() -> None:
    with dask.config.set({"daskscope.token": "secret-token"}):
        assert "secret-token" not in str(settings())
