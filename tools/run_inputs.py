"""Parser and allocator of ``cute-run`` arguments: ``64x4096xf32:randn:ld=4100``.

=====================  ==============================================================================================
``64x4096xf32``        an array: extents separated by ``x``, and the element type (default: that of the parameter)
``=randn`` …           initial values (or ``:randn``): ``randn rand randint zeros ones arange poison const=3.5``;
                       default: random for arrays that are given, poison (all bits set: NaN) for other arrays
``:ld=4100``           leading dimension: elements between consecutive rows; the padding is poisoned
``:strides=1,64``      all strides, in elements
``:offset=3``          offset of the first element from an aligned address, in elements
``data.npy``           a file; strides and offset may follow
``42``, ``(3,4)``      a number or a tuple, for a parameter that is not a tensor
=====================  ==============================================================================================

``NAME=SPEC`` selects the parameter by name.  ``a``, ``b``, ``c`` … are aliases of the first, second and third
parameter.  Parameters without a spec have the shape of the last array.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from cute_dialect.runtime.arrays import NotAnArray, numpy_dtype
from cute_dialect.runtime.manifest import Param

if TYPE_CHECKING:  # pragma: no cover
    import numpy as np
    from numpy.typing import NDArray

_GUARD = 256  # Poisoned bytes before and after each array detect out-of-bounds writes.
_INITS = ("randn", "rand", "randint", "zeros", "ones", "arange", "poison", "const")

AnyArray: TypeAlias = "NDArray[np.generic]"
Argument: TypeAlias = "Tensor | int | float | tuple[object, ...]"
"""An argument of the kernel: an array, a number or a tuple."""


class SpecError(ValueError):
    """An invalid argument spec, or one that does not fit its parameter."""


class Tensor:
    """An array argument: ``array`` is a strided view of ``storage``, which also holds padding and guard bytes."""

    def __init__(self, name: str, array: AnyArray, storage: AnyArray, init: str):
        import numpy as np

        self.name = name
        self.array = array
        self.storage = storage
        self.init = init
        self.before: AnyArray = array.copy()
        """A copy of the elements before the run."""
        self.storage_before = storage.view(np.uint8).copy()

    def outside_written(self) -> int:
        """Return the number of modified bytes outside the elements."""
        import numpy as np

        now = self.storage.view(np.uint8)
        mine = np.zeros(len(self.storage), dtype=bool)
        start = (self.array.ctypes.data - self.storage.ctypes.data) // self.array.itemsize
        strides = tuple(s // self.array.itemsize for s in self.array.strides)
        np.lib.stride_tricks.as_strided(mine[start:], self.array.shape, strides)[...] = True
        changed = (now != self.storage_before).reshape(len(mine), -1).any(axis=1)
        return int(np.count_nonzero(changed & ~mine)) * self.array.itemsize


class _Spec(NamedTuple):
    shape: tuple[int, ...] | None
    dtype: str | None
    path: str | None
    init: str | None
    constant: float
    ld: int | None
    strides: tuple[int, ...] | None
    offset: int
    text: str


def make_arguments(params: Sequence[Param], names: Sequence[str], given: Sequence[str], seed: int) -> list[Argument]:
    """Allocate the arguments for ``params``; all specs are validated first.

    Raises:
        SpecError: a spec is invalid.
    """
    by_index = _assign(names, given)
    read: list[_Spec | int | float | tuple[object, ...] | None] = []
    for i, (param, name) in enumerate(zip(params, names)):
        text = by_index.get(i)
        if param["kind"] not in ("memref", "pointer"):
            if text is None:
                raise SpecError(f"parameter {name} ({param['type']}) needs a value: --in {name}=VALUE")
            read.append(_plain(text, name, param))
        elif text is not None:
            read.append(_parse(text, name))
        elif any(isinstance(r, _Spec) for r in read):
            read.append(None)  # It has the shape of the last array.
        else:
            raise SpecError(f"parameter {name} ({param['type']}) needs an array: --in {name}=64x128")
    random = _Random(seed)
    out: list[Argument] = []
    shape: tuple[int, ...] | None = None
    for spec, param, name in zip(read, params, names):
        if isinstance(spec, _Spec) or spec is None:
            spec = spec or _Spec(shape, None, None, "poison", 0.0, None, None, 0, "")
            tensor = _make(spec, param, name, random)
            shape = tensor.array.shape
            out.append(tensor)
        else:
            out.append(spec)
    return out


class _Random:
    """A random number generator, created at first use because importing numpy.random takes 15 ms."""

    def __init__(self, seed: int):
        self._seed = seed

    @cached_property
    def rng(self) -> np.random.Generator:
        from numpy.random import default_rng

        return default_rng(self._seed)


def _assign(names: Sequence[str], given: Sequence[str]) -> Mapping[int, str]:
    out: dict[int, str] = {}
    position = 0
    for text in given:
        found = re.match(r"([A-Za-z_]\w*)=(?!$)", text)
        known = letters(names)
        name, equals, rest = text.partition("=")
        if equals and rest and name in known:
            index, text = known[name], rest
        elif found and found.group(1) not in _INITS:
            raise SpecError(f"unknown parameter {found.group(1)!r} (parameters: {', '.join(names) or 'none'})")
        else:
            while position in out:
                position += 1
            index = position
        if index >= len(names):
            raise SpecError(
                f"{len(given)} arguments given, the kernel takes {len(names)} ({', '.join(names) or 'none'})"
            )
        if index in out:
            raise SpecError(f"parameter {names[index]} is given twice")
        out[index] = text
    return out


def letters(names: Sequence[str]) -> Mapping[str, int]:
    """Map parameter names to positions, with the letters ``a``, ``b`` … as aliases unless they are names themselves.

    >>> letters(["mA", "mB", "a"])
    {'a': 2, 'b': 1, 'c': 2, 'mA': 0, 'mB': 1}
    """
    from string import ascii_lowercase

    return {**dict(zip(ascii_lowercase, range(len(names)))), **{n: i for i, n in enumerate(names)}}


def _plain(text: str, name: str, param: Param) -> int | float | tuple[object, ...]:
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as e:
        raise SpecError(f"parameter {name} ({param['type']}): expected a number or a tuple, got {text!r}") from e
    if isinstance(value, (int, float, tuple)):
        return cast("int | float | tuple[object, ...]", value)
    raise SpecError(f"parameter {name} ({param['type']}): expected a number or a tuple, got {text!r}")


def _parse(text: str, name: str) -> _Spec:
    head, *options = text.split(":")
    spec = _Spec(None, None, None, None, 0.0, None, None, 0, text)
    if head.endswith(".npy"):
        spec = spec._replace(path=head)
    else:
        head, equals, init = head.partition("=")
        options = [init, *options] if equals else options
        found = re.fullmatch(r"(\d+(?:x\d+)*)(?:x([a-zA-Z]\w*))?", head)
        if found is None:
            raise SpecError(f"parameter {name}: expected a shape like 64x4096xf32 or a .npy file, got {head!r}")
        spec = spec._replace(shape=tuple(int(n) for n in found.group(1).split("x")), dtype=found.group(2))
    for option in options:
        key, equals, value = option.partition("=")
        try:
            if key in _INITS and (key == "const") == bool(equals):
                spec = spec._replace(init=key, constant=float(value) if value else 0.0)
            elif key == "ld":
                spec = spec._replace(ld=int(value))
            elif key == "strides":
                spec = spec._replace(strides=tuple(int(v) for v in value.split(",")))
            elif key == "offset":
                spec = spec._replace(offset=int(value))
            else:
                known = " ".join(_INITS)
                raise SpecError(
                    f"parameter {name}: unknown option {option!r} (known: {known}=X ld=N strides=N,N offset=N)"
                )
        except ValueError as e:
            if isinstance(e, SpecError):
                raise
            raise SpecError(f"parameter {name}: cannot read {option!r}") from e
    return spec


def _make(spec: _Spec, param: Param, name: str, random: _Random) -> Tensor:
    import numpy as np

    data: AnyArray | None = None
    if spec.path is not None:
        data = _load(spec.path, name)
        spec = spec._replace(shape=data.shape, init=spec.init or "file")
    assert spec.shape is not None
    if spec.dtype is not None:
        try:
            dtype = numpy_dtype(spec.dtype)
        except NotAnArray as e:
            raise SpecError(
                f"parameter {name}: '{spec.dtype}' is not an element type; write a shape like 64x4096xf32"
            ) from e
    elif data is not None:
        dtype = data.dtype
    else:
        dtype = numpy_dtype(param.get("element", "f32"))
    strides = spec.strides or _strides(spec, name)
    if len(strides) != len(spec.shape):
        raise SpecError(f"parameter {name}: {len(strides)} strides for {len(spec.shape)} dimensions")
    if any(s < 0 for s in strides) or spec.offset < 0:
        raise SpecError(f"parameter {name}: strides and offset must not be negative")
    reach = sum((e - 1) * s for e, s in zip(spec.shape, strides)) + 1 if 0 not in spec.shape else 0
    guard = max(1, _GUARD // dtype.itemsize)
    total = 2 * guard + spec.offset + reach
    if total * dtype.itemsize > 1 << 37:
        raise SpecError(f"parameter {name}: {total * dtype.itemsize >> 30} GiB exceed the limit of 128 GiB")
    raw = np.empty(total * dtype.itemsize + _GUARD, dtype=np.uint8)
    shift = -raw.ctypes.data % _GUARD
    storage = raw[shift : shift + total * dtype.itemsize].view(dtype)
    storage.view(np.uint8)[...] = 0xFF
    byte_strides = tuple(s * dtype.itemsize for s in strides)
    array: AnyArray = np.lib.stride_tricks.as_strided(storage[guard + spec.offset :], spec.shape, byte_strides)
    _fill(array, spec, data, random)
    return Tensor(name, array, storage, spec.init or "random")


def _strides(spec: _Spec, name: str) -> tuple[int, ...]:
    assert spec.shape is not None
    out: list[int] = []
    step = 1
    for i, extent in enumerate(reversed(spec.shape)):
        if i == 1 and spec.ld is not None:
            if spec.ld < step:
                raise SpecError(f"parameter {name}: ld={spec.ld} is less than the row length {step}")
            step = spec.ld
        out.append(step)
        step *= extent
    if spec.ld is not None and len(spec.shape) < 2:
        raise SpecError(f"parameter {name}: ld= needs an array of at least two dimensions")
    return tuple(reversed(out))


def _load(path: str, name: str) -> AnyArray:
    import numpy as np

    try:
        data = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as e:
        why = e.strerror if isinstance(e, OSError) and e.strerror else e
        raise SpecError(f"parameter {name}: cannot read {path}: {why}") from e
    if not isinstance(data, np.ndarray):
        raise SpecError(f"parameter {name}: {path} does not hold a single array")
    return cast(AnyArray, data)


def _fill(array: AnyArray, spec: _Spec, data: AnyArray | None, random: _Random) -> None:
    import numpy as np

    if data is not None:
        if spec.dtype is not None and data.dtype.itemsize == array.dtype.itemsize and data.dtype.kind == "V":
            data = data.view(array.dtype)  # .npy stores bf16 as raw bytes
        array[...] = data.astype(array.dtype)
        return
    integer = array.dtype.kind in "iub"
    init = spec.init or ("randint" if integer else "randn")
    size = array.shape
    if init == "poison":
        return
    if init == "randn" and not integer:
        array[...] = random.rng.standard_normal(size, dtype=np.float32).astype(array.dtype)
    elif init == "rand" and not integer:
        array[...] = random.rng.random(size, dtype=np.float32).astype(array.dtype)
    elif init in ("randint", "randn", "rand"):
        low = 0 if array.dtype.kind in "ub" else -10
        array[...] = random.rng.integers(low, 2 if array.dtype.kind == "b" else 10, size).astype(array.dtype)
    elif init == "arange":
        array[...] = np.arange(array.size).reshape(size).astype(array.dtype)
    else:
        array[...] = np.asarray({"zeros": 0.0, "ones": 1.0}.get(init, spec.constant)).astype(array.dtype)
