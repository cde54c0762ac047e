"""Values over lanes, lane masks and poison.

A scalar is either uniform (a Python `int`, `bool`, `float` or a numpy float scalar) or an array of shape `(lanes,)`. A
vector has shape `(d0, …)` if uniform, else `(lanes, d0, …)`. Integers are signed and normalised to their width. With
numpy broadcasting, most ops are then one expression for all cases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from cute_dialect.interp.errors import Fault, PoisonUse
from cute_dialect.interp.types import Leaf

if TYPE_CHECKING:
    import numpy.typing as npt


class Poison:
    """The value of `ub.poison`, `llvm.mlir.poison` and `llvm.mlir.undef`.

    It may be moved, but not used in a computation.
    """

    __slots__ = ()
    __array_ufunc__ = None

    def _use(self, *_: object) -> bool:
        raise PoisonUse

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __and__ = __rand__ = __or__ = __ror__ = _use
    __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __floordiv__ = __rfloordiv__ = _use
    __truediv__ = __rtruediv__ = __mod__ = __rmod__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __invert__ = _use
    __bool__ = __int__ = __index__ = __float__ = _use
    __eq__ = _use
    __ne__ = _use

    def __hash__(self) -> int:
        return 0

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        raise PoisonUse

    def __repr__(self) -> str:
        return "poison"


POISON: Final = Poison()


class Pending(Poison):
    """A register that an asynchronous operation will write. It may be moved, but not used before the wait.

    `result` returns the values of all lanes, or raises Fault if the program has not waited.
    """

    __slots__ = ("index", "source")

    def __init__(self, source: PendingSource, index: int) -> None:
        self.source = source
        self.index = index

    def result(self) -> Value:
        """Return the register. Raises Fault until the program has waited for it."""
        return self.source.register(self.index)

    def __array__(self, *_: object, **__: object) -> Array:
        raise PoisonUse

    def __repr__(self) -> str:
        return f"pending register {self.index}"


class Origin(NamedTuple):
    """The origin of an undefined value.

    `named` is True for an element of a tensor, False for the op that created it.
    """

    text: Callable[[], str]
    named: bool
    cure: str = ""  # for a `text` that says that the value is unwritten

    def used(self, by: str) -> str:
        """Return the message about a use."""
        return f"{by} depends on {self.text()}" + (f"; {self.cure}" if self.cure else ", which nothing has written")


class Undefined(Poison):
    """A register with bits that nothing has written (see `undefined`).

    `value` is its current content and `bits` marks the unwritten bits of each element, uniform or per lane. `origin`
    names the unwritten register.
    """

    __slots__ = ("bits", "origin", "value")

    def __init__(self, value: Value, bits: Array, origin: Origin) -> None:
        self.value = value
        self.bits = bits
        self.origin = origin

    def used(self, mask: Mask, by: str) -> Value:
        """Return the value for a use that acts on it. Raises Fault if an active lane has unwritten bits."""
        bad = self.bits != 0
        if bad.ndim and len(bad) == mask.lanes:
            bad = bad.reshape(len(bad), -1).any(axis=1) & mask.array
        else:
            bad = mask.array & bool(bad.any())
        if bad.any():
            raise Fault("uninit", self.origin.used(by), int(bad.argmax()))
        return self.value

    def __array__(self, *_: object, **__: object) -> Array:
        raise PoisonUse

    def __repr__(self) -> str:
        return f"undefined, from {self.origin.text()}"


class PendingSource(Protocol):
    """The operation that will write pending registers; see `Pending`."""

    def register(self, index: int) -> Value:
        """Return register `index` once it has been computed."""
        ...


Array: TypeAlias = "npt.NDArray[Any]"
Value: TypeAlias = "int | float | bool | np.generic | npt.NDArray[Any] | Poison"
Regs: TypeAlias = "list[Value]"


class Mask:
    """The active lanes of a group. `bits` is None if all are active; `n` counts them."""

    __slots__ = ("_idx", "bits", "lanes", "n")

    def __init__(self, lanes: int, bits: Array | None, n: int) -> None:
        self.lanes = lanes
        self.bits = bits
        self.n = n
        self._idx: Array | None = None

    @staticmethod
    def full(lanes: int) -> Mask:
        """Return the mask with all lanes active."""
        return Mask(lanes, None, lanes)

    @staticmethod
    def of(bits: Array) -> Mask:
        """Return the mask of the lanes whose bool is True."""
        n = int(np.count_nonzero(bits))
        return Mask(len(bits), None if n == len(bits) else bits, n)

    @property
    def idx(self) -> Array:
        """Indices of the active lanes, ascending."""
        if self._idx is None:
            self._idx = np.arange(self.lanes) if self.bits is None else np.flatnonzero(self.bits)
        return self._idx

    @property
    def array(self) -> Array:
        """One bool per lane."""
        return np.ones(self.lanes, np.bool_) if self.bits is None else self.bits

    def split(self, cond: Array) -> tuple[Mask, Mask]:
        """Return the active lanes where `cond` holds, and the others."""
        t = cond if self.bits is None else cond & self.bits
        n = int(np.count_nonzero(t))
        if n == self.n:
            return self, Mask(self.lanes, t, 0)
        if n == 0:
            return Mask(self.lanes, t, 0), self
        f = ~cond if self.bits is None else self.bits & ~cond
        return Mask(self.lanes, t, n), Mask(self.lanes, f, self.n - n)

    def union(self, other: Mask) -> Mask:
        """Return the lanes in either mask."""
        if self.bits is None or other.bits is None:
            return Mask.full(self.lanes)
        return Mask.of(self.bits | other.bits)

    def minus(self, dead: Array) -> Mask:
        """Return the lanes that are not dead."""
        return Mask.of(self.array & ~dead)

    def any(self, cond: Array, rank: int = 0) -> bool:
        """Return True if `cond`, of a value with `rank` vector dimensions, holds in any active lane."""
        if cond.ndim == rank:
            return self.n > 0 and bool(cond.any())
        return bool(cond.any()) if self.bits is None else bool(cond[self.bits].any())

    def first(self, cond: Array, rank: int = 0) -> int:
        """Return the first active lane where `cond` holds, -1 if none."""
        if cond.ndim == rank:
            return int(self.idx[0]) if self.n else -1
        flat = cond.reshape(len(cond), -1).any(axis=1) if rank else cond
        hit = np.flatnonzero(flat if self.bits is None else flat & self.bits)
        return int(hit[0]) if len(hit) else -1


def to_lanes(v: Value, leaf: Leaf, lanes: int) -> Array:
    """Return the value as an array `(lanes, *shape)`; a view where possible, so do not write to it."""
    if isinstance(v, np.ndarray) and v.ndim == len(leaf.shape) + 1:
        return v
    if v is POISON:
        raise PoisonUse
    return np.broadcast_to(np.asarray(v, leaf.dtype), (lanes, *leaf.shape))


def merge(mask: Mask, new: Value, old: Value, leaf: Leaf) -> Value:
    """Return `new` in the active lanes, `old` in the others."""
    if old is POISON or new is old or mask.n == mask.lanes:
        return new
    if isinstance(new, Pending):
        new = new.result()
    if isinstance(old, Pending):
        old = old.result()
    if new is POISON:
        return old if mask.n < mask.lanes else new
    if mask.n == 0:
        return old
    if isinstance(new, Undefined) or isinstance(old, Undefined):
        return _merge_undefined(mask, new, old, leaf)
    scalar = not leaf.shape
    if scalar and type(new) is type(old) and not isinstance(new, np.ndarray) and new == old:
        return new
    bits = mask.array
    if not scalar:
        bits = bits.reshape((-1,) + (1,) * len(leaf.shape))
    return np.where(bits, np.asarray(new, leaf.dtype), np.asarray(old, leaf.dtype))


def _merge_undefined(mask: Mask, new: Value, old: Value, leaf: Leaf) -> Value:
    one = new if isinstance(new, Undefined) else old
    assert isinstance(one, Undefined)
    parts = [v.value if isinstance(v, Undefined) else v for v in (new, old)]
    none = np.zeros((), one.bits.dtype)
    bits = [v.bits if isinstance(v, Undefined) else none for v in (new, old)]
    active = mask.array.reshape((-1,) + (1,) * len(leaf.shape))
    both = np.where(active, *bits)
    value = merge(mask, parts[0], parts[1], leaf)
    return Undefined(value, both, one.origin) if both.any() else value


def wrap_int(v: int, width: int) -> int:
    """Return a Python int as a signed value of `width` bits (i1 as bool)."""
    if width == 1:
        return bool(v & 1)
    half = 1 << (width - 1)
    return ((v + half) & ((1 << width) - 1)) - half


def normalise(v: Value, leaf: Leaf) -> Value:
    """Wrap an integer value, uniform or not, to the leaf's width."""
    if isinstance(v, np.ndarray):
        if v.dtype != leaf.dtype:
            v = v.astype(leaf.dtype) if leaf.width != 1 else (v & 1).astype(np.bool_)
        bits = leaf.dtype.itemsize * 8
        if leaf.width not in (1, bits):
            shift = bits - leaf.width
            v = (v << shift) >> shift
        return v
    if isinstance(v, Poison):
        raise PoisonUse
    return wrap_int(int(v), leaf.width)


