"""Torch tensors in CPU memory that kernels reach by their addresses on the interpreter.

A kernel may load the address of a tensor from an array, as in a grouped GEMM.  The interpreter places the arguments of
a launch at addresses of its own, so it knows the size of such a tensor only if :func:`remember` was called for it::

    remember(tensor)
    addresses = numpy.array([tensor.data_ptr()])       # a kernel on the interpreter may read and write the tensor
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["HostArray", "host_arrays", "remember"]

_TENSORS: dict[int, ref[Any]] = {}


class HostArray(NamedTuple):
    """The memory of a remembered tensor."""

    address: int
    data: NDArray[np.uint8]
    tensor: Any


def remember(tensor: Any) -> None:
    """Let kernels on the interpreter reach a torch tensor in CPU memory by its address, as long as it is alive."""
    if tensor.untyped_storage().device.type == "cpu" and tensor.numel():
        key = id(tensor)
        _TENSORS[key] = ref(tensor, lambda _: _TENSORS.pop(key, None))


def host_arrays() -> list[HostArray]:
    """Return the memory of the remembered tensors that are alive, once per storage."""
    import numpy as np

    found: dict[int, HostArray] = {}
    for held in list(_TENSORS.values()):
        if (tensor := held()) is not None:
            storage = tensor.untyped_storage()
            address, size = storage.data_ptr(), storage.nbytes()
            memory = (ctypes.c_uint8 * size).from_address(address)
            found[address] = HostArray(address, np.ctypeslib.as_array(memory), tensor)
    return [found[address] for address in sorted(found)]
