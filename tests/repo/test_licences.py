"""Everything that daskscope installs or contains may be distributed with it."""

from __future__ import annotations

import importlib.util
import json
import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution, requires
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def licences() -> ModuleType:
    spec = importlib.util.spec_from_file_location("licences", ROOT / "scripts" / "licences.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def installed() -> dict[str, Distribution]:
    """Return the installed packages that daskscope and its extras need."""
    found: dict[str, Distribution] = {}
    all_extras: tuple[str, ...] = ("server", "postgres", "s3", "parquet", "pandas", "terminal")
    waiting = [(Requirement(text), all_extras) for text in requires("daskscope") or ()]
    while waiting:
        needed, extras = waiting.pop()
        if needed.marker is not None and not any(needed.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            continue
        name = re.sub(r"[-_.]+", "-", needed.name).lower()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            # An extra that is not installed here; scripts/audit installs all of them.
            continue
        waiting += [(Requirement(text), tuple(needed.extras)) for text in found[name].requires or ()]
    return found


def licence_of(package: Distribution) -> str:
    def values(name: str) -> list[str]:
        return package.metadata.get_all(name) or []

    classified = [text.rpartition(" :: ")[2] for text in values("Classifier") if text.startswith("License")]
    plain = [text.partition("\n")[0] for text in values("License")]
    return "; ".join(values("License-Expression") or classified or plain)


def test_licences_of_installed_packages_are_allowed(licences: ModuleType) -> None:
    packages = installed()
    assert len(packages) > 20
    assert {name: licence_of(p) for name, p in packages.items() if not licences.is_allowed(licence_of(p))} == {}


def test_no_version_of_pyarrow_with_a_known_hole_is_allowed() -> None:
    """Versions before 14.0.1 execute code in files (CVE-2023-47248)."""
    needed = [Requirement(text) for text in distribution("daskscope").requires or ()]
    found = [one.specifier for one in needed if one.name == "pyarrow"]
    assert found
    assert [versions for versions in found if versions.contains("14.0.0") or not versions.contains("14.0.1")] == []


def test_licences_of_packages_in_the_web_pages_are_allowed(licences: ModuleType) -> None:
    locked = json.loads((ROOT / "web" / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    bundled = {name: item.get("license", "") for name, item in locked.items() if name and not item.get("dev")}
    assert {"node_modules/preact", "node_modules/uplot"} <= bundled.keys()
    assert {name: text for name, text in bundled.items() if not licences.is_allowed(text)} == {}


def test_both_lists_of_packages_are_read(licences: ModuleType) -> None:
    locked = {"packages": {"": {}, "node_modules/a": {"license": "MIT"}, "node_modules/b/node_modules/@c/d": {}}}
    assert licences.licences(locked) == [("a", "MIT"), ("@c/d", "")]
    assert licences.licences([{"Name": "a", "License": "MIT"}]) == [("a", "MIT")]


@pytest.mark.parametrize(
    "licence", ["GPL-3.0-only", "MIT AND GPL-2.0", "Proprietary", "UNKNOWN", "", "GNU Affero General Public License v3"]
)
def test_other_licences_are_refused(licences: ModuleType, licence: str) -> None:
    assert not licences.is_allowed(licence)
