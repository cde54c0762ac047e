"""The compile cache in use: hits, keys, damage, size limit, concurrent processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cute_dialect.pipelines import compile, compiler
from cute_dialect.pipelines.cache import Cache, default_cache, key_of
from cute_dialect.pipelines.compilation import CompileRequest, Timing
from cute_dialect.pipelines.compiler import compile_module
from cute_dialect.tools.cute_cache import main as cute_cache

TEXT = """
gpu.module @kernels {
  gpu.func @twice(%x: !cute.memref<f32, gmem, "32:1">) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c = cute.make_coord(%t) : (i32) -> !cute.coord<"?">
    %v = cute.memref.load(%x, %c) : (!cute.memref<f32, gmem, "32:1">, !cute.coord<"?">) -> f32
    %w = arith.addf %v, %v : f32
    cute.memref.store(%x, %c, %w) : (!cute.memref<f32, gmem, "32:1">, !cute.coord<"?">, f32) -> ()
    gpu.return
  }
}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CUTE_CACHE", "1")
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CUTE_CACHE_SIZE", raising=False)
    monkeypatch.setattr(compiler, "_MEMORY", {})
    return tmp_path / "cache"


def stages_of(text: str, **options: object) -> list[str]:
    timings: list[Timing] = []
    compile_module(CompileRequest(text, emit="ptx", **options), timings=timings)  # type: ignore[arg-type]
    return [t.stage for t in timings]


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clear the in-memory cache, as in another process."""
    monkeypatch.setattr(compiler, "_MEMORY", {})


def test_the_second_time_comes_from_memory_and_then_from_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "parse" in stages_of(TEXT)
    assert stages_of(TEXT) == ["cache"]
    forget(monkeypatch)
    assert stages_of(TEXT) == ["cache"]
    assert "parse" in stages_of(TEXT, cache=False)


def test_a_cached_module_is_the_compiled_one_and_runs_on_the_cpu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile(TEXT, emit="ptx")
    forget(monkeypatch)
    second = compile(TEXT, emit="ptx")
    assert second is not first
    assert second.ptx == first.ptx
    assert second.manifest == first.manifest
    x = np.arange(32, dtype=np.float32)
    second.kernel("twice")(x, device="cpu", grid=(1, 1, 1))
    assert (x == 2 * np.arange(32)).all()


@pytest.mark.parametrize(
    "change", [{"opt_level": 1}, {"features": "+ptx86"}, {"chip": "sm_90"}, {"pipeline": "nvptx=O=2"}]
)
def test_every_option_is_part_of_the_key(folder: Path, change: dict[str, object]) -> None:
    stages_of(TEXT)
    assert "parse" in stages_of(TEXT, **change)


def test_the_text_and_the_sources_are_part_of_the_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stages_of(TEXT)
    assert "parse" in stages_of(TEXT + "\n")
    from cute_dialect.pipelines import cache

    monkeypatch.setattr(cache, "_sources_digest", lambda: "another compiler")
    assert "parse" in stages_of(TEXT)


def test_keys_depend_on_contents_not_paths(tmp_path: Path) -> None:
    from cute_dialect.pipelines import cache

    def package(where: str, text: str) -> str:
        folder = tmp_path / where / "inner"
        folder.mkdir(parents=True)
        (folder / "a.py").write_text(text)
        return cache.contents(str(tmp_path / where))

    assert package("one", "x = 1") == package("two", "x = 1") != package("three", "x = 2")
    versions = " ".join(cache.tools().values())
    assert str(Path(cache.__file__).parents[1]) not in versions and "site-packages" not in versions


def test_parts_of_a_key_are_separated() -> None:
    assert key_of(["ab", "c"]) != key_of(["a", "bc"])


def test_oldest_entries_are_evicted_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [TEXT.replace("@twice", f"@twice{i}") for i in range(3)]
    cache = default_cache()
    assert cache is not None
    for i, text in enumerate(texts[:2]):
        stages_of(text)
        for e in cache.entries():
            if e.used > time.time() - 60:
                os.utime(os.path.join(e.path, "cute-cache-entry"), (1000 + i, 1000 + i))
    forget(monkeypatch)
    assert stages_of(texts[0]) == ["cache"]  # texts[1] is now the least recently used.
    size = max(e.size for e in cache.entries())
    monkeypatch.setenv("CUTE_CACHE_SIZE", str(2 * size + size // 2))
    stages_of(texts[2])
    forget(monkeypatch)
    assert stages_of(texts[0]) == ["cache"]
    assert stages_of(texts[2]) == ["cache"]
    assert "parse" in stages_of(texts[1])


def test_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_CACHE", "0")
    stages_of(TEXT)
    assert "parse" in stages_of(TEXT)
    assert not folder.exists()


def test_sources_are_read_again_only_when_they_were_touched(tmp_path: Path, folder: Path) -> None:
    from cute_dialect.pipelines import cache

    file = tmp_path / "package" / "a.py"
    file.parent.mkdir()
    digests: list[str] = []
    for text, age in (("x = 1", 10), ("x = 2", 10), ("x = 3", 0)):
        file.write_text(text)
        when = time.time() - age
        os.utime(file, (when, when))
        digests.append(cache._stamps(str(file.parent))[0])
    assert len(set(digests)) == 3
    kept = Cache(str(folder))
    assert kept.note("sources-0") == ""
    kept.put_note("sources-0123456789abcdef", "text")
    assert kept.note("sources-0123456789abcdef") == "text" and kept.entries() == []
    kept.clear()
    assert not Path(kept.folder).exists()


def test_one_process_compiles_a_key(folder: Path) -> None:
    """One of three processes compiles the key, and two wait for it. A stale lock file does not block them."""
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from cute_dialect.pipelines.cache import Cache\n"
        "made = Path(sys.argv[2])\n"
        "with Cache(sys.argv[1]).locked('a' * 64):\n"
        "    if not made.exists():\n"
        "        time.sleep(0.3)\n"
        "        assert not made.exists()\n"
        "        made.touch()\n"
        "        print('made')\n"
    )
    cache = Cache(str(folder))
    with cache.locked("a" * 64):
        pass
    shard = Path(cache.folder, "aa")
    assert list(shard.iterdir()) == []
    (shard / (".lock-" + "a" * 16)).touch()
    command = [sys.executable, "-c", program, str(folder), str(folder / "made")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert sorted(p.communicate(timeout=60)[0] for p in running) == ["", "", "made\n"]
    assert list(shard.iterdir()) == []
    (shard / (".lock-" + "b" * 16)).touch()
    with cache.locked("a" * 64):
        cache.prune()
        assert [p.name for p in shard.iterdir()] == [".lock-" + "a" * 16]
        with cache.locked("a" * 64, patience=0):  # With no patience, the body runs without the lock.
            pass
    cache.clear()
    assert not Path(cache.folder).exists()


@pytest.mark.slow
def test_many_processes_at_once(folder: Path) -> None:
    """Concurrent writers, readers and a clearing process all get the right code."""
    program = (
        "import sys\n"
        "from cute_dialect.runtime.artifact import Artifact, CodeObject\n"
        "from cute_dialect.pipelines.cache import Cache\n"
        "c = Cache(sys.argv[1], 1 << 14)\n"
        "m = {'format': FORMAT, 'kernels': [], 'chip': 'x', 'modules': []}\n"
        "for i in range(60):\n"
        "    key = f'{i % 5:064x}'\n"
        "    found = c.get(key)\n"
        "    assert found is None or found.code[0].ptx == 'p' * (1000 + i % 5), key\n"
        "    c.put(key, Artifact(m, (CodeObject('k', 'p' * (1000 + i % 5), None, None, ''),)))\n"
        "    if i % 20 == 19: c.clear()\n"
    ).replace("FORMAT", repr(__import__("cute_dialect.runtime.manifest", fromlist=["FORMAT"]).FORMAT))
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(folder)], stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for p in running:
        _, err = p.communicate(timeout=120)
        assert p.returncode == 0, err
    cache = Cache(str(folder))
    for e in cache.entries():
        assert cache.get(e.key) is not None


def test_the_program(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert cute_cache(["ls"]) == 0
    assert capsys.readouterr().out.startswith("0 entries, 0 B of 1.0 GiB in ")
    stages_of(TEXT)
    assert cute_cache(["ls"]) == 0
    out = capsys.readouterr().out
    assert "@twice (sm_90a)" in out and "1 entry, " in out
    assert cute_cache(["dir"]) == 0
    assert capsys.readouterr().out.startswith(str(folder))
    assert cute_cache(["prune"]) == 0
    assert capsys.readouterr().out == "0 entries removed, 0 B\n"
    assert cute_cache(["clear"]) == 0
    assert capsys.readouterr().out.startswith("1 entry removed, ")
    monkeypatch.setenv("CUTE_CACHE_SIZE", "lots")
    assert cute_cache(["ls"]) == 1
    said = "CUTE_CACHE_SIZE: expected a size in bytes such as 500M (K, M or G), got 'lots'"
    assert capsys.readouterr().err == f"cute-cache: error: {said}\n"
    monkeypatch.delenv("CUTE_CACHE_SIZE")
    assert cute_cache(["prune", "--size", "1T"]) == 1
    said = "--size: expected a size in bytes such as 500M (K, M or G), got '1T'"
    assert capsys.readouterr().err == f"cute-cache: error: {said}\n"
    monkeypatch.setenv("CUTE_CACHE", "0")
    assert cute_cache(["ls"]) == 1
    assert "the cache is disabled" in capsys.readouterr().err
