"""Recordings of calls, which are replayed without checking arguments again.

A call on torch tensors is a sequence of launches (:func:`cute_dialect.op.execute.launcher.launched`), torch copies and
fills, allocations, and some torch operators without side effects (:data:`PURE`).  Any other torch operation (seen by
:class:`torch.utils._python_dispatch.TorchDispatchMode`) ends the recording, because it cannot be replayed.  Tensors are
identified by address, so the allocations of a call live until its recording ends.

:mod:`~cute_dialect.op.execute.call_cache` finds the recording of a call that was seen before, and
:mod:`~cute_dialect.op.execute.replay` turns its steps into a function.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from cute_dialect.op.execute.launcher import CURRENT, Launch
from cute_dialect.op.execute.replay import (
    AddressGuard,
    Allocation,
    Called,
    Copied,
    Filled,
    Repeated,
    Slice,
    Step,
    repeating,
)
from cute_dialect.runtime.arrays import current_stream_of_torch, view_of

_MOST = 1 << 30
"""Maximum number of bytes that a recorded call allocates; its replay holds all of them at once."""

_ALIGNMENT = 512
"""Bytes to which torch aligns allocations on a GPU."""


@contextmanager
def recorded(tensors: Sequence[Any]) -> Generator[Recording | None]:
    """Record operations on torch tensors; yields None inside a call that is already being recorded."""
    if CURRENT.recording is not None:
        yield None
        return
    recording = Recording(tensors)
    CURRENT.recording = recording
    try:
        with _watching()(recording):
            yield recording
    finally:
        CURRENT.recording = None


def is_transformed() -> bool:
    """Return True within a transform of ``torch.func``, such as ``torch.vmap``, whose tensors have no address."""
    return sys.modules["torch"]._C._functorch.peek_interpreter_stack() is not None


def needs_gradients(*arrays: Any) -> bool:
    """Return True if torch records gradients and an array needs one."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.is_grad_enabled():
        return False
    return any([getattr(x, "requires_grad", False) for x in arrays])


def is_eager(tensors: Sequence[Any]) -> bool:
    """Return True if only recordings observe torch operators.

    The tensors must be plain, and there must be no compilation, no dispatch mode, and no transform of ``torch.func``.
    """
    torch: Any = sys.modules["torch"]
    if torch.compiler.is_compiling():  # before the rest, which torch.compile cannot trace
        return False
    modes = torch._C._len_torch_dispatch_stack() - (CURRENT.recording is not None)
    if modes or is_transformed():
        return False
    plain = (torch.Tensor, torch.nn.Parameter, type(None))
    return all([type(t) in plain for t in tensors])


@cache
def _watching() -> Any:
    """Return the dispatch mode that reports torch operations to a recording."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watching(TorchDispatchMode):
        """Reports torch operations to a recording."""

        def __init__(self, recording: Recording) -> None:
            super().__init__()
            self.recording = recording

        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            self.recording.saw(func, args, kwargs or {}, result)
            return result

    return Watching


_MAKING = {"aten::empty", "aten::empty_strided", "aten::empty_like", "aten::new_empty", "aten::new_empty_strided"}
_COPYING = {"aten::_to_copy", "aten::clone"}
PURE = {
    "aten::add", "aten::arange", "aten::div", "aten::eq", "aten::exp", "aten::full_like", "aten::ge", "aten::gt",
    "aten::isinf", "aten::le", "aten::lt", "aten::masked_fill", "aten::mul", "aten::neg", "aten::new_ones",
    "aten::new_zeros", "aten::ones", "aten::scalar_tensor", "aten::sub", "aten::sum", "aten::where", "aten::zeros",
    "aten::zeros_like",
}  # fmt: skip
"""Torch operators that a recording may contain.

