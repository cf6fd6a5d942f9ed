"""The options, the marker and the fixture of ``pytest --daskscope``.

pytest imports this module in every project of an environment. It is not part of the package ``daskscope``, whose import takes a
second, and loads ``daskscope.pytest_plugin`` only with ``--daskscope``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

DIRECTORY = ".daskscope"
MARKER = (
    "daskscope(repeats=5, warmup=1): record the Dask work of the test with pytest --daskscope; run it this often, "
    "after some runs that do not count"
)

T = TypeVar("T")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("daskscope", "record Dask benchmarks (daskscope)")
    group.addoption(
        "--daskscope",
        nargs="?",
        const=DIRECTORY,
        metavar="DIR",
        help=f"record tests that have the marker or use the fixture; --daskscope=DIR keeps the files there (default: {DIRECTORY})",
    )
    group.addoption("--daskscope-save", metavar="NAME", help="keep the measurements as a baseline")
    group.addoption("--daskscope-compare", metavar="NAME", help="compare with a baseline")
    group.addoption(
        "--daskscope-server",
        nargs="?",
        const="",
        metavar="URL",
        help="keep baselines on a daskscope server (default: the one you are signed in to, or DASK_DASKSCOPE__SERVER)",
    )
    group.addoption(
        "--daskscope-fail-over",
        metavar="PERCENT",
        help="fail tests with a proven slowdown of more than this, for example 20%%",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    directory = config.getoption("--daskscope")
    if directory is None:
        others = [f"--daskscope-{name}" for name in ("save", "compare", "server", "fail-over")]
        if used := [option for option in others if config.getoption(option) is not None]:
            raise pytest.UsageError(f"{used[0]} needs --daskscope.")
        return
    if "--daskscope" in config.invocation_params.args and directory != DIRECTORY:
        # The option took the path of a test as its directory.
        raise pytest.UsageError(f"Write --daskscope={directory}, or put --daskscope after the paths of tests.")
    from daskscope.pytest_plugin import Plugin

    config.pluginmanager.register(Plugin.from_options(config), "daskscope-recording")


@pytest.fixture
def daskscope_record(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Call a function, and record its Dask work with ``pytest --daskscope``; return its result.

    ``daskscope_record(function, *arguments, repeats=5, warmup=1, client=None)`` calls it once without ``--daskscope``.
    """
    plugin = request.config.pluginmanager.get_plugin("daskscope-recording")

    def record(
        function: Callable[..., T],
        *arguments: Any,
        repeats: int | None = None,
        warmup: int | None = None,
        client: Any = None,
        **named: Any,
    ) -> T:
        def call() -> T:
            return function(*arguments, **named)

        if plugin is None:
            return call()
        result: T = plugin.record(request.node, call, repeats=repeats, warmup=warmup, client=client)
        return result

    return record
