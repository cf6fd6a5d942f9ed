"""The versions of packages that users import, besides those that Dask compares itself."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

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


def installed(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Return the versions of installed packages without importing them. Reads directories (12 ms), so call it in a thread."""
    found = {}
    for name in packages:
        try:
            found[name] = str(version(name))[:MAX_TEXT]
        except Exception:  # noqa: BLE001 (not installed, or its metadata is damaged)
            continue
    return found


def known(versions: Any) -> dict[str, str]:
    """Return versions that a worker sent, without anything else."""
    if not isinstance(versions, dict):
        return {}
    return {name: text[:MAX_TEXT] for name in PACKAGES if isinstance(text := versions.get(name), str)}
