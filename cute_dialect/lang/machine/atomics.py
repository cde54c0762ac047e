"""Atomic operations, and loads and stores with memory ordering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cute_dialect.lang.machine.instructions import REGISTER_TYPES, emit_machine, emit_ptx, in_kernel, pointer
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values.dtypes import Numeric, type_of_mlir
from cute_dialect.lang.values.folding import literal
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from cute_dialect.lang.values.pointers import Pointer
    from cute_dialect.lang.values.signature_types import Number

__all__ = [
    "atomic_add", "atomic_and", "atomic_cas", "atomic_exch", "atomic_fmax", "atomic_fmin", "atomic_max", "atomic_min",
    "atomic_or", "atomic_xor", "load", "red", "store",
]  # fmt: skip
"""The names of ``cute.arch``."""


def element(ptr: object, at: SSAValue, value: object, what: str) -> Any:
    """Return ``value`` as a number of the pointer's element type.  Raises F234 for another type."""
    text = str(at.type.data.element)  # pyright: ignore
    known = getattr(ptr, "dtype", None)
    signed = type(value).signed if isinstance(value, Numeric) else getattr(known, "signed", True)
    kind = type_of_mlir(text, signed=signed)
    if isinstance(value, Numeric):
        if type(value).mlir_type != text and not value.is_static:
            raise KernelTypeError(
                "F234",
                f"{what}: the pointer has element type {kind!r}, got {value.describe()}",
                hint=f"convert with .to({kind!r})",
            )
        return kind(value)
    if isinstance(value, int | float) and (kind.is_float or isinstance(value, int)):
        return literal(kind, value)
    raise KernelTypeError("F234", f"{what}: the pointer has element type {kind!r}, got {value!r}")


def _access(
    at: SSAValue, kind: type[Numeric], value: SSAValue | None, sem: str | None, scope: str | None, cache: str, what: str
) -> Any:
    """Load ``*at``, or store ``value`` there: as a plain access, a strong access, or with a cache operator."""
    t = in_kernel(what)
    if sem is None and not cache:
        view = t.value("cute.make_view", [at, t.static('!cute.layout<"1:0">')])
        where = t.static('!cute.coord<"0">')
        if value is not None:
            t.op("cute.memref.store", [view, where, value])
            return None
        return kind.of(t.value("cute.memref.load", [view, where]))
    from cute_dialect.lang.values.pointers import Pointer  # late: start-up

    if kind.mlir_type not in REGISTER_TYPES:
        raise KernelTypeError("F253", f"{what}: sem and cop need elements of 16 to 64 bits, got {kind!r}")
    address = Pointer.of(at).toint().ssa
    order = f".relaxed.{scope or 'gpu'}" if sem else ""
    space: AddressSpace = at.type.data.space  # pyright: ignore[reportAttributeAccessIssue]
    letters = f"b{kind.width}"
    if value is not None:
        emit_ptx(f"st{order}{space.ptx}{cache}.{letters} [$0], $1;", [address, value], [])
        return None
    return emit_ptx(f"ld{order}{space.ptx}{cache}.{letters} $0, [$1];", [address], [kind])[0]


def _check_order(sem: str | None, scope: str | None, what: str) -> dict[str, object]:
    if sem not in (None, "relaxed", "acquire", "release", "acq_rel"):
        raise KernelTypeError("F251", f"{what}: sem must be relaxed, acquire, release or acq_rel, got {sem!r}")
    if scope not in (None, "cta", "cluster", "gpu", "sys"):
        raise KernelTypeError("F251", f"{what}: scope must be cta, cluster, gpu or sys, got {scope!r}")
    return {"order": sem, "scope": scope}


_ALLOWED = {
    "add": ("i32", "i64", "f16", "bf16", "f32", "f64"), "min": ("i32", "i64", "f32", "f64"),
    "max": ("i32", "i64", "f32", "f64"), "exch": ("i32", "i64", "f32", "f64"), "and": ("i32", "i64"),
    "or": ("i32", "i64"), "xor": ("i32", "i64"), "cas": ("i32", "i64"),
}  # fmt: skip


def _atomic(kind: str, ptr: Any, values: tuple[Any, ...], sem: str | None, scope: str | None, what: str) -> Any:
    at = pointer(ptr, f"'ptr' of {what}")
    text = str(at.type.data.element)  # pyright: ignore
    if text not in _ALLOWED[kind]:
        raise KernelTypeError(
            "F252", f"{what}: the element type must be one of {', '.join(_ALLOWED[kind])}, got {text}"
        )
    numbers = [element(ptr, at, v, what) for v in values]
    dtype = type(numbers[0])
    op = f"atomic_{'u' if kind in ('min', 'max') and not dtype.signed else ''}{kind}"
    made = emit_machine(op, [at, *(n.ssa for n in numbers)], what=what, **_check_order(sem, scope, what))
    return dtype.of(made.results[0])


