"""The versions of packages that users import, besides those that Dask compares itself."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

logger = logging.getLogger("daskscope")

#: Distribution names, as pip knows them.
PACKAGES = (
    "numpy",
    "pandas",
    "pyarrow",
    "scipy",
    "numba",
    "scikit-learn",
    "xarray",
    "zarr",
    "numcodecs",
    "h5py",
    "netCDF4",
    "rioxarray",
    "geopandas",
    "dask-geopandas",
    "dask-expr",
    "dask-ml",
    "dask-jobqueue",
    "dask-kubernetes",
    "dask-gateway",
    "dask-cuda",
    "dask-awkward",
    "awkward",
    "uproot",
    "coffea",
    "hist",
    "xgboost",
    "lightgbm",
    "torch",
    "polars",
    "duckdb",
    "fsspec",
    "s3fs",
    "gcsfs",
    "adlfs",
    "boto3",
    "botocore",
    "prefect",
    "bokeh",
    "gilknocker",
)
MAX_TEXT = 100


#: Limits of the search: each worker that runs in a process adds a directory to ``sys.path``, and a network file system may hang.
MAX_DIRECTORIES = 50
MAX_SEARCH_S = 2.0

_DISTRIBUTION = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)(-py[\d.]+)?\.(dist|egg)-info")
_lock = threading.Lock()
_found: dict[str, str] | None = None


def installed() -> dict[str, str]:
    """Return the versions of installed packages without importing them. Reads directories (2 ms), so call it in a thread.

    They are found once per process: packages do not change while it runs, but it may have hundreds of agents.
    """
    global _found
    with _lock:
        if _found is None:
            _found = find_versions(sys.path, time.monotonic)
        return dict(_found)


def find_in_thread(loop: asyncio.AbstractEventLoop, add: Callable[[dict[str, str]], None]) -> threading.Thread:
    """Find the versions in a thread, because reading directories may take long, and call ``add`` with them on the loop."""

    def find() -> None:
        try:
            loop.call_soon_threadsafe(add, installed())
        except Exception as error:  # noqa: BLE001 (the top of a thread; the loop may be closed)
            logger.debug("daskscope: %r", error)

    thread = threading.Thread(target=find, name="daskscope-versions", daemon=True)
    thread.start()
    return thread


def find_versions(paths: Iterable[str], clock: Callable[[], float]) -> dict[str, str]:
    """Return the versions of packages in these directories, the first one of each, as far as the limits allow."""
    deadline = clock() + MAX_SEARCH_S
    wanted = {_normalized(name): name for name in PACKAGES}
    found: dict[str, str] = {}
    # The directories of installers first: the others are unlikely to contain packages.
    ordered = sorted(dict.fromkeys(paths), key=lambda path: not path.endswith("-packages"))
    for path in ordered[:MAX_DIRECTORIES]:
        try:
            entries = os.scandir(path or ".")
        except OSError:
            continue
        with entries:
            for entry in entries:
                match = _DISTRIBUTION.fullmatch(entry.name)
                if match is not None and (name := wanted.get(_normalized(match["name"]))) is not None:
                    found.setdefault(name, match["version"][:MAX_TEXT])
                if clock() > deadline:
                    return found
    return found


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def known(versions: Any) -> dict[str, str]:
    """Return versions that a worker sent, without anything else."""
    if not isinstance(versions, dict):
        return {}
    return {name: text[:MAX_TEXT] for name in PACKAGES if isinstance(text := versions.get(name), str)}
