"""A step of an optimizer for a list of parameters in one launch, ``op.adamw_``."""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Sequence
from math import inf, isfinite, log, prod
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.elementwise.adamw import AdamwArrays, AdamwConfig, adamw_text, table_of
from cute_dialect.op.arrays.library import call_operator
from cute_dialect.op.errors import ArgumentError, DtypeError, LayoutError, ShapeError
from cute_dialect.op.execute.array_call import RowCall, RowKernel, is_contiguous
from cute_dialect.op.execute.pointer_arrays import table_like
from cute_dialect.op.keywords import check_keywords, type_name
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Interpreted

_KINDS = ("params", "grads", "exp_avgs", "exp_avg_sqs")
"""Names of the lists."""

_ELEMENTS = ("bf16", "f16", "f32")

_LIMITS: dict[str, tuple[float, float, str]] = {
    "lr": (0, inf, "a finite number of at least 0, or an array"),
    "beta1": (0, 1, "a number from 0 to less than 1"),
    "beta2": (0, 1, "a number from 0 to less than 1"),
    "eps": (0, inf, "a finite number of at least 0"),
    "weight_decay": (0, inf, "a finite number of at least 0"),
    "step": (1, inf, "a number of at least 1, or an f32 array of one element"),
}
"""Least value of each setting, its limit, and words for errors."""

_SPELLINGS = {
    "betas": "pass beta1 and beta2",
    "amsgrad": "it is not supported",
    "state_steps": "pass step, which all share",
    "foreach": "omit it: all parameters are in one launch",
    "fused": "omit it",
    "capturable": "pass step as an array",
}
"""Arguments of ``torch.optim.AdamW``."""


class AdamwSettings(NamedTuple):
    """Numbers of a call; those that are arrays in it have their defaults."""

    step: float = 1.0
    lr: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 1e-2
    maximize: bool = False

    def numbers(self) -> tuple[float, ...]:
        """Return the arguments of the kernel, the fields of AdamwNumbers."""
        b1, b2 = self.beta1, self.beta2
        # The logarithm of 0 is replaced by one whose exponential is 0 in f32.
        first, second = (log(b) if b > 0 else -1e4 for b in (b1, b2))
        sign = -1.0 if self.maximize else 1.0
        return self.lr, self.weight_decay, b2, 1 - b1, 1 - b2, first, second, self.eps, self.step, sign


