"""Attention plan: type, head size, mask and kernel are set once, for many runs.

::

    plan = op.Attention(element="bf16", head_size=128, causal=True)
    arguments = plan.run(q, k, v)                        # arguments.out
    call = plan.bind(q, k, v, out)                       # call(): the driver's launch and nothing else
    print(plan.explain(q, k))

Operands are never copied.  A plan raises an error for arrays that the kernel cannot read in place.
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from cute_dialect.kernels.attention.config import ELEMENTS, AttentionConfig
from cute_dialect.kernels.attention.dropout import kept_of_arrays, kept_share
from cute_dialect.op.arrays.dtypes import checked_element
from cute_dialect.op.errors import DtypeError, LayoutError, ShapeError, UnsupportedError
from cute_dialect.op.execute.arguments import check_bound, in_order, wait_for
from cute_dialect.op.execute.array_call import RowCall, RowKernel, library
from cute_dialect.op.execute.attention import (
    OPTIONAL_ARRAYS,
    Dispatch,
    check_call,
    computed,
    state_of_call,
    tensor_memory_way,
    way_of,
)
from cute_dialect.op.execute.attention_backward import (
    BACKWARD_OTHERS,
    GRADIENTS,
    AttentionBackwardProblem,
    BackwardDispatch,
    backward_form,
    choose_backward,
    computed_gradients,
)
from cute_dialect.op.execute.saved import Fields, SavedKernels, module_of
from cute_dialect.op.explanations.attention import (
    AttentionExplanation,
    TensorMemoryExplanation,
    explain_attention,
)
from cute_dialect.op.keywords import check_flag, checks_keywords
from cute_dialect.op.plans.base import Recorded
from cute_dialect.op.problems.attention import (
    DESCALES,
    WINDOW_AT_END,
    Form,
    Numbers,
    form_of,
    is_readable,
    visible_keys,
)
from cute_dialect.op.select.backends import ATTENTION_CCS, WGMMA, selected_cc, unmeasured
from cute_dialect.runtime.arrays import ArrayView, current_stream_of_torch, stream_of

if TYPE_CHECKING:  # pragma: no cover
    from typing import Self, Unpack

    from cute_dialect.op.signature_types import Array, Interpreted, Window
    from cute_dialect.runtime.launch import CompiledModule

__all__ = ["Attention", "AttentionArguments"]

_CALL = "Attention"


class AttentionArguments:
    """Results of a run: ``out``, and ``lse`` if the plan has it, otherwise None."""

    def __init__(self, out: Array, lse: Array, wait: Callable[[], None] | None):
        self.out, self.lse, self._wait = out, lse, wait

    def sync(self) -> None:
        """Wait for the launches; runs with numpy arrays or on the interpreter have already waited."""
        wait, self._wait = self._wait, None
        if wait is not None:
            wait()


class _Planned(RowCall):
    """A call whose kernels may come from a saved plan."""

    saved: SavedKernels | None = None

    def module(self, kernel: RowKernel) -> CompiledModule:
        """Return a compiled kernel for the device of the arrays."""
        return module_of(kernel, self.saved, cpu=self.cpu)


class _Bound(_Planned):
    """A call that prepares its launches, in ``calls``, instead of making them."""

    def __init__(self, name: str, arrays: dict[str, Any], others: tuple[str, ...], elements: tuple[str, ...]) -> None:
        super().__init__(name, arrays, None, others, elements)
        self.calls: list[Callable[..., None]] = []
        check_bound(name, self.x.device)

    def _copied(self, view: ArrayView, strides: tuple[int, ...] | None = None) -> ArrayView:
        """Raise LayoutError, because a copy would keep the current values."""
        name = next(n for n, x in self.views.items() if x is view)
        raise LayoutError(f"{self.name}: {name} has strides {view.strides}, which the kernel cannot read; pass a copy")

    def launch(self, kernel: RowKernel, *given: Any) -> None:
        """Prepare a launch."""
        self.calls.append(self.module(kernel).kernel(kernel.host).bind(*[x for x in given if x is not None]))


class Attention(Recorded):
    """A plan of ``softmax(scale Q K^T) V``.

    Args:
        element: bf16, f16, or 8-bit floats, e4m3 or e5m2.
        dtype: type of the result of 8-bit operands, bf16 by default.
        head_size: elements per head.
        kernel, split_keys: as in :func:`cute_dialect.op.attention`; they are attributes that may be set later.
        kernel_cc: 90 (the default) for kernels of sm_90; 100, 103 or 110 for those with weights in tensor memory, which
            support heads up to 128 of bf16 and f16, ``causal`` and ``lse``.
        causal, scale, window, softcap, dropout_p, lse, layout: as in :func:`cute_dialect.op.attention`.

    Raises OpError.

    >>> plan = Attention(element="bf16", head_size=128, causal=True)
    >>> plan.explain((2, 16, 4096, 128), (2, 4, 4096, 128)).kernels[0].name
    'attention-bf16-128-right-128x128'
    """

    call: ClassVar[str] = _CALL

    @checks_keywords
    def __init__(
        self, *, element: object, head_size: int, causal: bool | str = False, scale: float | None = None,
        window: Window | None = None, softcap: float = 0.0, dropout_p: float = 0.0,
        lse: bool = False, layout: str = "bhsd", dtype: object = None, kernel: AttentionConfig | str | None = None,
        split_keys: int | None = None, kernel_cc: int | None = None,
    ):  # fmt: skip
        super().__init__()
        self.chip = selected_cc(_CALL, None, kernel_cc, ATTENTION_CCS)
        self.element, self.head_size = checked_element(element, f"{_CALL}: element"), head_size
        if self.element not in ELEMENTS:
            raise DtypeError(f"{_CALL}: element {self.element} is not supported; use one of {', '.join(ELEMENTS)}")
        self.dtype = None if dtype is None else checked_element(dtype, f"{_CALL}: dtype")
        self.causal, self.scale, self.window, self.lse, self.layout = causal, scale, window, lse, layout
        self.softcap, self.dropout_p, self.kernel, self.split_keys = softcap, dropout_p, kernel, split_keys
        self._last: Callable[[], Dispatch] | None = None
        self.explain((1, 1, 1, head_size), (1, 1, 1, head_size))

    def _form(self, one: RowCall, longest: int | None) -> Form:
        """Return the checked call.  Raises OpError."""
        if one.element != self.element:
            raise DtypeError(f"{one.name}: q has dtype {one.element}, but the plan has element {self.element}")
        form = form_of(
            one.views,
            self.causal,
            self.scale,
            self.window,
            self.lse,
            self.layout,
            longest,
            one.element,
            Numbers(self.softcap, dtype=self.dtype, dropout_p=self.dropout_p),
        )
        if form.size != self.head_size:
            raise ShapeError(f"{one.name}: the arrays have head size {form.size}, but the plan has {self.head_size}")
        for key in ("q", "k", "v"):
            view = one.views[key]
            if not is_readable(view) and 0 not in view.shape:
                raise LayoutError(
                    f"{one.name}: {key} has address {view.pointer:#x} and strides {view.strides}, but needs contiguous "
                    "heads at multiples of 16 bytes; use op.attention, which copies it"
                )
        return form

    def _way(self, one: _Planned, longest: int | None) -> tuple[Form, Dispatch]:
        """Return the checked call and its kernels.  Raises OpError."""
        form, one.saved = self._form(one, longest), self.saved
        check_call(one, form)
        backend = unmeasured(self.chip)
        if backend is None:
            return form, self._served(one.name, lambda plan: way_of(form, plan.kernel, plan.split_keys))
        return form, self._served(one.name, lambda plan: tensor_memory_way(form, backend, plan.kernel, plan.split_keys))

    def run(
        self, q: Array, k: Array, v: Array, out: Array = None, *, cu_seqlens_q: Array = None,
        cu_seqlens_k: Array = None, sinks: Array = None, alibi_slopes: Array = None, mask: Array = None,
        rng_state: Array = None, max_seqlen_q: int | None = None, seqused_k: Array = None, page_table: Array = None,
        q_descale: Array = None, k_descale: Array = None, v_descale: Array = None, sync: bool = True,
        device: object = None, stream: object = None, **run: Unpack[Interpreted],
    ) -> AttentionArguments:  # fmt: skip
        """Compute the result and return it: ``.out``, ``.lse``, ``.sync()``.

        Args:
            out: array for the result; default: a new array.
            sync: wait for the result.
            cu_seqlens_q, cu_seqlens_k, max_seqlen_q, seqused_k, page_table: as in :func:`cute_dialect.op.attention`.
            sinks, alibi_slopes, mask, rng_state, q_descale, k_descale, v_descale: as in the function.
            device, stream, run: as in the function.

        Raises OpError before anything is written.
        """
        rng_state = state_of_call(f"{_CALL}.run", q, self.dropout_p, rng_state)
        given = (cu_seqlens_q, cu_seqlens_k, sinks, alibi_slopes, mask, rng_state, seqused_k, page_table)
        factors = dict(zip(DESCALES, (q_descale, k_descale, v_descale)))
        arrays = {"q": q, "k": k, "v": v, **dict(zip(OPTIONAL_ARRAYS, given)), **factors, "out": out}

        def call() -> _Planned:
            others = *OPTIONAL_ARRAYS, "out"
            return _Planned(f"{_CALL}.run", arrays, device, others, ELEMENTS, stream=stream, run=run)

        def launch() -> AttentionArguments:
            self._refuse_gradients("attention", arrays.values())
            one = call()
            form, way = self._way(one, max_seqlen_q)
            one.check_backend(unmeasured(self.chip) or WGMMA)
            self._last = lambda: way
            with one.on():
                results = computed(one, form, way)
            if way.form.keys and 0 not in one.x.shape:
                self._record(way)
            wait = wait_for(one.gpu, stream_of(stream, (one.x,))) if one.x.device >= 0 else None
            return AttentionArguments(results[0], results[1] if self.lse else None, wait)

        def replay(results: Any) -> AttentionArguments:
            self._last = lambda: self._way(call(), max_seqlen_q)[1]
            number = q.device.index or 0
            wait = wait_for(number, current_stream_of_torch()(number))
            out, logs = results if self.lse else (results, None)
            return AttentionArguments(out, logs, wait)

        def result_of(done: AttentionArguments) -> Any:
            return (done.out, done.lse) if self.lse else done.out

        how = None
        if device is None and stream is None and not run:
            how = (self.element, self.head_size, self.causal, self.scale, self.window, self.softcap, self.lse)
            how += (self.chip, self.layout, self.dtype, self.kernel, self.split_keys, self.dropout_p, max_seqlen_q)
        done = self._run(how, arrays.values(), launch, replay, result_of)
        if sync:
            done.sync()
        return done

    def bind(
        self, q: Array, k: Array, v: Array, out: Array, lse: Array = None, *, cu_seqlens_q: Array = None,
        cu_seqlens_k: Array = None, sinks: Array = None, alibi_slopes: Array = None, mask: Array = None,
        rng_state: Array = None, max_seqlen_q: int | None = None, seqused_k: Array = None, page_table: Array = None,
        q_descale: Array = None, k_descale: Array = None, v_descale: Array = None,
    ) -> Callable[..., None]:  # fmt: skip
        """Return a checked and prepared call: ``call()`` or ``call(stream)`` only makes the driver's launches.

        Args:
            q, k, v, out: arrays on a GPU.
            lse: array for ``lse``, if the plan has it.
            rng_state: seed and offset of dropout, which each call reads; needed if the plan has dropout.

        Raises OpError.
        """
        rng_state = rng_state if self.dropout_p else None
        given = (cu_seqlens_q, cu_seqlens_k, sinks, alibi_slopes, mask, rng_state, seqused_k, page_table)
        factors = dict(zip(DESCALES, (q_descale, k_descale, v_descale)))
        arrays = {"q": q, "k": k, "v": v, **dict(zip(OPTIONAL_ARRAYS, given)), **factors, "out": out}
        for name, array in (("out", out), ("lse", lse if self.lse else q)):
            if array is None:
                raise ShapeError(f"{_CALL}.bind: {name} is None; pass an array")
        arrays |= {"lse": lse} if self.lse else {}
        one = _Bound(f"{_CALL}.bind", arrays, (*OPTIONAL_ARRAYS, "out", "lse"), ELEMENTS)
        form, way = self._way(one, max_seqlen_q)
        if self.lse and one.views["lse"].dtype != "f32":
            raise one.wrong_type("lse", "f32")
        if way.form.keys == 0:
            raise ShapeError(f"{_CALL}.bind: queries see no keys, so there is nothing to launch; use run")
        one.check_backend(unmeasured(self.chip) or WGMMA)
        computed(one, form, way)
        return in_order(one.calls, one)

    def backward(
        self, dout: Array, q: Array, k: Array, v: Array, out: Array, lse: Array, dlse: Array = None, *,
        cu_seqlens_q: Array = None, cu_seqlens_k: Array = None, max_seqlen_q: int | None = None,
        max_seqlen_k: int | None = None, rng_state: Array = None, deterministic: bool = False, device: object = None,
        stream: object = None, **run: Unpack[Interpreted],
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """Return the gradients of q, k and v; the arguments are those of :func:`cute_dialect.op.attention_backward`."""
        arrays = {"q": q, "k": k, "v": v, "out": out, "dout": dout, "lse": lse, "dlse": dlse}
        arrays |= {"cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k}
        arrays |= {"rng_state": rng_state if self.dropout_p else None}
        one = RowCall(f"{_CALL}.backward", arrays, device, BACKWARD_OTHERS, ("bf16", "f16"), stream=stream, run=run)
        return computed_gradients(one, self._backward_way(one, max_seqlen_q, max_seqlen_k, deterministic))

    def _backward_way(
        self, one: RowCall, longest: int | None, longest_keys: int | None, deterministic: bool
    ) -> BackwardDispatch:
        """Return the kernels of a backward pass.  Raises OpError."""
        check_flag(one.name, "deterministic", deterministic)
        form = backward_form(
            one.views, self.causal, self.scale, self.window, self.layout, longest, self.softcap, self.dropout_p
        )
        return choose_backward(AttentionBackwardProblem(form, "dlse" in one.views, deterministic, longest_keys))

    def bind_backward(
        self, dout: Array, q: Array, k: Array, v: Array, out: Array, lse: Array, dq: Array, dk: Array, dv: Array,
        dlse: Array = None, *, cu_seqlens_q: Array = None, cu_seqlens_k: Array = None, max_seqlen_q: int | None = None,
        max_seqlen_k: int | None = None, rng_state: Array = None, deterministic: bool = False,
    ) -> Callable[..., None]:  # fmt: skip
        """Return a checked and prepared call of :meth:`backward`: ``call()`` or ``call(stream)`` only launches.

        Args:
            dq, dk, dv: arrays for the gradients, like q, k and v.  Rows of no packed sequence are set to 0 once, now.
            dout, q, k, v, out, lse, dlse: arrays on a GPU, as for :meth:`backward`.
            cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, rng_state, deterministic: as for :meth:`backward`.

        Raises OpError.
        """
        arrays = {"q": q, "k": k, "v": v, "out": out, "dout": dout, "lse": lse, "dq": dq, "dk": dk, "dv": dv}
        for name in GRADIENTS:
            if arrays[name] is None:
                raise ShapeError(f"{_CALL}.bind_backward: {name} is None; pass an array")
        arrays |= {"dlse": dlse, "cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k}
        arrays |= {"rng_state": rng_state if self.dropout_p else None}
        one = _Bound(f"{_CALL}.bind_backward", arrays, BACKWARD_OTHERS, ("bf16", "f16"))
        computed_gradients(one, self._backward_way(one, max_seqlen_q, max_seqlen_k, deterministic))
        return in_order(one.calls, one)

    def reference(
        self,
        q: Array,
        k: Array,
        v: Array,
        *,
        sinks: Array = None,
        alibi_slopes: Array = None,
        mask: Array = None,
        rng_state: Array = None,
        descales: Sequence[Array] = (None, None, None),
    ) -> Any:
        """Return the result of :meth:`run`, computed with numpy in f64 and not rounded, and ``lse`` if the plan has
        it.

        Packed sequences are not supported.  ``descales`` are the factors of 8-bit q, k and v, or None.  With dropout,
        ``rng_state`` is that of the run.
        """
        import numpy as np

        def exact(x: Any) -> Any:
            return np.asarray(x.detach().cpu().double() if hasattr(x, "detach") else x, np.float64)

        a, b, c = (exact(x).swapaxes(1, 2) if self.layout == "bshd" else exact(x) for x in (q, k, v))
        share, factors = a.shape[1] // b.shape[1], (b.shape[0], b.shape[1])

        def factor(descale: Array) -> Any:
            """Return the factors of the heads of q."""
            if descale is None:
                return 1.0
            return np.repeat(np.broadcast_to(exact(descale), factors), share, 1)[:, :, None, None]

        b, c = np.repeat(b, share, 1), np.repeat(c, share, 1) * factor(descales[2])
        direction, left, right = visible_keys(self.causal, self.window)
        heads, away = a.shape[1], b.shape[2] - a.shape[2]
        own = np.arange(a.shape[2])[:, None] + (away if direction in ("bottom_right", WINDOW_AT_END) else 0)
        at = np.arange(b.shape[2])[None]
        seen = np.ones((a.shape[2], b.shape[2]), bool)
        if left is not None:
            seen &= at >= own - left
        if right is not None:
            seen &= at <= own + right
        scale = self.head_size**-0.5 if self.scale is None else self.scale
        scores = a @ b.swapaxes(2, 3) * scale * factor(descales[0]) * factor(descales[1])
        if self.softcap:
            scores = self.softcap * np.tanh(scores / self.softcap)
        if alibi_slopes is not None:
            distance = np.abs(np.arange(a.shape[2])[:, None] + away - at)
            scores = scores - exact(alibi_slopes).reshape(-1, heads, 1, 1) * distance
        if mask is not None:
            found = exact(mask)
            is_mask = "bool" in str(mask.dtype)
            scores = np.where(found != 0, scores, -np.inf) if is_mask else scores + found
        scores = np.where(seen, scores, -np.inf)
        most = scores.max(-1, keepdims=True, initial=-1e300)
        logits = None if sinks is None else exact(sinks).reshape(1, heads, 1, 1)
        if logits is not None:
            most = np.maximum(most, logits)
        powers = np.exp(scores - most)
        total = powers.sum(-1, keepdims=True) + (0 if logits is None else np.exp(logits - most))
        if self.dropout_p:
            state = np.asarray(rng_state.cpu() if hasattr(rng_state, "cpu") else rng_state)
            powers = powers * kept_of_arrays(state, self.dropout_p, powers.shape) / kept_share(self.dropout_p)
        out = powers @ c / np.where(total > 0, total, 1)
        out = out.swapaxes(1, 2) if self.layout == "bshd" else out
        with np.errstate(divide="ignore"):
            return (out, (np.log(total) + most)[..., 0]) if self.lse else out

    def explain(
        self, q: Array, k: Array, v: Array = None, **more: Any
    ) -> AttentionExplanation | TensorMemoryExplanation:
        """Return the kernels for arrays or shapes; :func:`cute_dialect.op.prefetch` compiles them.

        Args:
            more: further arguments of :meth:`run`.
        """
        return explain_attention(
            q, k, v, causal=self.causal, scale=self.scale, window=self.window, softcap=self.softcap,
            dropout_p=self.dropout_p, lse=self.lse, layout=self.layout, dtype=self.dtype, kernel=self.kernel,
            split_keys=self.split_keys, element=self.element, kernel_cc=self.chip, **more,
        )  # fmt: skip

    def compile(self, q: Array, k: Array, v: Array = None, **more: Any) -> tuple[CompiledModule, ...]:
        """Return the compiled kernels of :meth:`explain`; :meth:`ir` and similar methods then describe them."""
        found = self.explain(q, k, v, **more)
        self._last = lambda: found.way
        return tuple([library(kernel) for kernel in found.way.kernels])

    def _shown(self) -> RowKernel:
        """Return the last kernel.  Raises UnsupportedError if nothing was run or compiled."""
        if self._last is None:
            raise UnsupportedError(f"{_CALL}: the kernel depends on the arrays; call run or compile first")
        return self._last().kernels[0]

    # --------------------------------------------------------------------------------------------------------- saved

    @classmethod
    def of_settings(cls, settings: Fields) -> Self:
        """Return the plan with these settings, as returned by :meth:`settings`."""
        values, window = dict(settings), settings["window"]
        values["window"] = None if window is None else tuple(window)
        return cls(**values)

    def settings(self) -> Fields:
        """Return the arguments of the constructor as data."""
        kernel = self.kernel.name if isinstance(self.kernel, AttentionConfig) else self.kernel
        return {
            "element": self.element, "head_size": self.head_size, "causal": self.causal, "scale": self.scale,
            "window": self.window, "softcap": self.softcap, "dropout_p": self.dropout_p, "lse": self.lse,
            "layout": self.layout, "kernel": kernel, "dtype": self.dtype, "split_keys": self.split_keys,
            "kernel_cc": self.chip,
        }  # fmt: skip

    def _take(self, choice: Fields) -> None:
        self.kernel, self.split_keys = choice["kernel"], choice["split_keys"]

    def __repr__(self) -> str:
        return f"<Attention of {self.element}, heads of {self.head_size}, causal {self.causal!r}>"
