"""Kernels compiled by an earlier process are found without tracing and without importing the compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.op.execute import kernel_cache
from cute_dialect.op.execute.kernels import text_of
from cute_dialect.op.select.gemm_dispatch import AnyConfig, any_config

PROGRAM = """
import sys
from hashlib import sha256
from functools import partial
from cute_dialect.kernels.gemm.split_tf32 import PartsConfig, split_text
from cute_dialect.op.execute.kernel_cache import load_or_compile

found = load_or_compile("split", partial(split_text, PartsConfig(sys.argv[1])))
print(sha256(found.artifact.ptx.encode()).hexdigest(), "xdsl" in sys.modules, "mlir" in sys.modules)
"""


def run(cache: Path, order: str) -> tuple[str, bool]:
    """Run the program with its own cache. Return its output and whether it imported the compiler."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, order], capture_output=True, text=True,
        env={**os.environ, "CUTE_CACHE_DIR": str(cache), "CUTE_CACHE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    what, xdsl, mlir = done.stdout.split()
    return what, (xdsl, mlir) != ("False", "False")


@pytest.mark.slow
def test_compiled_kernels_are_found_by_the_next_process(tmp_path: Path) -> None:
    """A second process neither traces nor imports xDSL. Another kernel, or a damaged entry, is compiled again."""
    first, compiled = run(tmp_path, "a")
    assert compiled
    assert run(tmp_path, "a") == (first, False)
    other, compiled = run(tmp_path, "b")
    assert compiled and other != first
    places = [p for p in tmp_path.rglob("*") if p.is_file() and b"made.json" in p.read_bytes()]
    assert len(places) == 2
    for p in places:
        p.write_bytes(b"nothing of ours")
    assert run(tmp_path, "a") == (first, True)


def of(config: AnyConfig) -> str | None:
    return kernel_cache._place(partial(text_of, config), "base", None)  # pyright: ignore[reportPrivateUsage]


def test_cache_keys_of_configurations() -> None:
    """Equal configurations share a cache entry, and different ones do not. Configurations with user functions have no
    entry.
    """
    plain = any_config("f16", "f16", ("k", "k"), False, Epilogue())
    again = any_config("f16", "f16", ("k", "k"), False, Epilogue())
    others = [
        any_config("bf16", "bf16", ("k", "k"), False, Epilogue()),
        any_config("f16", "f16", ("m", "k"), False, Epilogue()),
        any_config("f16", "f16", ("k", "k"), True, Epilogue()),
        any_config("f16", "f16", ("k", "k"), False, Epilogue(alpha=2.0)),
        any_config("f16", "f16", ("k", "k"), False, Epilogue(alpha="arg")),
    ]
    assert of(plain) is not None and of(plain) == of(again)
    assert len({of(plain), *map(of, others)}) == 1 + len(others)

    def hook(value: object, row: object, column: object) -> object:
        return value

    assert of(any_config("f16", "f16", ("k", "k"), False, Epilogue(hook=hook))) is None


@pytest.mark.parametrize("entry", ["{}", "[]", '{"format": 1, "tools": {}, "artifact": 7}', "none"])
def test_invalid_entries_are_ignored(entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cute_dialect.pipelines.cache import Cache

    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path))
    disk, text = Cache(str(tmp_path)), partial(text_of, any_config("f16", "f16", ("k", "k"), False, Epilogue()))
    place = kernel_cache._place(text, "base", None)  # pyright: ignore[reportPrivateUsage]
    assert place is not None
    disk.put_files(place, {"made.json": entry.encode()})
    assert kernel_cache._found(disk, place, text, "x.mlir") is None  # pyright: ignore[reportPrivateUsage]
