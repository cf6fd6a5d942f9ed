"""``import daskscope`` is quick, and offers all public names."""

from __future__ import annotations

import subprocess
import sys

import daskscope

QUICK = """
import sys
import daskscope
assert not {"distributed", "dask", "numpy", "pyarrow"} & set(sys.modules)
daskscope.analytics.register
assert "distributed" in sys.modules
"""


def test_every_public_name_exists() -> None:
    assert [name for name in daskscope.__all__ if not hasattr(daskscope, name)] == []
    assert not hasattr(daskscope, "no_such_name")


def test_distributed_is_imported_when_it_is_needed() -> None:
    subprocess.run([sys.executable, "-c", QUICK], check=True)
