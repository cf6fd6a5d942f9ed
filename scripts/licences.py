"""Check the licences of packages: ``licences.py FILE`` with the JSON of pip-licenses, or with a package-lock.json of npm."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

#: Licences that allow anyone to use and distribute the package together with a program under BSD-3-Clause.
ALLOWED = (
    "0BSD", "Apache", "BSD", "CC0", "HPND", "ISC", "LGPL", "GNU Lesser", "MIT", "Mozilla Public License 2.0", "MPL-2.0",
    "PSF", "Python Software Foundation", "The Unlicense", "Unlicense", "Zope", "zlib",
)  # fmt: skip


def is_allowed(licence: str) -> bool:
    """Return whether every part of a licence expression names an allowed licence."""
    parts = [part for text in licence.replace(" AND ", ";").split(";") for part in [text.strip(" ()")] if part]
    return bool(parts) and all(any(name.lower() in part.lower() for name in ALLOWED) for part in parts)


def licences(found: Any) -> list[tuple[str, str]]:
    """Return each package with its licence; empty if it names none. The lock of npm has them for all packages."""
    if isinstance(found, list):
        return [(item["Name"], item["License"]) for item in found]
    packages = {path.rpartition("node_modules/")[2]: entry for path, entry in found["packages"].items() if path}
    return [(name, str(entry.get("license", ""))) for name, entry in packages.items()]


def main() -> int:
    packages = licences(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    refused = [f"{name}: {licence or 'none named'}" for name, licence in packages if not is_allowed(licence)]
    for line in refused:
        print(f"    not allowed: {line}")
    print(f"    {len(packages)} packages, {len(refused)} with a licence that is not allowed")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