def atomic_add(ptr: Pointer, val: Number, *, sem: str | None = None, scope: str | None = None) -> Numeric:
    """Atomically add ``val`` to ``*ptr`` and return the old value.

    Args:
        ptr: a pointer to the element.
        val: the operand, of the pointer's element type.
        sem: memory ordering: ``"relaxed"`` (default), ``"acquire"``, ``"release"`` or ``"acq_rel"``.
        scope: the threads that observe the ordering: ``"cta"``, ``"cluster"``, ``"gpu"`` (default) or ``"sys"``.
    """
    return _atomic("add", ptr, (val,), sem, scope, "cute.arch.atomic_add")


def atomic_min(ptr: Pointer, val: Number, *, sem: str | None = None, scope: str | None = None) -> Numeric:
    """Atomically store the minimum of ``*ptr`` and ``val``, return the old value; see :func:`atomic_add`.

    The comparison is signed or unsigned according to the type of ``val``.
    """
    return _atomic("min", ptr, (val,), sem, scope, "cute.arch.atomic_min")


def atomic_max(ptr: Pointer, val: Number, *, sem: str | None = None, scope: str | None = None) -> Numeric:
    """Atomically store the maximum of ``*ptr`` and ``val``, return the old value; see :func:`atomic_add`.

    The comparison is signed or unsigned according to the type of ``val``.
    """
    return _atomic("max", ptr, (val,), sem, scope, "cute.arch.atomic_max")


def atomic_and(ptr: Pointer, val: Number, *, sem: str | None = None, scope: str | None = None) -> Numeric:
    """Atomically store ``*ptr & val`` and return the old value; see :func:`atomic_add`."""
    return _atomic("and", ptr, (val,), sem, scope, "cute.arch.atomic_and")


def atomic_or(ptr: Pointer, val: Number, *, sem: str | None = None, scope: str | None = None) -> Numeric:
    """Atomically store ``*ptr | val`` and return the old value; see :func:`atomic_add`."""
    return _atomic("or", ptr, (val,), sem, scope, "cute.arch.atomic_or")


def atomic_xor(ptr: Pointer, val: Number, *, sem: str | None = None, scope: str | None = None) -> Numeric:
    """Atomically store ``*ptr ^ val`` and return the old value; see :func:`atomic_add`."""
    return _atomic("xor", ptr, (val,), sem, scope, "cute.arch.atomic_xor")


def atomic_exch(ptr: Pointer, val: Number, *, sem: str | None = None, scope: str | None = None) -> Numeric:
    """Atomically store ``val`` and return the old value; see :func:`atomic_add`."""
    return _atomic("exch", ptr, (val,), sem, scope, "cute.arch.atomic_exch")


def atomic_cas(ptr: Pointer, *, cmp: Number, val: Number, sem: str | None = None, scope: str | None = None) -> Numeric:
    """Atomically store ``val`` if ``*ptr == cmp``, and return the old value; see :func:`atomic_add`."""
    return _atomic("cas", ptr, (val, cmp), sem, scope, "cute.arch.atomic_cas")


def _float_only(ptr: Any, what: str) -> None:
    text = str(pointer(ptr, f"'ptr' of {what}").type.data.element)  # pyright: ignore
    if text not in ("f32", "f64"):
        raise KernelTypeError("F252", f"{what}: the element type must be f32 or f64, got {text}")


def atomic_fmax(
    ptr: Pointer, val: Number, *, sign_bit: bool | None = None, sem: str | None = None, scope: str | None = None
) -> Numeric:
    """Atomically store the floating-point maximum and return the old value; see :func:`atomic_add`.

    ``sign_bit``, the sign of ``val`` if it is known, is ignored: the result does not depend on it.
    """
    del sign_bit
    _float_only(ptr, "cute.arch.atomic_fmax")
    return _atomic("max", ptr, (val,), sem, scope, "cute.arch.atomic_fmax")


