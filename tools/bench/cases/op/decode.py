"""``cute-bench op --groups decode``: attention of 1 to 16 queries on a cache, contiguous or in pages.

Peers are the back ends of torch's ``scaled_dot_product_attention``, which read contiguous keys.  Calls are bound by
memory, so a copy that moves as many bytes is timed, too.

    cute-bench op --groups decode --json decode.json
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect import op
from cute_dialect.tools.bench.cases.op.attention import Attention, compare_with_peer, peers_of
from cute_dialect.tools.bench.runner import Text, Trial

if TYPE_CHECKING:  # pragma: no cover
    import torch


class Decode(NamedTuple):
    """Attention of a few queries on keys and values that are contiguous, or pages in random order."""

    call: Attention
    page: int  # keys per page; 0: contiguous

    @property
    def operation(self) -> str:
        """The kind: ``decode contiguous``, or ``decode`` with the size of a page."""
        return f"decode page {self.page}" if self.page else "decode contiguous"

    @property
    def name(self) -> str:
        c = self.call
        sizes = f"{c.batch}x{c.queries}x{c.keys}"
        return f"{self.operation} {c.element} d{c.head} h{c.heads}/{c.heads_k} {sizes}"

    @property
    def pages(self) -> int:
        """Pages of a sequence."""
        return -(-self.call.keys // self.page)

    def kernels(self) -> Mapping[str, Text]:
        c, found = self.call, self.call.explained()[0]
        if self.page:
            q, k = (c.batch, c.queries, c.heads, c.head), (c.batch * self.pages, self.page, c.heads_k, c.head)
            found = op.explain(
                op.attention, q, k, layout="bshd", causal=c.causal or False, page_table=(c.batch, self.pages),
                seqused_k=(c.batch,), element=c.element,
            )  # fmt: skip
        return {kernel.name: kernel.text for kernel in found.kernels or ()}

    def tiny(self) -> Decode:
        """Return a call with one key head and a page that is partly filled."""
        c = self.call
        shared = c.heads // c.heads_k
        keys = max(self.page, 48) + c.keys % 8 + 1
        return self._replace(call=c._replace(batch=1, heads=shared, heads_k=1, keys=keys))

    def trial(self, device: str = "cuda", compiled: bool = False) -> Trial:
        """Create the operands; pages hold copies of the keys and values of the peers."""
        call = self._paged(device) if self.page else self.call.trial(device)
        traffic = self.call.traffic
        return call._replace(work=traffic, unit="TB/s", copy=_copy_of(traffic) if device == "cuda" else None)

    def _paged(self, device: str) -> Trial:
        import torch

        c = self.call
        q, k, v = c.operands(device)
        table = torch.randperm(c.batch * self.pages, device=device).view(c.batch, self.pages).int()
        used = torch.full((c.batch,), c.keys, device=device, dtype=torch.int32)
        keys, values, rows = self._in_pages(k, table), self._in_pages(v, table), q.transpose(1, 2)
        how: dict[str, Any] = {"page_table": table, "seqused_k": used}
        how |= {"layout": "bshd", "causal": c.causal or False, **({"device": "cpu"} if device == "cpu" else {})}
        peers = peers_of(c, q, k, v, None) if device == "cuda" else {}

        def ours() -> torch.Tensor:
            return op.attention(rows, keys, values, **how)

        def check() -> float:
            result = ours().transpose(1, 2)
            for peer in peers.values():
                compare_with_peer(self.name, result, peer())
            return c.check(result, q, k, v)

        return Trial(check, ours, peers, c.traffic, c.traffic, "TB/s")

    def _in_pages(self, x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        """Return (pages, keys per page, H, D) of (B, H, S, D), with NaN past the last key."""
        import torch

        batch, heads, keys, size = x.shape
        pages = torch.full((batch * self.pages, self.page, heads, size), float("nan"), dtype=x.dtype, device=x.device)
        whole = keys // self.page  # full pages of a sequence
        for b, places in enumerate(table.long()):
            rows = x[b].transpose(0, 1)
            pages[places[:whole]] = rows[: whole * self.page].reshape(whole, self.page, heads, size)
            if keys % self.page:
                pages[places[whole], : keys % self.page] = rows[whole * self.page :]
        return pages


def _copy_of(traffic: int) -> Callable[[], object]:
    """Return a copy that reads and writes ``traffic`` bytes in all."""
    import torch

    source, target = torch.zeros(2, traffic // 2, dtype=torch.uint8, device="cuda").unbind()
    return lambda: target.copy_(source)


def decoding(
    keys: int, batch: int, queries: int = 1, heads: int = 32, heads_k: int = 8, head: int = 128, element: str = "bf16",
    page: int = 0,
) -> Decode:  # fmt: skip
    """Return a case; several queries are causal, and the last one is aligned with the last key."""
    causal = "bottom_right" if queries > 1 else ""
    return Decode(Attention(element, head, batch, heads, heads_k, queries, keys, causal, None, "bshd", (), False), page)


CASES = (
    *(decoding(16384, 16, queries, page=page) for page in (0, 128, 64, 16) for queries in (1, 4, 16)),
    *(decoding(16384, 16, page=page) for page in (256, 1)),
    *(decoding(keys, batch, page=64) for keys, batch in ((4096, 1), (65536, 1), (1024, 128), (4096, 64))),
    *(decoding(16384, 16, heads=heads, page=64) for heads in (8, 64)),
    *(decoding(16384, 16, head=head, page=64) for head in (64, 256)),
)

GROUPS = {"decode": CASES}
