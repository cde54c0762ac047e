"""A hand-written elementwise kernel on tensors with 64-bit extents and strides."""

from __future__ import annotations

import re
from pathlib import Path

EXAMPLE = Path(__file__).with_name("elementwise_add.mlir")

_TYPE = re.compile(r'!cute\.(?:coord_tensor|memref|shape|layout|int_tuple)<[^\n]*?">')


def _wide(found: re.Match[str]) -> str:
    return re.sub(r"\?(?!\{)", "?{i64}", found[0].replace("?{div=", "?{i64 div="))


def _replace(text: str, old: str, new: str) -> str:
    assert old in text, old
    return text.replace(old, new)


def _parts() -> tuple[str, str, str]:
    """Return the types, the kernel @add, and the host function @launch of the example, reduced to @add."""
    text = EXAMPLE.read_text()
    types, rest = text.split("\nmodule attributes {gpu.container_module} {\n  gpu.module @kernels {\n")
    kernel, rest = rest.split("    gpu.func @add_v(")
    host = rest[rest.index("  // One block a tile.") : rest.rindex("}\n")]
    return types, kernel, _replace(host, " {cute.variants = [@kernels::@add_v]}", "")


def _wide_parts() -> tuple[str, str, str]:
    """Return the same parts with 64-bit extents and strides, as @add_wide and @launch_wide."""
    types, kernel, host = (_TYPE.sub(_wide, part) for part in _parts())
    host = _replace(host, "    gpu.launch_func", "    %blocks = arith.trunci %grid : i64 to i32\n    gpu.launch_func")
    host = _replace(host, "blocks in (%grid,", "blocks in (%blocks,").replace("@add", "@add_wide")
    return types, kernel.replace("@add", "@add_wide"), host.replace("@launch", "@launch_wide")


def _module(types: str, kernels: str, hosts: str) -> str:
    return (
        f"{types}\nmodule attributes {{gpu.container_module}} {{\n  gpu.module @kernels {{\n{kernels}  }}\n{hosts}}}\n"
    )


def wide_text() -> str:
    """Return a module with @launch_wide(mA, mB, mC)."""
    return _module(*_wide_parts())


def tile_text() -> str:
    """Return a module with @launch_wide(mA, mB, mC, tile), which runs one block on the tile of that index."""
    types, kernel, host = _wide_parts()
    kernel = _replace(kernel, "%mC: !mat)", "%mC: !mat, %bid: i64)")
    kernel = _replace(kernel, "      %bid = nvvm.read.ptx.sreg.ctaid.x : i32\n", "")
    kernel = _replace(kernel, "make_coord(%bid) : (i32)", "make_coord(%bid) : (i64)")
    kernel = _replace(kernel, '!cute.coord<"((_,_),?)">', '!cute.coord<"((_,_),?{i64})">')
    host = _replace(host, "%mC: !mat)", "%mC: !mat, %tile: i64)")
    host = _replace(host, "%mC : !mat)", "%mC : !mat, %tile : i64)").replace("%tiler", "%t").replace("%tiles", "%ts")
    host = _replace(host, "    %blocks = arith.trunci %grid : i64 to i32\n", "    %blocks = arith.constant 1 : i32\n")
    return _module(types, kernel, host)


def chosen_text() -> str:
    """Return a module with @launch(mA, mB, mC) for 32-bit extents, and @launch_wide for larger ones."""
    types, kernel, host = _parts()
    wide = [re.sub(r"!(?=[a-z_]+\b(?!\.))", "!w_", part) for part in _wide_parts()]
    host = _replace(host, "%mC: !mat) {", "%mC: !mat) attributes {cute.fallback = @launch_wide} {")
    return _module(types + wide[0], kernel + wide[1], host + wide[2])
