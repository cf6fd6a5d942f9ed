"""Files of libraries that call Dask are told apart from files of users."""

from __future__ import annotations

import re

import pytest

from daskscope.model.libraries import LIBRARIES, is_library, module_patterns


@pytest.mark.parametrize(
    "file",
    [
        "/home/ann/.venv/lib/python3.12/site-packages/xarray/core/dataset.py",
        "/opt/conda/lib/python3.11/site-packages/coffea/processor/executor.py",
        "/usr/lib/python3/dist-packages/dask_ml/model_selection.py",
        "C:\\envs\\a\\Lib\\site-packages\\prefect\\flows.py",
        "/usr/lib/python3.11/asyncio/base_events.py",
        "/usr/lib/python3.11/site-packages/tqdm.py",
    ],
)
def test_files_of_libraries(file: str) -> None:
    assert is_library(file)


@pytest.mark.parametrize(
    "file",
    [
        "/home/ann/xarray_things/analysis.py",
        "/home/ann/coffea/analysis.py",
        "/home/ann/.venv/lib/python3.12/site-packages/anns_pipeline/run.py",
        "<ipython-input-3-abc>",
        "/tmp/ipykernel_12/34.py",
        "",
    ],
)
def test_files_of_users(file: str) -> None:
    assert not is_library(file)


def test_patterns_match_whole_names() -> None:
    pattern = re.compile("|".join(f"(?:{part})" for part in module_patterns()))
    assert pattern.match("coffea") and pattern.match("coffea.processor.executor")
    assert not pattern.match("coffea_analysis") and not pattern.match("__main__")
    assert sorted(set(LIBRARIES), key=str.lower) == sorted(LIBRARIES, key=str.lower)