def splat(number: float, leaf: Leaf) -> Value:
    """Return the uniform value whose elements all equal a number."""
    if leaf.shape:
        return np.full(leaf.shape, number if leaf.kind == "f" else wrap_int(int(number), leaf.width)).astype(leaf.dtype)
    if leaf.kind == "f":
        return leaf.dtype.type(number)
    return wrap_int(int(number), leaf.width)


def unsigned(v: Value, leaf: Leaf) -> Value:
    """Return the same bits as an unsigned integer."""
    if isinstance(v, np.ndarray):
        if leaf.width == 1:
            return v
        u = np.ascontiguousarray(v).view(leaf.unsigned) if v.ndim == 0 else v.view(leaf.unsigned)
        if leaf.width != leaf.dtype.itemsize * 8:
            u = u & ((1 << leaf.width) - 1)
        return u
    if type(v) is bool:
        return v
    return v & ((1 << leaf.width) - 1)  # type: ignore[operator]


def uniform_int(v: Value, what: str) -> int:
    """Return the value as one int. Raises Fault if it differs between lanes or is poison."""
    if v is POISON:
        raise Fault("poison", f"{what} is poison (an undefined value)")
    if isinstance(v, np.ndarray):
        if v.size and (v == v.flat[0]).all():
            return int(v.flat[0])
        raise Fault("divergence", f"{what} differs between threads, but must be the same in all of them")
    return int(v)  # type: ignore[arg-type]


def active_uniform(v: Value, mask: Mask, what: str) -> int:
    """Return one int, like `uniform_int`, considering only the active lanes."""
    if isinstance(v, Undefined):
        v = v.used(mask, what)
    if isinstance(v, np.ndarray) and v.ndim == 1 and mask.bits is not None:
        v = v[mask.bits]
    return uniform_int(v, what)


def truth(v: Value, mask: Mask) -> bool | Array:
    """Return a condition in the active lanes, as a Python bool or an array of bools."""
    if isinstance(v, Undefined):
        v = v.used(mask, "a branch")
    if v is POISON:
        raise Fault("poison", "branch on poison (an undefined value)")
    if isinstance(v, np.ndarray):
        return v if v.ndim else bool(v)
    return bool(v)
