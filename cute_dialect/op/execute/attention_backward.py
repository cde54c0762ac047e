"""Backward of attention: the choice of the kernels and their launches.

>>> from cute_dialect.op.problems.attention import Form, form_of
>>> form = Form("bf16", "bhsd", False, 2, 8, 2, 1024, 1024, 128, 0.1, "right", False, 0, 0, True, None)
>>> [kernel.name for kernel in choose_backward(AttentionBackwardProblem(form)).kernels][1]
'attention-backward-bf16-128-right-64x128'
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cute_dialect.kernels.attention.backward import backward_launches
from cute_dialect.kernels.attention.backward_config import (
    BACKWARD_HEADS,
    BackwardConfig,
    backward_config_named,
    default_backward_config,
)
from cute_dialect.op.errors import DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.execute.attention import check_call, head_matrix, log_matrix, readable_matrix
from cute_dialect.op.problems.attention import Form, form_of
from cute_dialect.runtime.arrays import ArrayView, view_of
from cute_dialect.runtime.driver import driver

__all__ = [
    "BACKWARD_CALL", "BACKWARD_OTHERS", "AttentionBackwardProblem", "BackwardDispatch", "backward_form",
    "choose_backward", "computed_gradients", "launch_backward", "missing_feature",
]  # fmt: skip

BACKWARD_CALL = "attention_backward"
BACKWARD_OTHERS = ("lse", "dlse", "cu_seqlens_q", "cu_seqlens_k")
"""Arrays that are not of the type of q."""


class AttentionBackwardProblem(NamedTuple):
    """The backward of an attention call."""

    form: Form
    of_lse: bool = False  # lse has a gradient, too
    deterministic: bool = False  # add the parts of dq in a fixed order
    longest_keys: int | None = None  # keys of the longest packed sequence, if known


class BackwardDispatch(NamedTuple):
    """Kernels of a backward pass."""

    problem: AttentionBackwardProblem
    config: BackwardConfig

    @property
    def kernels(self) -> tuple[RowKernel, ...]:
        """The kernels, in the order of their launches."""
        launches = backward_launches(self.config)
        return tuple([RowKernel(x.name, x.text, (self.config,), x.host) for x in launches])

    def resident(self, multiprocessors: int) -> BackwardDispatch:
        """Return kernels whose blocks are all resident, because those with a fixed order wait for each other.

        >>> form = Form("bf16", "bhsd", False, 2, 8, 2, 1024, 1024, 128, 0.1, "right", False, 0, 0, True, None)
        >>> way = choose_backward(AttentionBackwardProblem(form, deterministic=True))
        >>> way.resident(114).config.sms, way.resident(160).config.sms
        (114, 132)
        """
        return self._replace(config=self.config._replace(sms=min(self.config.sms, multiprocessors)))


def missing_feature(problem: AttentionBackwardProblem) -> str:
    """Return the feature of a call that the kernels do not support, or an empty string."""
    f = problem.form
    features = {
        f"v with head size {f.values}, other than that of q,": f.values != f.size,
        "scale 0": f.scale == 0,
        "softcap": f.softcap > 0,
        "alibi_slopes": f.alibi,
        "mask": bool(f.bias),
        "sinks": bool(f.sinks),
        "seqused_k": f.used,
        "page_table": f.page > 0,
    }
    return next((name for name, used in features.items() if used), "")


def choose_backward(problem: AttentionBackwardProblem, kernel: BackwardConfig | str | None = None) -> BackwardDispatch:
    """Return the kernels of a backward pass.

    Args:
        problem: the call.
        kernel: the name of a kernel, or a configuration whose tiles and stages are used.

    Raises UnsupportedError.
    """
    f, missing, longest = problem.form, missing_feature(problem), problem.longest_keys
    if missing:
        raise UnsupportedError(f"{BACKWARD_CALL}: {missing} is not supported; use torch's autograd of op.attention")
    if longest is not None and (type(longest) is not int or longest < 0):
        raise ShapeError(f"{BACKWARD_CALL}: max_seqlen_k is {longest!r}; pass an int of 0 or more")
    head = next(h for h in BACKWARD_HEADS if h >= f.size)
    try:
        found = backward_config_named(kernel) if isinstance(kernel, str) else kernel
        if found is None:
            found = default_backward_config(f.element, head, f.mask)
        if not isinstance(found, BackwardConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"kernel is {kernel!r}; pass a kernel name or a BackwardConfig")
        config = found._replace(
            element=f.element, head=head, mask=f.mask, from_end=f.from_end, packed=f.packed, dlse=problem.of_lse,
            deterministic=problem.deterministic,
        )  # fmt: skip
        config.check()
        if isinstance(kernel, str) and config.name != kernel:
            raise ValueError(f'kernel "{kernel}" does not match this call; use "{config.name}" or a variant of it')
    except ValueError as e:
        raise UnsupportedError(f"{BACKWARD_CALL}: {e}") from None
    return BackwardDispatch(problem, config)


def launch_backward(one: RowCall, way: BackwardDispatch, results: tuple[Any, Any, Any]) -> None:
    """Compute the gradients of q, k and v to ``results``, which are readable by TMA.

    Args:
        one: a call on q, k, v, out, dout, lse and, if they are used, dlse, cu_seqlens_q and cu_seqlens_k.
        way: the kernels.
        results: dq, dk and dv, like q, k and v.
    """
    if way.config.deterministic and not one.cpu:
        way = way.resident(driver().multiprocessors(one.gpu))
    f, c = way.problem.form, way.config
    operands: dict[str, Any] = {key: readable_matrix(one, key, f) for key in ("q", "k", "v", "out", "dout")}
    operands |= {key: head_matrix(view_of(x), f) for key, x in zip(("dq", "dk", "dv"), results)}
    operands |= {key: log_matrix(one.arrays[key], f) for key in ("lse", "dlse") if key in one.views}
    operands |= {"of_queries": one.views.get("cu_seqlens_q"), "of_keys": one.views.get("cu_seqlens_k")}
    spaces = c.workspaces(f.queries, f.heads, f.batch)
    operands |= {name: one.result(shape, element) for name, (element, shape) in spaces.items()}
    longest = way.problem.longest_keys
    keys = f.keys if longest is None else min(longest, f.keys)
    operands |= {"queries": f.rows, "keys": keys, "scale": f.scale, "left": f.left, "right": f.right}
    for kernel, launch in zip(way.kernels, backward_launches(c)):
        one.launch(kernel, *[operands[name] for name in launch.operands])


def computed_gradients(one: RowCall, way: BackwardDispatch) -> tuple[Any, Any, Any]:
    """Compute the gradients of q, k and v to new arrays."""
    one.expect("dout", one.views["out"].shape)
    check_call(one, way.problem.form)
    shapes = [one.views[key].shape for key in ("q", "k", "v")]
    is_empty = any(0 in shape for shape in shapes)
    with one.on():
        results = one.result(shapes[0]), one.result(shapes[1]), one.result(shapes[2])
        if way.problem.form.packed or is_empty:
            for x in results:  # padding rows have no gradient
                x[...] = 0
        if not is_empty:
            launch_backward(one, way, results)
    return results


def backward_form(
    views: Mapping[str, ArrayView], causal: object, scale: object, window: Any, layout: str, longest: object
) -> Form:
    """Return the checked call whose gradients are computed.  Raises OpError."""
    if "lse" not in views:
        raise ShapeError(f"{BACKWARD_CALL}: lse is None; pass the lse of op.attention(…, lse=True)")
    form = form_of(views, causal, scale, window, True, layout, longest, views["q"].dtype)
    wanted = {"out": (*views["q"].shape[:-1], form.values), "lse": form.logs, "dlse": form.logs}
    for key, shape in wanted.items():
        view = views.get(key)
        if view is not None and view.shape != shape:
            raise ShapeError(f"{BACKWARD_CALL}: {key} has shape {view.shape}; it must have {shape}")
        if view is not None and key != "out" and view.dtype != "f32":
            raise DtypeError(f"{BACKWARD_CALL}: {key} has dtype {view.dtype}; pass an array of f32")
    return form