def atomic_fmin(
    ptr: Pointer, val: Number, *, sign_bit: bool | None = None, sem: str | None = None, scope: str | None = None
) -> Numeric:
    """Atomically store the floating-point minimum and return the old value; see :func:`atomic_add`.

    ``sign_bit``, the sign of ``val`` if it is known, is ignored: the result does not depend on it.
    """
    del sign_bit
    _float_only(ptr, "cute.arch.atomic_fmin")
    return _atomic("min", ptr, (val,), sem, scope, "cute.arch.atomic_fmin")


def red(ptr: Pointer, val: Number, *, op: str = "add", sem: str | None = None, scope: str | None = None) -> None:
    """Atomically combine ``*ptr`` with ``val`` without returning a value; see :func:`atomic_add`.

    ``op``: ``"add"``, ``"min"``, ``"max"``, ``"and"``, ``"or"`` or ``"xor"``.
    """
    if op not in ("add", "min", "max", "and", "or", "xor"):
        raise KernelTypeError("F251", f"cute.arch.red: op must be add, min, max, and, or, or xor, got {op!r}")
    _atomic(op, ptr, (val,), sem, scope, "cute.arch.red")


def load(
    ptr: Pointer,
    dtype: type[Numeric] | None = None,
    *,
    sem: str | None = None,
    scope: str | None = None,
    cop: str | None = None,
) -> Numeric:
    """Load ``*ptr``.

    Args:
        ptr: a pointer to the element.
        dtype: the element type, for a pointer that does not know its signedness.
        sem: ``"acquire"`` makes writes before the matching release visible to later accesses; ``"relaxed"`` is a strong
            load without ordering.
        scope: the scope of ``sem``: ``"cta"``, ``"cluster"``, ``"gpu"`` or ``"sys"``.
        cop: the cache operator of a plain load: ``"ca"``, ``"cg"``, ``"cs"``, ``"lu"`` or ``"cv"``.
    """
    what = "cute.arch.load"
    at = pointer(ptr, f"'ptr' of {what}")
    text = str(at.type.data.element)  # pyright: ignore
    known = dtype if dtype is not None else getattr(ptr, "dtype", None)
    kind = type_of_mlir(text, signed=getattr(known, "signed", True))
    if dtype is not None and dtype.mlir_type != text:
        raise KernelTypeError(
            "F252", f"{what}: the pointer has element type {kind!r}, but dtype is {dtype!r}", hint="use cute.recast_ptr"
        )
    order = _check_order(sem, scope, what)
    if sem == "acquire":
        if text not in ("i32", "i64"):
            raise KernelTypeError("F252", f"{what}: sem='acquire' needs an i32 or i64 pointer, got {text}")
        return kind.of(emit_machine("load_acquire", [at], what=what, scope=order["scope"]).results[0])
    if sem not in (None, "relaxed"):
        raise KernelTypeError("F251", f"{what}: sem must be relaxed or acquire, got {sem!r}")
    return _access(at, kind, None, sem, scope, _cache(cop, ("ca", "cg", "cs", "lu", "cv"), what), what)


def store(
    ptr: Pointer, val: Number, *, sem: str | None = None, scope: str | None = None, cop: str | None = None
) -> None:
    """Store ``val`` to ``*ptr``.

    Args:
        ptr: a pointer to the element.
        val: the value, of the pointer's element type.
        sem: ``"release"`` orders the store after the thread's earlier writes; ``"relaxed"`` is a strong store without
            ordering.
        scope: the scope of ``sem``: ``"cta"``, ``"cluster"``, ``"gpu"`` or ``"sys"``.
        cop: the cache operator of a plain store: ``"wb"``, ``"cg"``, ``"cs"`` or ``"wt"``.
    """
    what = "cute.arch.store"
    at = pointer(ptr, f"'ptr' of {what}")
    number = element(ptr, at, val, what)
    order = _check_order(sem, scope, what)
    if sem == "release":
        if type(number).mlir_type not in ("i32", "i64"):
            raise KernelTypeError("F252", f"{what}: sem='release' needs an i32 or i64 pointer, got {type(number)}")
        emit_machine("store_release", [at, number.ssa], what=what, scope=order["scope"])
        return
    if sem not in (None, "relaxed"):
        raise KernelTypeError("F251", f"{what}: sem must be relaxed or release, got {sem!r}")
    _access(at, type(number), number.ssa, sem, scope, _cache(cop, ("wb", "cg", "cs", "wt"), what), what)


def _cache(cop: str | None, allowed: tuple[str, ...], what: str) -> str:
    if cop is not None and cop not in allowed:
        raise KernelTypeError("F251", f"{what}: cop must be one of {', '.join(allowed)}, got {cop!r}")
    return f".{cop}" if cop else ""
