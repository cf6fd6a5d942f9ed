"""Build the viewer and the app into the package, if their sources have changed.

``scripts/build-web`` and the build of a wheel run this. Only the standard library is used, because a wheel is built in an
environment of its own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WEB = ROOT / "web"
PAGE = ROOT / "src" / "daskscope" / "report" / "viewer.html"
APP = ROOT / "src" / "daskscope" / "server" / "static"
#: The digest of the sources that the pages were built from.
STAMP = WEB / ".built-for"
GENERATED = ("node_modules", "dist", "dist-app", STAMP.name, "__pycache__")

NO_NPM = (
    "The web pages cannot be built: there is no npm. Run scripts/install, which installs Node into .venv, or install Node "
    "22 or newer."
)
FAILED = "The web pages cannot be built: `{command}` in the folder web failed, see above. Run it there to try again."


def sources_digest() -> str:
    """Return a digest of everything the pages are built from."""
    files = (path for path in WEB.rglob("*") if path.is_file() and path.relative_to(WEB).parts[0] not in GENERATED)
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.relative_to(WEB).as_posix()}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def is_built() -> bool:
    """Return whether the package has its pages. A source distribution brings them, and no stamp."""
    if not (PAGE.exists() and (APP / "app.html").exists()):
        return False
    return not STAMP.exists() or STAMP.read_text() == sources_digest()


def build() -> None:
    """Build the pages and copy them into the package; exit with the next step if that fails."""
    environment = {**os.environ, "PATH": f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}
    npm = shutil.which("npm", path=environment["PATH"])
    if npm is None:
        raise SystemExit(NO_NPM)
    sys.stderr.write("Building the viewer and the app ...\n")
    modules = WEB / "node_modules"
    if not modules.is_dir() or modules.stat().st_mtime < (WEB / "package-lock.json").stat().st_mtime:
        _run(npm, "ci", "--loglevel=error", "--no-audit", "--no-fund", environment=environment)
    _run(npm, "run", "--silent", "build", environment=environment)
    shutil.copyfile(WEB / "dist" / "viewer.html", PAGE)
    shutil.rmtree(APP, ignore_errors=True)
    shutil.copytree(WEB / "dist-app", APP)
    STAMP.write_text(sources_digest())


def _run(*command: str, environment: dict[str, str]) -> None:
    if subprocess.run(command, cwd=WEB, env=environment, check=False).returncode:
        raise SystemExit(FAILED.format(command=" ".join(("npm", *command[1:]))))


if __name__ == "__main__" and not (STAMP.exists() and is_built()):
    build()
