"""Packages that call Dask for their users: a line of theirs is not the line in which the user computed something."""

from __future__ import annotations

#: Import names. Modules whose names begin with ``dask`` and ``distributed`` count as well.
LIBRARIES = (
    "IPython",
    "airflow",
    "anndata",
    "asyncio",
    "awkward",
    "bokeh",
    "climpred",
    "cloudpickle",
    "coffea",
    "concurrent",
    "contextlib",
    "cubed",
    "cudf",
    "cuml",
    "cupy",
    "dagster",
    "dataprep",
    "datashader",
    "fastparquet",
    "featuretools",
    "flox",
    "fsspec",
    "fugue",
    "functools",
    "geopandas",
    "holoviews",
    "hvplot",
    "ibis",
    "icechunk",
    "intake",
    "ipykernel",
    "iris",
    "joblib",
    "kerchunk",
    "kubernetes",
    "lightgbm",
    "luigi",
    "matplotlib",
    "metpy",
    "modin",
    "multiprocessing",
    "napari",
    "narwhals",
    "nbclient",
    "numpy",
    "odc",
    "optuna",
    "ome_zarr",
    "pandas",
    "papermill",
    "prefect",
    "pyarrow",
    "rechunker",
    "rioxarray",
    "rasterio",
    "satpy",
    "scanpy",
    "scipy",
    "seaborn",
    "skimage",
    "sklearn",
    "snakemake",
    "spatialpandas",
    "stackstac",
    "streamlit",
    "threading",
    "toolz",
    "tornado",
    "tpot",
    "tqdm",
    "tsfresh",
    "uproot",
    "verde",
    "virtualizarr",
    "xarray",
    "xbatcher",
    "xclim",
    "xesmf",
    "xgboost",
    "xgcm",
    "xhistogram",
    "zarr",
)
_KNOWN = frozenset(LIBRARIES)
#: Directories that hold packages.
_PLACES = ("/site-packages/", "/dist-packages/")
_STANDARD = ("/lib/python3", "/Lib/")


def is_library(file: str) -> bool:
    """Return whether a source file belongs to one of these packages, by the directory after ``site-packages``.

    A package of the user may be installed next to them, so other packages count as the user's.
    """
    path = file.replace("\\", "/")
    for place in _PLACES:
        _, found, after = path.rpartition(place)
        if found:
            name = after.partition("/")[0].removesuffix(".py")
            return name in _KNOWN or name.startswith(("dask", "distributed"))
    for place in _STANDARD:
        _, found, after = path.rpartition(place)
        if found:
            # "python3.11/asyncio/base_events.py"
            parts = after.split("/")
            return any(part.removesuffix(".py") in _KNOWN for part in parts)
    return False


def module_patterns() -> list[str]:
    """Return regular expressions of the packages' module names, for ``distributed.diagnostics.computations.ignore-modules``."""
    return [rf"{name}(?:\.|$)" for name in LIBRARIES]
