"""What the core brings along: packages and megabytes of an installation without extras. Needs the package index."""

from __future__ import annotations

import json
import subprocess
import venv
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.bench.figures import figure
from tests.bench.processes import ROOT


def run() -> list[dict[str, Any]]:
    """Installs into a fresh environment, which takes a minute or two. pip itself is not counted."""
    with TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
        before = _bytes(folder)
        subprocess.run([*pip, "install", str(ROOT)], check=True)
        listed = subprocess.run([*pip, "list", "--format", "json"], check=True, capture_output=True).stdout
        packages = [package for package in json.loads(listed) if package["name"] not in {"pip", "setuptools"}]
        return [
            figure("install_packages", len(packages)),
            figure("install_size", (_bytes(folder) - before) / 1e6),
        ]


def _bytes(folder: str) -> int:
    return sum(path.lstat().st_size for path in Path(folder).rglob("*") if path.is_file())
