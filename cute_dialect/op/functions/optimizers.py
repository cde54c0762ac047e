"""A step of an optimizer for a list of parameters in one launch, ``op.adamw_``."""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
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
from cute_dialect.op.execute.table_calls import ListCalls, TableLaunches
from cute_dialect.op.keywords import check_keywords, type_name
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from numpy.typing import NDArray

    from cute_dialect.op.execute.pointer_arrays import PlacedLaunch
    from cute_dialect.op.signature_types import Array, Interpreted
    from cute_dialect.runtime.launch import Kernel

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
    kept: Sequence[int] = range(len(lists[0]))
    if any([t is None for x in lists for t in x]):
        kept = [i for i, grad in enumerate(lists[1]) if grad is not None]
        for name, x in zip(_KINDS, lists):
            for i in kept:
                if x[i] is None:
                    raise ArgumentError(f"adamw_: {name}[{i}] is None; pass an array, or None as grads[{i}] to skip it")
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


CALLS = ListCalls()


def updated(
    lists: Sequence[Sequence[Array]],
    arrays: AdamwArrays,
    settings: AdamwSettings,
    device: object = None,
    stream: object = None,
    run: Interpreted | None = None,
    indices: Sequence[int] | None = None,
) -> None:
    """Compute :func:`adamw_` with checked numbers. Errors name the parameters by ``indices``.

    The numbers are not part of the key of a cached call: they differ from step to step, and a replay gets its own.
    """
    torch = sys.modules.get("torch")
    extras = {n: t for n, t in zip(AdamwArrays._fields, arrays) if t is not None}
    tensors = [*lists[0], *lists[1], *lists[2], *lists[3], *extras.values()]
    is_usual = device is None and stream is None and not run

    def compute() -> Callable[[], TableLaunches | None]:
        one = _Update(lists, extras, settings, device, stream, run, indices or range(len(lists[0])))
        one.launch()
        return one.replayed

    CALLS.call((len(lists[0]), tuple(extras)), tensors, settings.numbers(), compute, is_usual)
    if torch is not None and isinstance(lists[0][0], torch.Tensor):
        torch.autograd.graph.increment_version([*lists[0], *lists[2], *lists[3]])


def _contiguous(t: Array) -> Array:
    """Return an array of torch or NumPy, or a contiguous copy of it."""
    if isinstance(t, np.ndarray):
        return np.ascontiguousarray(t)
    return t.contiguous() if type(t).__module__.partition(".")[0] == "torch" else t


class _Class(NamedTuple):
    """Parameters of equal types, which have one launch."""

    config: AdamwConfig
    members: tuple[int, ...]  # indices of the parameters
    counts: tuple[int, ...]  # their elements
    sizes: tuple[int, ...]  # bytes of an element of the parameters, the gradients and the two moments

    def table(self, pointers: NDArray[np.int64]) -> tuple[tuple[int, ...], NDArray[np.int64]]:
        """Return the lowest address of each kind, and the table of the kernel, for arrays at ``pointers`` (4, …)."""
        mine = pointers[:, self.members]
        lowest = mine.min(axis=1)
        offsets = (mine - lowest[:, None]) // np.array(self.sizes, np.int64)[:, None]
        return tuple(lowest.tolist()), table_of(self.counts, offsets.T)


def _overlap(pointers: Sequence[int], sizes: NDArray[np.int64]) -> tuple[int, int] | None:
    """Return the indices of two arrays that share memory, and of which at least one is written, or None.

    Args:
        pointers: addresses of the contiguous arrays: of all parameters, then all gradients, then the moments.
        sizes: their bytes.
    """
    starts, count = np.array(pointers, np.int64), len(pointers) // 4
    order = np.lexsort((sizes, starts))
    starts, ends = starts[order], (starts + sizes)[order]
    is_written = (order < count) | (order >= 2 * count)
    reached = np.maximum.accumulate(ends)  # the furthest end of the arrays up to each one
    of_written = np.maximum.accumulate(np.where(is_written, ends, 0))
    meets = starts[1:] < np.where(is_written[1:], reached[:-1], of_written[:-1])
    if not meets.any():
        return None
    second = int(meets.argmax()) + 1
    others = (ends[:second] > starts[second]) & (is_written[:second] | is_written[second])
    return int(order[others.argmax()]), int(order[second])


def _is_alone(view: ArrayView) -> bool:
    """Return True if a parameter has its own launch: on the CPU, where no view reaches several arrays."""
    return view.device < 0


