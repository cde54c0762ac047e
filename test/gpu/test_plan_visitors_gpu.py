"""Plans with traced epilogues on the GPU: equal to the f64 function when run, bound, saved, or called with numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from visited_products import CASES, Visited  # noqa: E402

FOLDER = "plans"


@pytest.fixture(autouse=True)
def kernels(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Return the prebuilt kernels (``python test/gpu/build.py DIR``)."""
    monkeypatch.setenv("CUTE_KERNELS", str(folder))


def there(given: dict[str, Any]) -> dict[str, Any]:
    return {n: torch.from_numpy(x).cuda() if isinstance(x, np.ndarray) else x for n, x in given.items()}


def equal(found: dict[str, Any], want: Any) -> None:
    wanted = want if isinstance(want, dict) else dict(zip("DF", want)) if isinstance(want, tuple) else {"D": want}
    assert set(found) == set(wanted)
    for name, x in wanted.items():
        got = found[name].double().cpu().numpy() if torch.is_tensor(found[name]) else found[name]
        np.testing.assert_array_equal(got, x, err_msg=name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_run_and_bind(case: Visited) -> None:
    made, args = case.operands()
    plan = case.planned()
    want = plan.reference(**made, visitor_args=args)
    given, more = there(made), there(args)
    done = plan.run(**given, visitor_args=more, split_k=case.split)
    equal(done.results, want)
    for t in done.results.values():
        t.fill_(7)
    call = plan.bind(**given, visitor_args=more | done.results, split_k=case.split)
    for stream in (None, torch.cuda.Stream()):
        torch.cuda.synchronize()
        call() if stream is None else call(stream)
        torch.cuda.synchronize()
        equal(done.results, want)
        for t in done.results.values():
            t.fill_(7)


@pytest.mark.parametrize("name", ["rows", "reductions", "pairs"])
def test_numpy(name: str) -> None:
    case = next(c for c in CASES if c.name == name)
    made, args = case.operands()
    done = case.planned().run(**made, visitor_args=args, sync=False)
    done.sync()
    equal(done.results, case.planned().reference(**made, visitor_args=args))
