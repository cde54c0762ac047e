"""Devices that are no GPU, by name: what runs a launch there, and what reads the lowered module that it needs.

A launch is planned here and run there.  The table holds names only, since what runs on the CPU (the interpreter) needs
xDSL, which a machine that only launches does not have; a device is imported when a launch asks for it.
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

    ``run`` takes module, plan, arguments, target and options of :class:`~cute_dialect.runtime.launch.CallOptions`;
    ``read`` takes the text of a lowered module and a name for messages.
    """

    run: str
    read: str


DEVICES: Mapping[str, Device] = {
    "cpu": Device("cute_dialect.pipelines.cpu:run_on_cpu", "cute_dialect.pipelines.stages:parse_module"),
}


def runner(device: str) -> Callable[..., RunReport | None]:
    """Return what runs a planned launch on a device.  Raises :class:`LaunchError` where it cannot be imported."""
    return cast("Callable[..., RunReport | None]", _load(DEVICES[device].run))


def read_lowered(device: str, text: str) -> object:
    """Read the lowered module that a device runs.  Raises :class:`LaunchError` where nothing here can."""
    return _load(DEVICES[device].read)(text, "cute-to-base")


def _load(name: str) -> Callable[..., object]:
    module, _, function = name.partition(":")
    try:
        return cast("Callable[..., object]", getattr(import_module(module), function))
    except ImportError as e:
        raise LaunchError(f"running on the CPU needs the compiler's packages: pip install xdsl ({e})") from e