class _Update:
    """A call on arrays, checked when the object is created.  Raises OpError."""

    def __init__(
        self,
        lists: Sequence[Sequence[Array]],
        extras: Mapping[str, Array],
        settings: AdamwSettings,
        device: object,
        stream: object,
        run: Interpreted | None,
        indices: Sequence[int],
    ) -> None:
        # Gradients of autograd may be transposed; they are only read.
        lists = [lists[0], [_contiguous(t) for t in lists[1]], *lists[2:]]
        names = [[f"{name}[{i}]" for i in indices] for name in _KINDS]
        given = {n: t for ns, x in zip(names, lists) for n, t in zip(ns, x)} | dict(extras)
        self._call = one = RowCall("adamw_", given, device, tuple(given), _ELEMENTS, stream=stream, run=run)
        self._settings, self._extras = settings, tuple(extras)
        self._views = [_checked(one, of) for of in zip(*names)]
        self._check_scalars()
        live = [i for i, (p, *_) in enumerate(self._views) if 0 not in p.shape]
        arrays = [self._views[i][kind] for kind in range(4) for i in live]
        self._arrays = arrays
        self._sizes = np.array([prod(x.shape) * BITS[x.dtype] // 8 for x in arrays], np.int64)
        found = _overlap([x.pointer for x in arrays], self._sizes)
        if found is not None:
            first, second = ([names[kind][i] for kind in range(4) for i in live][n] for n in found)
            raise LayoutError(f"adamw_: {second} overlaps {first}; pass separate memory, and tied parameters once")
        self._classes = self._classes_of(live)

    def _check_scalars(self) -> None:
        """Check the arrays in place of numbers."""
        one = self._call
        for name in self._extras:
            if one.views[name].dtype != "f32":
                words = " or an f32 array of one element" if name in ("step", "lr") else "an f32 array of one element"
                number = "a number" * (name in ("step", "lr"))
                raise DtypeError(f"adamw_: {name} has dtype {one.views[name].dtype}; pass {number}{words}")
            if one.views[name].shape not in ((), (1,)):
                raise ShapeError(f"adamw_: {name} has shape {one.views[name].shape}; it must have one element")
        if one.cpu and not ("found_inf" in self._extras and one.on_host("found_inf")[0]):
            for name in [n for n in ("step", "lr") if n in self._extras]:
                _number(name, one.on_host(name)[0])

    def _classes_of(self, live: Sequence[int]) -> list[_Class]:
        """Return the classes of parameters, with their indices among those that are not empty."""
        found: dict[tuple[AdamwConfig, int], list[int]] = {}
        for n, i in enumerate(live):
            p, _, m, _ = self._views[i]
            aligned = all([view.pointer % 16 == 0 for view in self._views[i]])
            vector = 128 // max(BITS[p.dtype], BITS[m.dtype]) if aligned else 1
            c = AdamwConfig(p.dtype, m.dtype, vector, self._extras)
            found.setdefault((c, n if _is_alone(p) else 0), []).append(n)
        classes: list[_Class] = []
        for (c, _), members in found.items():
            views = [self._views[live[n]] for n in members]
            counts = tuple([prod(p.shape) for p, *_ in views])
            classes.append(_Class(c, tuple(members), counts, tuple([BITS[x.dtype] // 8 for x in views[0]])))
        return classes

    def _prepare(self) -> list[tuple[Kernel, list[object]]]:
        """Return the kernel of each class, and its arguments."""
        one = self._call
        found: list[tuple[Kernel, list[object]]] = []
        pointers = np.array([x.pointer for x in self._arrays], np.int64).reshape(4, -1)
        scalars = [one.flat(name) for name in self._extras]
        for c in self._classes:
            _, host = c.table(pointers)
            lowest = pointers[:, c.members].argmin(axis=1)
            vectors = [one.numbers(self._arrays[k * pointers.shape[1] + c.members[n]]) for k, n in enumerate(lowest)]
            kernel = one.module(RowKernel(c.config.name, adamw_text, (c.config,))).kernel("launch")
            table = table_like(host, self._arrays[0])
            found.append((kernel, [*vectors, table, *self._settings.numbers(), *scalars]))
        return found

    def launch(self) -> None:
        """Launch the kernels."""
        self._call.check_gpu()
        self._launches = self._prepare()
        with self._call.on():
            for kernel, given in self._launches:
                self._call.run(kernel, *given)

    def replayed(self) -> TableLaunches | None:
        """Return the launches at other addresses, or None on the CPU."""
        if self._call.cpu or not self._launches:
            return None
        prepared = [kernel.by_address(*given, numbers=True) for kernel, given in self._launches]
        launches = [launch for launch in prepared if launch is not None]
        if len(launches) < len(prepared):
            return None
        like, sizes, classes = self._call.x._replace(keep=None), self._sizes, self._classes

        def placed(addresses: tuple[int, ...]) -> list[PlacedLaunch] | None:
            if _overlap(addresses, sizes) is not None:
                return None
            pointers = np.array(addresses, np.int64).reshape(4, -1)
            found: list[PlacedLaunch] = []
            for launch, c in zip(launches, classes):
                lowest, host = c.table(pointers)
                table = table_like(host, like)
                found.append((launch, (*lowest, table.pointer), table))
            return found

        return TableLaunches(placed, self._arrays, [self._call.flat(name) for name in self._extras])


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
