"""Check the licences of installed packages: ``licences.py FILE`` with the JSON of pip-licenses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

#: Licences that allow anyone to use and distribute the package together with a program under BSD-3-Clause.
ALLOWED = (
    "0BSD", "Apache", "BSD", "CC0", "HPND", "ISC", "LGPL", "GNU Lesser", "MIT", "Mozilla Public License 2.0", "MPL-2.0",
    "PSF", "Python Software Foundation", "The Unlicense", "Unlicense", "Zope", "zlib",
)  # fmt: skip


def is_allowed(licence: str) -> bool:
    """Return whether every part of a licence expression names an allowed licence."""
    parts = [part for text in licence.replace(" AND ", ";").split(";") for part in [text.strip(" ()")] if part]
    return bool(parts) and all(any(name.lower() in part.lower() for name in ALLOWED) for part in parts)


def main() -> int:
    packages = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    refused = [f"{item['Name']}: {item['License']}" for item in packages if not is_allowed(item["License"])]
    for line in refused:
        print(f"    not allowed: {line}")
    print(f"    {len(packages)} packages, {len(refused)} with a licence that is not allowed")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
