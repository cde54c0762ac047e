"""``cute-bench op --groups flex``: flex attention and its gradients compared with torch's compiled ``flex_attention``.

The cases are causal attention, a window of 512 keys, packed documents, ALiBi and a soft cap, for 4 sequences of 4096
tokens and 16 heads.  FLOPs count the visible pairs.

    cute-bench op --groups flex --json flex.json
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect import op
from cute_dialect.op.epilogue.score_functions import trace_scores
from cute_dialect.op.functions.flex_attention import block_mask_kernel
from cute_dialect.tools.bench.runner import Text, Trial, check_limit, normal, tuned_compile

if TYPE_CHECKING:  # pragma: no cover
    import torch

_DOCUMENTS = (700, 1300, 296, 1000, 800)
"""Lengths of the documents of 4096 tokens."""

_LIMIT = 2.0**-5
"""Largest error relative to the largest value of a result or a gradient."""


class Flex(NamedTuple):
    """A call of flex attention, or its gradients."""

    kind: str  # causal, window, document, alibi or softcap
    head: int
    backward: bool = False
    batch: int = 4
    heads: int = 16
    tokens: int = 4096

    @property
    def operation(self) -> str:
        """The kind, followed by ``backward``."""
        return f"flex {self.kind}" + " backward" * self.backward

    @property
    def name(self) -> str:
        return f"{self.operation} bf16 d{self.head} h{self.heads} {self.batch}x{self.tokens}"

    def functions(self, device: str) -> tuple[Callable[..., Any] | None, Callable[..., Any]]:
        """Return ``score_mod`` and ``mask_mod``."""
        import torch

        parts = [n * self.tokens // sum(_DOCUMENTS) for n in _DOCUMENTS[1:]]
        ends = torch.tensor([self.tokens - sum(parts), *parts], device=device)
        documents = torch.repeat_interleave(torch.arange(len(ends), device=device, dtype=torch.int32), ends)
        slopes = 4 * 2.0 ** -torch.arange(1, self.heads + 1, device=device, dtype=torch.float32)

        def causal(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
            return q_idx >= kv_idx

        def window(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
            return (q_idx >= kv_idx) & (q_idx - kv_idx < 512)

        def document(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
            return (documents[q_idx] == documents[kv_idx]) & (q_idx >= kv_idx)

        def alibi(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
            return score + slopes[h] * (kv_idx - q_idx)

        def softcap(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
            return 20.0 * torch.tanh(score / 20.0)

        masks, scores = {"window": window, "document": document}, {"alibi": alibi, "softcap": softcap}
        return scores.get(self.kind), masks.get(self.kind, causal)

    def kernels(self) -> Mapping[str, Text]:
        import torch

        score_mod, mask_mod = self.functions("cpu")
        blocks = -(-self.tokens // 128)
        lists: dict[str, Any] = {
            name: torch.zeros(1, 1, blocks, *[blocks] * ("num" not in name), dtype=torch.int32)
            for name in ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices")
        }
        mask = SimpleNamespace(mask_mod=mask_mod, BLOCK_SIZE=(128, 128), seq_lengths=(self.tokens,) * 2, **lists)
        shape = (self.batch, self.heads, self.tokens, self.head)
        found = op.explain(
            op.flex_attention, shape, shape, score_mod=score_mod, block_mask=mask, return_lse=self.backward,
            element="bf16",
        )  # fmt: skip
        functions = trace_scores("flex", None, mask_mod).graph
        kernels = [*found.kernels, *(found.backward.kernels if self.backward else ())]
        kernels += [] if functions is None else [block_mask_kernel(functions)]
        return {kernel.name: kernel.text for kernel in kernels}

    def tiny(self) -> Flex:
        """Return a call with one sequence of few tokens."""
        return self._replace(batch=1, heads=1, tokens=70)

    def trial(self, device: str = "cuda", compiled: bool = False) -> Trial:
        """Create the operands; the peer is torch's operator, compiled."""
        import torch
        from torch.nn.attention.flex_attention import flex_attention

        torch.manual_seed(0)
        score_mod, mask_mod = self.functions(device)
        q, k, v, grad = (
            normal("bf16", self.batch, self.heads, self.tokens, self.head, device=device) for _ in range(4)
        )
        leaves = [x.requires_grad_(self.backward) for x in (q, k, v)]
        mask = op.create_block_mask(mask_mod, None, None, self.tokens, self.tokens, device)
        how: dict[str, Any] = {"score_mod": score_mod, "block_mask": mask}
        call = partial(op.flex_attention, **how, **({"device": "cpu"} if device == "cpu" else {}))
        peers: dict[str, Callable[[], object]] = {}
        if device == "cuda":
            peer = tuned_compile(flex_attention)
            peers["torch.compile"] = self._timed(partial(peer, **how), leaves, grad)
        ours = self._timed(call, leaves, grad)
        pairs = self.visible(mask_mod, device).sum().item() * self.batch * self.heads
        traffic = 4 * q.nbytes * (2 if self.backward else 1)
        flops = 4.0 * self.head * pairs * (2.5 if self.backward else 1)

        def check() -> float:
            wanted = self.exact([x.detach()[-1, -1] for x in leaves], grad[-1, -1], score_mod, mask_mod)
            found: Any = ours()
            parts = found if self.backward else [found]
            of = wanted[1:] if self.backward else wanted[:1]
            return max([check_limit(self.name, x[-1, -1], y, _LIMIT * y.abs().max()) for x, y in zip(parts, of)])

        return Trial(check, ours, peers, traffic, flops, "TFLOP/s")

    def _timed(self, call: Callable[..., Any], leaves: list[torch.Tensor], grad: torch.Tensor) -> Callable[[], object]:
        """Return the call, or its gradients."""
        import torch

        if not self.backward:
            return partial(call, *leaves)
        return partial(torch.autograd.grad, call(*leaves), leaves, grad, retain_graph=True)

    def visible(self, mask_mod: Callable[..., Any], device: str) -> torch.Tensor:
        """Return the visible pairs of a sequence."""
        import torch

        at = torch.arange(self.tokens, device=device)
        return mask_mod(0, 0, at[:, None], at)

    def exact(
        self, operands: list[torch.Tensor], grad: torch.Tensor, score_mod: Callable[..., Any] | None,
        mask_mod: Callable[..., Any],
    ) -> list[torch.Tensor]:  # fmt: skip
        """Return the result and the gradients of the last head in f64."""
        import torch

        q, k, v = (x.double().requires_grad_() for x in operands)
        at = torch.arange(self.tokens, device=q.device)
        scores = q @ k.T * self.head**-0.5
        if score_mod is not None:
            scores = score_mod(scores, self.batch - 1, self.heads - 1, at[:, None], at)
        hidden = ~self.visible(mask_mod, str(q.device))
        out = scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v
        return [out.detach(), *torch.autograd.grad(out, (q, k, v), grad.double())]


KINDS = ("causal", "window", "document", "alibi", "softcap")

CASES = tuple([Flex(kind, head, backward) for kind in KINDS for head in (128, 64) for backward in (False, True)])

GROUPS = {"flex": CASES}
