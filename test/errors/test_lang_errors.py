"""Complete error messages of the language (``test/errors/lang``). After each error, the next kernel must compile."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lang_corpus import NONE, Case, cases_of, difference, files

import cute_dialect.lang as cute
from cute_dialect.lang.tracing.tracer import active

CASES = [case for path in files() for case in cases_of(path)]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Use a separate compilation cache for these tests."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUTE_CACHE", "1")
        patch.setenv("CUTE_CACHE_DIR", str(folder))
        yield folder


def next_kernel_runs() -> None:
    """Trace, compile and run a new kernel with a branch in a run-time loop."""

    @cute.kernel
    def grow(x: cute.Tensor) -> None:
        for i in range(x.shape[0]):
            if x[i] > 0:
                x[i] = x[i] * 2

    x = np.array([1, -1, 3], np.float32)
    grow(x).launch(grid=1, block=1, device="cpu")
    assert x.tolist() == [2, -1, 6]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_whole_text(case: Case, cache: Path) -> None:
    wrong = difference(case)
    assert not wrong, f"{wrong}\n(python test/errors/lang_corpus.py --bless {case.file} records the new message)"
    assert case.says != [NONE]
    assert active() is None
    next_kernel_runs()
    # A cache entry is written under a name that starts with a dot, then renamed. None may be left unfinished.
    half = [name for _, folders, names in os.walk(cache) for name in (*folders, *names) if name.startswith(".")]
    assert not half


def test_each_name_stands_once() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
