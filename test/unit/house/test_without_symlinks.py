"""The package works from a checkout without symbolic links, the default of Git for Windows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import cute_dialect, cute_dialect.passes.registry, cute_dialect.pipelines.embed, cute_dialect.tools.lsp.server
from cute_dialect.pipelines import compile
module = compile("test/examples/elementwise_add.mlir", emit="base")
print(cute_dialect.passes.__file__, module.kernel("add"))
"""


@pytest.mark.slow
def test_a_checkout_without_symlinks(tmp_path: Path) -> None:
    command = ["git", "-c", "core.symlinks=false", "checkout-index", "-q", "--all", f"--prefix={tmp_path}/"]
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a git checkout")
    subprocess.run(command, cwd=ROOT, check=True)
    assert (tmp_path / "cute_dialect" / "passes").is_file()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PYTHONPATH": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert str(tmp_path / "passes") in ran.stdout and "<kernel @add(" in ran.stdout