def adamw_(
    params: Sequence[Array],
    grads: Sequence[Array],
    exp_avgs: Sequence[Array],
    exp_avg_sqs: Sequence[Array],
    step: float | Array,
    *,
    lr: float | Array = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
    maximize: bool = False,
    grad_scale: Array = None,
    found_inf: Array = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> None:
    """Update parameters in place by a step of AdamW, as ``torch.optim.AdamW`` does, all in one launch.

    Parameters of other types, or whose arrays are not all aligned to 16 bytes, have a launch of their own.

    Args:
        params: contiguous arrays, f32, bf16 or f16.
        grads: gradients, each of the type and shape of its parameter; copied if they are not contiguous.  A
            parameter whose gradient is None is skipped; its moments may be None.
        exp_avgs, exp_avg_sqs: first and second moments, f32 or of the types of ``params``; updated in place.
        step: number of this step, 1 for the first one, or an f32 array of one element.  On the GPU the array is not
            checked, and less than 1 gives undefined results, such as NaN.
        lr: learning rate, or an f32 array of one element.
        beta1, beta2, eps, weight_decay, maximize: as in ``torch.optim.AdamW``.
        grad_scale: f32 array of one element that divides the gradients.
        found_inf: f32 array of one element; if it is not 0, nothing changes.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Arrays must not overlap; tied weights are passed once.  CUDA graphs and ``torch.compile`` need ``step`` as an array,
    since a number is a constant.

    Raises:
        OpError: if the arguments are not supported.
    """
    if run:
        check_keywords("adamw_", adamw_, run, spellings=_SPELLINGS)
    lists = tuple([_checked_list(name, x) for name, x in zip(_KINDS, (params, grads, exp_avgs, exp_avg_sqs))])
    for name, x in zip(_KINDS[1:], lists[1:]):
        if len(x) != len(lists[0]):
            raise ArgumentError(f"adamw_: {name} has {len(x)} arrays for {len(lists[0])} params; pass one for each")
    kept = [i for i, grad in enumerate(lists[1]) if grad is not None]
    for name, x in zip(_KINDS, lists):
        for i in kept:
            if x[i] is None:
                raise ArgumentError(f"adamw_: {name}[{i}] is None; pass an array, or None as grads[{i}] to skip it")
    if len(kept) < len(lists[1]):
        lists = tuple([[x[i] for i in kept] for x in lists])
    if type(maximize) is not bool:
        raise ArgumentError(f"adamw_: maximize is {maximize!r}; pass True or False")
    numbers = {"step": step, "lr": lr, "beta1": beta1, "beta2": beta2, "eps": eps, "weight_decay": weight_decay}
    given: dict[str, Array] = {n: x for n, x in numbers.items() if n in ("step", "lr") and _is_array(x)}
    settings = AdamwSettings(
        **{name: _number(name, x) for name, x in numbers.items() if name not in given}, maximize=maximize
    )
    arrays = AdamwArrays(given.get("lr"), given.get("step"), grad_scale, found_inf)
    if not lists[0]:
        return
    torch = sys.modules.get("torch")
    if torch is not None and torch.compiler.is_compiling():
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        def compute() -> None:
            CUTE.adamw_(*[list(x) for x in lists], *arrays, *settings)

        call_operator("adamw_", compute, lists[0][0], device, stream, run, "params")
        return
    updated(lists, arrays, settings, device, stream, run, kept)


def _checked_list(name: str, x: object) -> Sequence[Array]:
    if not isinstance(x, list | tuple):
        raise ArgumentError(f"adamw_: {name} is of type {type_name(x)}; pass a list of arrays")
    return x


def _is_array(x: object) -> bool:
    """Return True for arrays; scalars of NumPy also have a shape."""
    return hasattr(x, "shape") and not isinstance(x, np.generic)


def _number(name: str, x: object) -> float:
    """Return a setting.  Raises ArgumentError."""
    least, limit, words = _LIMITS[name]
    if isinstance(x, bool) or not isinstance(x, Real) or not isfinite(float(x)) or not least <= float(x) < limit:
        raise ArgumentError(f"adamw_: {name} is {x!r}; pass {words}")
    return float(x)


class _Launch(NamedTuple):
    """A launch for parameters of equal types: its kernel, and its table on the device."""

    config: AdamwConfig
    places: tuple[int, ...]  # indices of the arrays with the lowest addresses, one for each list
    table: ArrayView


_PREPARED: OrderedDict[object, list[_Launch]] = OrderedDict()
"""Launches of calls on torch tensors, by their addresses and layouts."""

_MOST = 16


def updated(
    lists: Sequence[Sequence[Array]],
    arrays: AdamwArrays,
    settings: AdamwSettings,
    device: object = None,
    stream: object = None,
    run: Interpreted | None = None,
    indices: Sequence[int] | None = None,
) -> None:
    """Compute :func:`adamw_` for numbers that are checked; ``indices`` are those of the parameters for errors."""
    torch = sys.modules.get("torch")
    # Gradients of autograd may be transposed; they are only read.
    lists = [lists[0], [_contiguous(t) for t in lists[1]], *lists[2:]]
    is_torch = torch is not None and all([isinstance(t, torch.Tensor) for x in lists for t in x])
    key = tuple([(t.data_ptr(), t.shape, t.stride(), t.dtype) for x in lists for t in x]) if is_torch else None
    launches = _PREPARED.get(key)
    if launches is None:
        launches = _launches(lists, device, stream, run, range(len(lists[0])) if indices is None else indices)
        if is_torch:
            _PREPARED[key] = launches
            while len(_PREPARED) > _MOST:
                _PREPARED.popitem(last=False)
    extras = {n: t for n, t in zip(AdamwArrays._fields, arrays) if t is not None}
    for launch in launches:
        given = {name: x[i] for name, x, i in zip(_KINDS, lists, launch.places)}
        one = RowCall("adamw_", {**given, **extras}, device, (*_KINDS, *extras), _ELEMENTS, stream=stream, run=run)
        for name in extras:
            if one.views[name].dtype != "f32":
                words = " or an f32 array of one element" if name in ("step", "lr") else "an f32 array of one element"
                number = "a number" * (name in ("step", "lr"))
                raise DtypeError(f"adamw_: {name} has dtype {one.views[name].dtype}; pass {number}{words}")
            if one.views[name].shape not in ((), (1,)):
                raise ShapeError(f"adamw_: {name} has shape {one.views[name].shape}; it must have one element")
        if one.cpu and not ("found_inf" in extras and one.on_host("found_inf")[0]):
            for name in [n for n in ("step", "lr") if n in extras]:
                _number(name, one.on_host(name)[0])
        c = launch.config._replace(arrays=tuple(extras))
        with one.on():
            vectors = [one.numbers(given[name]) for name in _KINDS]
            scalars = [one.flat(name) for name in extras]
            kernel = RowKernel(c.name, adamw_text, (c,))
            one.launch(kernel, *vectors, launch.table, *settings.numbers(), *scalars)
    if torch is not None and is_torch:
        torch.autograd.graph.increment_version([*lists[0], *lists[2], *lists[3]])


def _contiguous(t: Array) -> Array:
    """Return an array of torch or NumPy, or a contiguous copy of it."""
    if isinstance(t, np.ndarray):
        return np.ascontiguousarray(t)
    return t.contiguous() if type(t).__module__.partition(".")[0] == "torch" else t


def _launches(
    lists: Sequence[Sequence[Array]],
    device: object,
    stream: object,
    run: Interpreted | None,
    indices: Sequence[int],
) -> list[_Launch]:
    """Check the arrays, and return the launches for them.  Raises OpError."""
    names = [[f"{name}[{i}]" for i in indices] for name in _KINDS]
    given = {n: t for ns, x in zip(names, lists) for n, t in zip(ns, x)}
    one = RowCall("adamw_", given, device, tuple(given), _ELEMENTS, stream=stream, run=run)
    classes: dict[object, list[int]] = {}
    views = [_checked(one, of) for of in zip(*names)]
    _check_overlap(one)
    for i, (p, _, m, _) in enumerate(views):
        if 0 not in p.shape:
            # On the CPU each parameter has a launch, because no view reaches several arrays.
            c = _config(views[i])
            classes.setdefault((c, i if p.device < 0 else 0, m.dtype), []).append(i)
    return [_joined([views[i] for i in members], members) for members in classes.values()]


def _config(views: Sequence[ArrayView]) -> AdamwConfig:
    """Return the kernel for the types and the alignment of a parameter and its state."""
    p, _, m, _ = views
    aligned = all([view.pointer % 16 == 0 for view in views])
    return AdamwConfig(p.dtype, m.dtype, 128 // max(BITS[p.dtype], BITS[m.dtype]) if aligned else 1)


def _checked(one: RowCall, names: Sequence[str]) -> list[ArrayView]:
    """Return the views of a parameter, its gradient and its moments.  Raises DtypeError, LayoutError, ShapeError."""
    views = [one.views[name] for name in names]
    p, (of_p, *_) = views[0], names
    if p.dtype not in _ELEMENTS:
        raise DtypeError(f"adamw_: {of_p} has dtype {p.dtype}; it must have one of {', '.join(_ELEMENTS)}")
    for name, view, allowed in zip(names[1:], views[1:], ({p.dtype}, {p.dtype, "f32"}, {views[2].dtype})):
        if view.dtype not in allowed:
            raise one.wrong_type(name, " or ".join(sorted(allowed)))
        if view.shape != p.shape:
            raise ShapeError(f"adamw_: {name} has shape {view.shape}; it must have {p.shape}, like {of_p}")
    for name, view in zip(names, views):
        if 0 not in view.shape and not is_contiguous(view):
            raise LayoutError(f"adamw_: {name} has strides {view.strides}; pass contiguous arrays")
    return views


def _check_overlap(one: RowCall) -> None:
    """Raise LayoutError if an array that is written shares memory with another one; all are contiguous."""
    spans: list[tuple[int, int, bool, str]] = []
    for name, view in one.views.items():
        size = prod(view.shape) * BITS[view.dtype] // 8
        if size:
            spans.append((view.pointer, view.pointer + size, not name.startswith("grads"), name))
    ends = {True: (0, ""), False: (0, "")}  # the furthest ends of arrays that are written, or only read
    for start, end, is_written, name in sorted(spans):
        for written, (last, other) in ends.items():
            if start < last and (written or is_written):
                raise LayoutError(f"adamw_: {name} overlaps {other}; pass separate memory, and tied parameters once")
        ends[is_written] = max(ends[is_written], (end, name))


def _joined(views: Sequence[Sequence[ArrayView]], members: Sequence[int]) -> _Launch:
    """Return the launch for some parameters, whose indices are ``members``."""
    counts = [prod(p.shape) for p, *_ in views]
    offsets, places = np.zeros((len(views), 4), np.int64), list[int]()
    for i, kind in enumerate(zip(*views)):
        pointers = np.array([view.pointer for view in kind], np.int64)
        places.append(members[int(pointers.argmin())])
        offsets[:, i] = (pointers - pointers.min()) // (BITS[kind[0].dtype] // 8)
    table = table_like(table_of(counts, offsets), views[0][0])
    return _Launch(_config(views[0]), tuple(places), table)
