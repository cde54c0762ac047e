"""``op.cascade_attention`` on the interpreter, compared with float64."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from test_attention_cache import CHECKS, reference

from cute_dialect import op
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.functions import cascade_attention as calls


def paged(x: Any, page: int) -> tuple[Any, Any]:
    """Return (B, S, H, D) as pages in random order, with NaN in unused rows, and the page table."""
    b, s, *rest = x.shape
    each = -(-s // page)
    pages = np.full((b * each + 1, page, *rest), np.nan, np.float16)
    table = np.random.default_rng(5).permutation(len(pages))[: b * each].reshape(b, each).astype(np.int32)
    for i in range(b):
        for j in range(each):
            rows = x[i, j * page : (j + 1) * page]
            pages[table[i, j], : len(rows)] = rows
    return pages, table


class Case:
    """Arrays of a cascade in layout bshd, its arguments, and the keys and values of each sequence.

    NaN follows the keys in use.
    """

    def __init__(
        self, queries: int, heads: tuple[int, int], keys: tuple[int, int], used: list[int], grown: int = 0,
        groups: list[int] | None = None, used_shared: list[int] | None = None, pages: tuple[int, int] = (0, 0),
    ) -> None:  # fmt: skip
        rng, batch = np.random.default_rng(3), len(used)
        count = 1 if groups is None else len(groups) - 1

        def normal(*shape: int) -> Any:
            return rng.standard_normal((*shape, 64)).astype(np.float16)

        q = normal(batch, queries, heads[0])
        shared, own = ([normal(b, s, heads[1]) for _ in range(2)] for b, s in ((count, keys[0]), (batch, keys[1])))
        self.arguments: dict[str, Any] = {"seqused_k": np.array(used, np.int32), "seqused_k_offset": grown}
        if groups is not None:
            self.arguments["cu_groups"] = np.array(groups, np.int32)
        used_shared = used_shared or [keys[0]] * count
        self.arguments["seqused_shared"] = np.array(used_shared, np.int32)
        self.sequences: list[list[Any]] = []
        for b, n in enumerate(used):
            group = 0 if groups is None else sum(begin <= b for begin in groups) - 1
            first = used_shared[group]
            self.sequences.append([np.concatenate([x[group, :first], y[b, : n + grown]]) for x, y in zip(shared, own)])
        for arrays, lengths in ((shared, used_shared), (own, [n + grown for n in used])):
            for x in arrays:
                for b, n in enumerate(lengths):
                    x[b, n:] = np.nan
        for name, arrays, page in (("page_table_shared", shared, pages[0]), ("page_table", own, pages[1])):
            if page:
                arrays[:], (self.arguments[name], _) = zip(*[paged(x, page) for x in arrays])
        self.arrays = (q, *shared, *own)

    def check(self, out: Any, logs: Any, sinks: Any = None, causal: bool = True) -> None:
        """Compare (B, S, H, D) and (B, H, S) with the reference."""
        for b, (k, v) in enumerate(self.sequences):
            want, log = reference(self.arrays[0][b], k, v, causal=causal)
            if sinks is not None:
                total = np.logaddexp(log, sinks[:, None])
                want, log = want * np.exp(log - total).T[..., None], total
            assert (np.abs(out[b] - want) <= 2.0**-10 * (np.abs(want) + 0.5)).all()
            assert (np.abs(logs[b] - log) < 1e-5).all()


@pytest.mark.slow
@pytest.mark.end_to_end  # Three kernels are compiled and run.
@pytest.mark.sample("one group")
@pytest.mark.parametrize(
    "given",
    [
        pytest.param(((1, (2, 1), (150, 40), [30, 0, 5]), {"grown": 3}), id="one group"),
        pytest.param(((2, (4, 2), (150, 40), [30, 2, 5, 40, 9]),
                      {"groups": [0, 2, 2, 5], "used_shared": [70, 20, 150]}), id="groups"),
        pytest.param(((1, (4, 2), (150, 40), [30, 2, 5, 40, 9]),
                      {"groups": [0, 4, 5], "used_shared": [70, 150], "pages": (16, 8)}), id="pages"),
        pytest.param(((3, (2, 2), (100, 8), [3 + i % 6 for i in range(40)]), {"groups": [0, 30, 40]}), id="many rows"),
        pytest.param(((3, (4, 2), (100, 8), [3 + i % 6 for i in range(40)]), {}), id="many rows of one group"),
    ],
)  # fmt: skip
def test_cascades(given: Any) -> None:
    case = Case(*given[0], **given[1])
    out, logs = op.cascade_attention(
        *case.arrays, **case.arguments, layout="bshd", lse=True, device="cpu", checks=CHECKS
    )
    case.check(out, logs)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_layouts_and_sinks(layout: str) -> None:
    """Queries that see all keys, and sinks, which are keys of one slice."""
    case, sinks = Case(2, (4, 2), (300, 40), [30, 2, 40]), np.array([0.5, -1, 2, 0], np.float32)
    arrays = [x if layout == "bshd" else np.ascontiguousarray(x.swapaxes(1, 2)) for x in case.arrays]
    out, logs = op.cascade_attention(
        *arrays, **case.arguments, causal=False, sinks=sinks, layout=layout, lse=True, device="cpu", checks=CHECKS
    )
    case.check(out if layout == "bshd" else out.swapaxes(1, 2), logs, sinks, causal=False)


@pytest.mark.slow
def test_no_shared_keys() -> None:
    case = Case(1, (4, 4), (0, 40), [40, 40])
    arrays = [x.swapaxes(1, 2) for x in case.arrays]
    out, logs = op.cascade_attention(*arrays, lse=True, sinks=np.zeros(4, np.float32), device="cpu")
    case.check(out.swapaxes(1, 2), logs, np.zeros(4))
    none = [x[:, :, :0] for x in arrays[1:]]
    out, logs = op.cascade_attention(arrays[0], *none, lse=True, device="cpu")
    assert (out == 0).all() and (logs == -np.inf).all()


@pytest.mark.slow
def test_replays_and_a_compiled_call() -> None:
    torch = pytest.importorskip("torch")
    from launched_here import Seen, here

    case = Case(2, (4, 2), (150, 40), [30, 2, 5, 40, 9], groups=[0, 2, 2, 5], used_shared=[70, 20, 150])
    arrays = [torch.tensor(x) for x in case.arrays]
    given = {name: torch.tensor(x) if isinstance(x, np.ndarray) else x for name, x in case.arguments.items()}
    with here(Seen()) as seen, patch.object(calls, "_KNOWN", KnownCalls()):
        for turn in range(3):
            out, logs = op.cascade_attention(*arrays, **given, layout="bshd", lse=True)
            case.check(out.numpy(), logs.numpy())
            if turn == 0:
                first = seen.first
            arrays = [x.clone() for x in arrays]
        assert seen.first == first == 3 and seen.again == 6

    @torch.compile(fullgraph=True, backend="aot_eager")
    def step(*arrays: Any) -> Any:
        return op.cascade_attention(*arrays, **given, layout="bshd", lse=True, device="cpu")

    case.check(*(x.numpy() for x in step(*arrays)))


Q, K = np.zeros((4, 2, 1, 64), np.float16), np.zeros((1, 2, 16, 64), np.float16)
OWN, TABLE, GROUPS = np.zeros((4, 2, 8, 64), np.float16), np.zeros((1, 1), np.int32), np.array([0, 4], np.int32)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"k_shared": K[:, :1]}, op.ShapeError, "k_shared has shape .* pass an array of rank 4 with 2 heads of 64"),
        ({"v_shared": K[:, :, :8]}, op.ShapeError, "v_shared has shape .* and as many keys as k_shared"),
        ({"k_shared": OWN, "v_shared": OWN}, op.ShapeError, "k_shared has 4 groups; pass cu_groups, the first"),
        ({"page_table_shared": TABLE.astype(np.int64)}, op.DtypeError, "page_table_shared has dtype i64; pass an i32"),
        ({"page_table_shared": TABLE[0]}, op.ShapeError, r"pass a table \(G, P\), and pages of 1 key or more"),
        ({"page_table_shared": TABLE + 7}, op.ShapeError, r"page_table_shared\[0, 0\] is 7; pass pages from 0 to 0"),
        ({"cu_groups": GROUPS.astype(np.int64)}, op.DtypeError, "cu_groups has dtype i64; pass an i32 array"),
        ({"cu_groups": GROUPS[:1]}, op.ShapeError, r"cu_groups has shape \(1,\); pass an array of shape \(2,\)"),
        ({"cu_groups": np.zeros(4, np.int32)[::2]}, op.LayoutError, "cu_groups has strides"),
        ({"v": OWN[..., :20]}, op.UnsupportedError, "^cascade_attention: head size 20"),
        ({"page_table": TABLE[0]}, op.ShapeError, "^cascade_attention: page_table has shape"),
        (
            {"cu_groups": GROUPS - 1},
            op.ShapeError,
            r"^cascade_attention: cu_groups is \[-1, 3\]; pass offsets that rise from 0",
        ),
        ({"cu_groups": GROUPS // 2}, op.ShapeError, "cu_groups ends at 2; pass offsets that end at 4"),
        ({"cu_groups": GROUPS, "max_group": 2}, op.ShapeError, "max_group is 2, but a group has 4 sequences; pass 4"),
        ({"max_group": -2}, op.UnsupportedError, "max_group is -2; pass an int of 0 or more"),
        ({"seqused_shared": np.array([17], np.int32)}, op.ShapeError, "seqused_shared has a length of 17; pass length"),
        ({"causal": "top_left"}, op.ArgumentError, "causal is 'top_left'"),
        ({"window": 3}, op.ArgumentError, "'window'"),
    ],
)
def test_errors(given: dict[str, Any], error: type[op.OpError], words: str) -> None:
    arguments: dict[str, Any] = {"q": Q, "k_shared": K, "v_shared": K, "k": OWN, "v": OWN}
    with pytest.raises(error, match=words):
        op.cascade_attention(**(arguments | given), device="cpu")


def test_gradients_are_refused() -> None:
    torch = pytest.importorskip("torch")
    q, k, own = (torch.tensor(x) for x in (Q, K, OWN))
    with pytest.raises(op.UnsupportedError, match="gradients are not supported; use torch"):
        op.cascade_attention(q.requires_grad_(), k, k, own, own, device="cpu")