Their results are new tensors, whose shapes depend on nothing but the arguments' shapes and numbers.
"""


class Recording:
    """The steps of a call on ``tensors``."""

    def __init__(self, tensors: Sequence[Any]) -> None:
        self._tensors = tuple(tensors)
        self._begins = [t.data_ptr() for t in tensors]
        self._sizes = [reach_of(t) for t in tensors]
        self._first: dict[int, int] = {}  # the first tensor that begins at an address
        for i, begin in enumerate(self._begins):
            self._first.setdefault(begin, i)
        self._made: list[Any] = []
        self._held: list[Any] = []
        self._called: list[Any] = []  # results of torch operators
        self._numbers: list[Any] = []  # numbers that are tensors in CPU memory
        self._steps: list[tuple[str, Any, Any]] = []
        self.nodes: list[Any] = []
        """Autograd nodes that the call added to the graph; see :mod:`cute_dialect.op.torch.autograd`."""
        self.failed = False

    # --------------------------------------------------------------------------------------------------------- writing

    def note(self, kernel: Any, given: tuple[Any, ...], options: Mapping[str, Any]) -> None:
        """Record a launch; launches on the interpreter are not replayed."""
        if options.get("device") == "cpu":
            self._fail()
        if not self.failed:
            self._steps.append(("launch", kernel, given))

    def saw(self, operator: Any, args: tuple[Any, ...], named: Mapping[str, Any], result: Any) -> None:
        """Record a torch operation."""
        name = operator._schema.name
        if self.failed:
            return
        if name in _MAKING:
            self.make(result)
        elif name in _COPYING:
            self.make(result)
            self._steps.append(("copy", result, args[0]))
            if result.device != args[0].device:
                self._fail()
        elif name == "aten::copy_" and args[0].device == args[1].device:
            self._steps.append(("copy", args[0], args[1]))
        elif name == "aten::lift_fresh" and not result.dim():  # `x[...] = 0` makes a tensor of the number
            self._numbers.append(result)
        elif name == "aten::zero_":
            self._steps.append(("fill", args[0], 0))
        elif name == "aten::fill_" and (number := self._number(args[1])) is not None:
            self._steps.append(("fill", args[0], number))
        elif name in PURE and not operator._schema.is_mutable and self._hold(result):
            self._called += result if isinstance(result, tuple | list) else (result,)
            self._steps.append(("call", result, (operator, args, named)))
        elif operator._schema.is_mutable or not self._hold(result):
            self._fail()

    def _number(self, value: Any) -> float | None:
        """Return the value of a fill, or None for that of another tensor."""
        if isinstance(value, int | float):
            return value
        return next((t.item() for t in self._numbers if t is value), None)

    def launch(self, launch: Launch | None) -> None:
        """Add a prepared launch; None ends the recording."""
        if launch is None:
            self._fail()
        elif not self.failed:
            self._steps.append(("launch", launch, launch.given))

    def make(self, result: Any) -> None:
        """Add a tensor that the call allocates."""
        self._made.append(result)
        if len(self._made) > 1 and sum([t.untyped_storage().nbytes() for t in self._made]) > _MOST:
            self._fail()

    def _hold(self, result: Any) -> bool:
        """Keep the results of an operation alive, so that their addresses stay unique.

        A step that uses such a result, unless it is a view, cannot be replayed.  Return True if all results are
        tensors.
        """
        found = result if isinstance(result, tuple | list) else (result,)
        self._held += found
        return all([hasattr(t, "data_ptr") for t in found])

    def _fail(self) -> None:
        self.failed = True
        self._made, self._held, self._called, self._steps = [], [], [], []

    # --------------------------------------------------------------------------------------------------------- reading

    def again(self, result: Any, views: bool = False) -> Callable[..., Any] | None:
        """Return a function ``run(*tensors)`` that replays the call at other addresses and returns its results.

        Return None if the call cannot be replayed.

        Args:
            views: results may be views, and the call may launch nothing.
        """
        if self.failed or not (views or any([kind == "launch" for kind, _, _ in self._steps])):
            return None
        try:
            return self._again(result, views)
        except _Unknown:
            return None

    def _again(self, result: Any, views: bool) -> Callable[..., Any]:
        written: set[int] = set()
        self._returned(result, written, views)  # adds results that are views of allocations
        self._keep_used(result, views)
        returned = self._returned(result, written, views)
        written -= set(range(len(self._tensors))) if views else set()
        mask, steps = 15, list[Step]()
        for kind, to, of in self._steps:
            if kind == "launch":
                launch = _launch_of(to, of)
                steps.append(self._repeated(launch))
                mask |= launch.mask
            elif kind == "call":
                steps.append(self._operator(to, *of))
            else:
                part = self._part(to)
                if part.place < len(self._tensors):
                    written.add(part.place)
                steps.append(Copied(part, self._part(of)) if kind == "copy" else Filled(part, of))
        if any([t.data_ptr() & mask for t in self._made]):
            raise _Unknown
        steps, made, returned = self._joined(steps, returned, mask)
        device, stream = self._tensors[0].device, current_stream_of_torch()
        stayed = AddressGuard(tuple([x & mask for x in self._begins]), *self._shared(written))
        return repeating(len(self._tensors), steps, made, device, mask, stream, returned, stayed)

    def _joined(self, steps: list[Step], returned: Any, mask: int) -> tuple[list[Step], list[Allocation], Any]:
        """Return the steps, the allocations and the results, with all temporary tensors in one allocation.

        This takes less host time. Recordings of other steps than launches keep their allocations.
        """
        count, single = len(self._tensors), returned if isinstance(returned, tuple) else (returned,)
        launches = [x for x in steps if isinstance(x, Repeated)]
        kept = [i for i in range(len(self._made)) if count + i in single]
        made: list[Allocation] = [(tuple(t.shape), t.stride(), t.dtype) for t in self._made]
        is_plain = len(launches) == len(steps) and all([type(x) is int for x in single])
        if not is_plain or len(made) - len(kept) < 2:
            return steps, made, returned
        places = {i: (i, 0) for i in range(-1, count)} | {count + i: (count + n, 0) for n, i in enumerate(kept)}
        size, unit = 0, max(_ALIGNMENT, mask + 1)
        for i, t in enumerate(self._made):
            if i not in kept:
                places[count + i] = count + len(kept), size
                size += -(-t.untyped_storage().nbytes() // unit) * unit
        moved: list[Step] = [
            x._replace(
                order=tuple([places[i][0] for i in x.order]),
                offsets=tuple([places[i][1] + offset for i, offset in zip(x.order, x.offsets)]),
            )
            for x in launches
        ]
        made = [*[made[i] for i in kept], ((size,), (1,), sys.modules["torch"].uint8)]
        results = tuple([places[i][0] for i in single])
        return moved, made, results if isinstance(returned, tuple) else results[0]

    def _keep_used(self, result: Any, views: bool) -> None:
        """Drop allocations that no step uses.

        An allocation used by exactly one step must be a result, and a result must be used by a step unless it is empty.
        Otherwise an operation that was not recorded reads or writes it.
        """
        steps: dict[int, int] = {}
        for kind, to, of in self._steps:
            taken = of if kind == "launch" else _tensors_of(of) if kind == "call" else (to, of)
            arrays = [x for x in taken if not isinstance(x, int | float) and not (kind == "call" and not x.numel())]
            for place in {self._place(_address(x))[0] for x in arrays}:
                steps[place] = steps.get(place, 0) + 1
        kept: list[Any] = []
        for i, t in enumerate(self._made, len(self._tensors)):
            count, returned = steps.get(i, 0), _is_in(t, result, views)
            if returned and not t.numel():
                count = 2  # Steps neither read nor write it.
            if (count == 1 and not returned) or (count == 0 and returned):
                raise _Unknown
            kept += [t] * (count > 0)
        self._made = kept

    def _shared(self, written: set[int]) -> tuple[Any, Any]:
        """Return the pairs of tensors that share memory, with their distance, and the pairs that must not."""
        tied: list[tuple[int, int, int]] = []
        apart: list[tuple[int, int, int, int]] = []
        places = list(zip(self._begins, self._sizes))
        open_: list[int] = []  # tensors that reach beyond the begin of the next one
        for j in sorted(range(len(places)), key=places.__getitem__):
            q = self._begins[j]
            open_ = [i for i in open_ if self._begins[i] == q or self._begins[i] + self._sizes[i] > q]
            pairs = [(min(i, j), max(i, j)) for i in open_]
            tied += [(i, k, self._begins[k] - self._begins[i]) for i, k in pairs]
            open_.append(j)
        together = {pair[:2] for pair in tied}
        for k in written:
            for i, j in [(min(i, k), max(i, k)) for i in range(len(places)) if i != k]:
                if (i, j) not in together and (i == k or i not in written):
                    apart.append((i, j, self._sizes[i], self._sizes[j]))
        return tuple(sorted(tied)), tuple(sorted(apart))

    def _place(self, address: int) -> tuple[int, int]:
        """Return the index of the tensor that contains an address, and the offset in bytes."""
        found = self._first.get(address)
        if found is not None:
            return found, 0
        own = [*self._made, *self._called]
        begins = [*self._begins, *[t.data_ptr() for t in own]]
        if address in begins:
            return begins.index(address), 0
        sizes = [*self._sizes, *[t.untyped_storage().nbytes() for t in own]]
        for i, (begin, size) in enumerate(zip(begins, sizes)):
            if begin <= address < begin + size:
                return i, address - begin
        raise _Unknown

    def _repeated(self, launch: Launch) -> Repeated:
        """Return a launch with indices of tensors in place of addresses."""
        order: list[int] = []
        offsets: list[int] = []
        for x in launch.given:
            place, offset = (-1, 0) if isinstance(x, int | float) else self._place(_address(x))
            order.append(place)
            offsets.append(offset)
        return Repeated(launch.launch, tuple(order), launch.more, launch.behind, tuple(offsets))

    def _operator(self, result: Any, operator: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> Called:
        """Return a call of a torch operator with parts of indexed tensors in place of tensors."""
        if any([_tensors_of(x) for x in (*args, *named.values()) if isinstance(x, list | tuple)]):
            raise _Unknown

        def part(x: Any) -> Any:
            return self._part(x) if hasattr(x, "data_ptr") and x.numel() else x  # An empty tensor is a constant.

        by_name = tuple([(n, part(x)) for n, x in named.items()])
        operator = getattr(operator, "_op", operator)  # without the Python frame of OpOverload
        return Called(operator, tuple(map(part, args)), by_name, len(result) if isinstance(result, tuple | list) else 0)

    def _part(self, t: Any) -> Slice:
        """Return the description of a tensor as a part of an indexed one."""
        if not t.numel():
            raise _Unknown
        place, offset = self._place(t.data_ptr())
        of = (*self._tensors, *self._made, *self._called)[place]
        if of.dtype != t.dtype or offset % t.element_size():
            raise _Unknown
        given = not 0 <= place - len(self._tensors) < len(self._made)
        whole = t is of or (offset == 0 and of.shape == t.shape and of.stride() == t.stride())
        return Slice(place, tuple(t.shape), t.stride(), offset // t.element_size(), given, whole)

    def _returned(self, result: Any, written: set[int], views: bool) -> Any:
        """Return the results with each tensor replaced by its index. Arguments among them are added to ``written``.

        With ``views``, another tensor becomes the :class:`~cute_dialect.op.execute.replay.Slice` of an indexed one, and
        None stays None.
        """
        if type(result) is tuple:
            return tuple([self._returned(x, written, views) for x in result])
        if type(result) is dict:
            return {key: self._returned(x, written, views) for key, x in result.items()}
        if views and result is None:
            return None
        for i, t in enumerate(self._tensors):
            if t is result:
                written.add(i)
                return i
        for i, t in enumerate(self._made):
            if t is result or self._is_all(t, result):
                self._made[i] = result
                return len(self._tensors) + i
        if views and hasattr(result, "data_ptr"):
            return self._part(result)
        raise _Unknown

    def _is_all(self, t: Any, result: Any) -> bool:
        """Return True if a result is a view of a whole allocation."""
        if not hasattr(result, "untyped_storage"):
            return False
        storage = t.untyped_storage()
        same = storage._cdata == result.untyped_storage()._cdata  # Addresses of empty tensors are equal.
        return same and result.storage_offset() == 0 and reach_of(result) == storage.nbytes()


def _address(x: Any) -> int:
    """Return the address of an array."""
    return x.data_ptr() if hasattr(x, "data_ptr") else view_of(x).pointer


def _is_in(t: Any, result: Any, views: bool) -> bool:
    """Return True if a tensor, or with ``views`` a part of it, is among the results."""
    if type(result) in (tuple, dict):
        return any([_is_in(t, x, views) for x in (result.values() if type(result) is dict else result)])
    if result is t or result is None:
        return result is t
    return views and t.untyped_storage().data_ptr() == result.untyped_storage().data_ptr()


def _tensors_of(x: Any) -> list[Any]:
    """Return the tensors in nested sequences and dictionaries of arguments."""
    if isinstance(x, list | tuple):
        return [t for part in x for t in _tensors_of(part)]
    if isinstance(x, Mapping):
        return _tensors_of(list(x.values()))
    return [x] if hasattr(x, "data_ptr") else []


class _Unknown(Exception):
    """The call cannot be replayed."""


def _launch_of(kernel: Any, given: Sequence[Any]) -> Launch:
    """Return the prepared launch of a kernel on these arguments.  Raises _Unknown if there is none."""
    if isinstance(kernel, Launch):
        return kernel
    repeated = getattr(kernel, "repeated", None)
    if repeated is not None:
        found = repeated(*given)
        if found is None:
            raise _Unknown
        return found
    launch = kernel.by_address(*given)
    if launch is None:
        raise _Unknown
    return Launch(launch, tuple(given), kernel.alignment - 1)


def reach_of(t: Any) -> int:
    """Return the number of bytes from the first element to the end of the last one."""
    if not t.numel():
        return 0
    return (sum([(n - 1) * step for n, step in zip(t.shape, t.stride())]) + 1) * t.element_size()
