"""Launch devices that are not GPUs, with the functions that run a launch and read a lowered module.

The table holds the names of functions.  The interpreter needs xDSL, which may be missing on a machine that only
launches kernels, so a device is imported when a launch selects it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

from cute_dialect.runtime.binding import LaunchError

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.interp import RunReport

__all__ = ["DEVICES", "Device", "read_lowered", "runner"]


class Device(NamedTuple):
    """The functions of a device, as ``module:function``.

    ``run`` takes module, plans, views of the arguments, target and the options of
    :class:`~cute_dialect.runtime.launch.CallOptions`.  ``read`` takes the text of a lowered module and its name for
    messages.
    """

    run: str
    read: str


DEVICES: Mapping[str, Device] = {
    "cpu": Device("cute_dialect.pipelines.cpu:run_on_cpu", "cute_dialect.pipelines.compiler:parse_module"),
}


def runner(device: str) -> Callable[..., RunReport | None]:
    """Return the function that runs planned launches on a device.

    Raises :class:`LaunchError` if it cannot be imported.
    """
    return cast("Callable[..., RunReport | None]", _load(DEVICES[device].run))


def read_lowered(device: str, text: str) -> object:
    """Parse a lowered module for a device.  Raises :class:`LaunchError` if the parser cannot be imported."""
    return _load(DEVICES[device].read)(text, "cute-to-base")


def _load(name: str) -> Callable[..., object]:
    module, _, function = name.partition(":")
    try:
        return cast("Callable[..., object]", getattr(import_module(module), function))
    except ImportError as e:
        raise LaunchError(f"running on the CPU needs the compiler's packages: pip install xdsl ({e})") from e
