"""Kernels that use the machine-level ops, with their arguments and expected results, for the CPU and the GPU.

This module does not import the compiler, because the GPU machine loads compiled kernels from a folder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

__all__ = ["CASES", "Case", "kernel", "module"]

LANES = np.arange(32)
OUT = '%o: !cute.memref<i32, gmem, "?:1">'
SMEM = '!cute.memref<i32, smem, "32:1">'
BAR = '!cute.memref<i64, smem, "2:1">'
SYNC = "cute_nvgpu.arch.cluster_arrive() : () -> ()\ncute_nvgpu.arch.cluster_wait() : () -> ()\n"


def module(*kernels: str) -> str:
    """Return a module of kernels."""
    return f"module attributes {{gpu.container_module}} {{\ngpu.module @kernels {{\n{''.join(kernels)}}}\n}}\n"


def kernel(body: str, parameters: str, threads: int = 32, attributes: str = "") -> str:
    """Return a module with ``gpu.func @k``, which defines ``%tid`` and its coordinate ``%c``."""
    size = f"known_block_size = array<i32: {threads}, 1, 1>"
    return module(
        f"gpu.func @k({parameters}) kernel attributes {{{size}{attributes}}} {{\n"
        f'%tid = nvvm.read.ptx.sreg.tid.x : i32\n%c = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">\n'
        f"{body}\ngpu.return\n}}\n"
    )


def store(element: str, at: str = "%c", value: str = "%r") -> str:
    """Return the IR of ``o[at] = value``."""
    return (
        f'\ncute.memref.store(%o, {at}, {value}) : (!cute.memref<{element}, gmem, "?:1">, !cute.coord<"?">, {element})'
        " -> ()\n"
    )


def unary(op: str, element: str, result: str | None = None) -> str:
    """Return the kernel ``o[tid] = op(x[tid])``, where ``op`` computes ``%r`` from ``%v``."""
    result = result or element
    load = f'%v = cute.memref.load(%x, %c) : (!cute.memref<{element}, gmem, "?:1">, !cute.coord<"?">) -> {element}\n'
    parameters = f'%x: !cute.memref<{element}, gmem, "?:1">, %o: !cute.memref<{result}, gmem, "?:1">'
    return kernel(load + op + store(result), parameters)


class Case(NamedTuple):
    """A kernel ``@k``, its arguments, and the expected value of the last argument, up to ``tolerance``."""

    text: str
    arguments: tuple[np.ndarray, ...]
    expected: np.ndarray
    grid: int = 1
    threads: int = 32
    tolerance: float = 0.0

    def check(self, run: Callable[..., None]) -> None:
        """Run the kernel and compare the result."""
        arguments = [a.copy() for a in self.arguments]
        run(self.text, *arguments, grid=self.grid, threads=self.threads)
        got = arguments[-1]
        if self.tolerance:
            assert np.allclose(got, self.expected, rtol=self.tolerance, atol=self.tolerance), (got, self.expected)
        else:
            assert got.tobytes() == self.expected.tobytes(), (got, self.expected)


def blank(n: int = 32, dtype: type[np.generic] = np.int32) -> np.ndarray:
    """Return an output array filled with 77."""
    return np.full(n, 77, dtype)


# -------------------------------------------------------------------------------------------------------------- warps


def _source(mode: str, index: int, width: int) -> np.ndarray:
    """Return the source lane of each lane."""
    base = LANES & ~(width - 1)
    inside = LANES - base
    target = {"bfly": inside ^ index, "up": inside - index, "down": inside + index, "idx": index + 0 * inside}[mode]
    return np.where((target >= 0) & (target < width), base + target, LANES)


def _shuffles() -> dict[str, Case]:
    found: dict[str, Case] = {}
    widths = {"i8": np.int8, "i16": np.int16, "i64": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64}
    for element, dtype in widths.items():
        x = np.random.default_rng(1).integers(0, 100, 32).astype(dtype) / dtype(7)
        x = x.astype(dtype)
        op = f"%i = arith.constant 5 : i32\n%r = cute_nvgpu.arch.shfl_sync(%v, %i) : ({element}, i32) -> {element}"
        found[f"shfl_{element}"] = Case(unary(op, element), (x, blank(dtype=dtype)), x[LANES ^ 5])
    x = (LANES * 10).astype(np.int32)
    for mode in ("bfly", "up", "down", "idx"):
        for width, index in ((32, 1), (8, 4), (2, 1)):
            op = (
                f"%i = arith.constant {index} : i32\n"
                f'%r = cute_nvgpu.arch.shfl_sync(%v, %i) {{mode = "{mode}", width = {width} : i32}} : (i32, i32) -> i32'
            )
            found[f"shfl_{mode}_{width}"] = Case(unary(op, "i32"), (x, blank()), x[_source(mode, index, width)])
    return found


def _reductions() -> dict[str, Case]:
    x = np.random.default_rng(2).integers(-(1 << 31), 1 << 31, 32).astype(np.int32)
    u = x.view(np.uint32)
    wanted = {
        "add": x.sum(dtype=np.int32), "and": np.bitwise_and.reduce(x), "or": np.bitwise_or.reduce(x),
        "xor": np.bitwise_xor.reduce(x), "min": x.min(), "max": x.max(), "umin": u.min().view(np.int32),
        "umax": u.max().view(np.int32),
    }  # fmt: skip
    found: dict[str, Case] = {}
    for kind, w in wanted.items():
        op = f'%r = cute_nvgpu.arch.redux_sync(%v) {{kind = "{kind}"}} : (i32) -> i32'
        found[f"redux_{kind}"] = Case(unary(op, "i32"), (x, blank()), np.full(32, w, np.int32))
    flag = "%k = arith.constant 29 : i32\n%f = arith.cmpi sgt, %v, %k : i32\n"
    lanes = LANES.astype(np.int32)
    ballot = flag + "%r = cute_nvgpu.arch.ballot(%f) : (i1) -> i32"
    bits = np.full(32, 0xC0000000, np.uint32).view(np.int32)
    found["ballot"] = Case(unary(ballot, "i32"), (lanes, blank()), bits)
    for name, value in (("vote_any", 1), ("vote_all", 0)):
        op = f"{flag}%b = cute_nvgpu.arch.{name}(%f) : (i1) -> i1\n%r = arith.extui %b : i1 to i32"
        found[name] = Case(unary(op, "i32"), (lanes, blank()), np.full(32, value, np.int32))
    return found


def _ids() -> dict[str, Case]:
    body = (
        "%w = cute_nvgpu.arch.warp_id() : () -> i32\n%l = cute_nvgpu.arch.lane_id() : () -> i32\n"
        "%e = cute_nvgpu.arch.elect_one() : () -> i1\n%b = arith.extui %e : i1 to i32\n"
        "%h = arith.constant 100 : i32\n%t = arith.constant 10000 : i32\n"
        "%x = arith.muli %w, %h : i32\n%y = arith.muli %b, %t : i32\n%s = arith.addi %x, %l : i32\n"
        "%r = arith.addi %s, %y : i32"
    )
    tid = np.arange(96)
    wanted = (tid // 32 * 100 + tid % 32 + (tid % 32 == 0) * 10000).astype(np.int32)
    return {"ids": Case(kernel(body + store("i32"), OUT, 96), (blank(96),), wanted, threads=96)}


def _fast_functions() -> dict[str, Case]:
    functions: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float, float, float]] = {
        "exp2": (np.exp2, -20, 20, 2**-22), "log2": (np.log2, 0.1, 100, 2**-20), "rcp": (np.reciprocal, 0.1, 9, 2**-22),
        "sqrt": (np.sqrt, 0, 9, 2**-22), "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 9, 2**-21.5),
        "tanh": (np.tanh, -3, 3, 2**-10),
    }  # fmt: skip
    found: dict[str, Case] = {}
    for name, (f, low, high, tolerance) in functions.items():
        x = np.linspace(low, high, 32).astype(np.float32)
        op = f"%r = cute_nvgpu.arch.{name}_approx(%v) : (f32) -> f32"
        wanted = f(x.astype(np.float64))
        found[name] = Case(unary(op, "f32"), (x, blank(dtype=np.float32)), wanted, tolerance=tolerance)
    return found


# ------------------------------------------------------------------------------------------------------------- atomics


def _atomics() -> dict[str, Case]:
    dtypes = {"i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64, "f16": np.float16}
    found: dict[str, Case] = {}
    for name in ("add", "min", "max", "umin", "umax", "and", "or", "xor"):
        for element, dtype in dtypes.items():
            ints = element[0] == "i"
            if not ints and name != "add" and (name not in ("min", "max") or element == "f16"):
                continue
            x = np.random.default_rng(3).integers(-8, 9, 32).astype(dtype)
            all_ = np.concatenate([np.full(1, 3, dtype), x])
            u = all_.view(f"u{all_.itemsize}")
            every: dict[str, np.generic] = {
                "add": all_.sum(dtype=dtype), "min": all_.min(), "max": all_.max(), "umin": u.min(), "umax": u.max(),
                "and": np.bitwise_and.reduce(u), "or": np.bitwise_or.reduce(u), "xor": np.bitwise_xor.reduce(u),
            }  # fmt: skip
            after = np.full(4, 3, dtype)
            after[:1] = np.asarray(every[name]).reshape(1).view(dtype)
            body = (
                f'%v = cute.memref.load(%x, %c) : (!cute.memref<{element}, gmem, "?:1">, !cute.coord<"?">) -> '
                f"{element}\n"
                f'%p = cute.get_iter(%o) : !cute.memref<{element}, gmem, "?:1">\n'
                f"%r = cute_nvgpu.arch.atomic_{name}(%p, %v) : (!cute.ptr<{element}, gmem>, {element}) -> {element}"
            )
            parameters = f'%x: !cute.memref<{element}, gmem, "?:1">, %o: !cute.memref<{element}, gmem, "?:1">'
            found[f"atomic_{name}_{element}"] = Case(kernel(body, parameters), (x, np.full(4, 3, dtype)), after)
            strong = body.replace("(%p, %v) :", '(%p, %v) {order = "acq_rel", scope = "sys"} :')
            found[f"strong_{name}_{element}"] = Case(kernel(strong, parameters), (x, np.full(4, 3, dtype)), after)
    return found


# --------------------------------------------------------------------------------------------------- barriers, clusters


def produce_and_consume(wait: str, tell: str) -> str:
    """Return a kernel in which warp 1 reads data that warp 0 writes."""
    return (
        f"%s = cute.memref.alloc_smem() : {SMEM}\n%bars = cute.memref.alloc_smem() : {BAR}\n"
        f"%b = cute.get_iter(%bars) : {BAR}\n"
        "%w = cute_nvgpu.arch.warp_id() : () -> i32\n%l = cute_nvgpu.arch.lane_id() : () -> i32\n"
        "%zero = arith.constant 0 : i32\n%one = arith.constant 1 : i32\n%n = arith.constant 32 : i32\n"
        "%all = arith.constant 64 : i32\n%first = arith.cmpi eq, %tid, %zero : i32\n"
        "scf.if %first {\n"
        "  cute_nvgpu.arch.mbarrier_init(%b, %n) : (!cute.ptr<i64, smem>, i32) -> ()\n"
        "  cute_nvgpu.arch.fence_mbarrier_init() : () -> ()\n}\n"
        "cute_nvgpu.arch.barrier() : () -> ()\n"
        "%producer = arith.cmpi eq, %w, %zero : i32\n"
        '%lc = cute.make_coord(%l) : (i32) -> !cute.coord<"?">\n'
        "scf.if %producer {\n"
        f'  %x = arith.muli %l, %n : i32\n  cute.memref.store(%s, %lc, %x) : ({SMEM}, !cute.coord<"?">, i32) -> ()\n'
        f"  {tell}\n}} else {{\n  {wait}\n"
        "  %k = arith.constant 31 : i32\n  %j = arith.subi %k, %l : i32\n"
        '  %jc = cute.make_coord(%j) : (i32) -> !cute.coord<"?">\n'
        f'  %r = cute.memref.load(%s, %jc) : ({SMEM}, !cute.coord<"?">) -> i32\n' + store("i32", "%lc") + "}"
    )


HANDSHAKES = {
    "mbarrier": (
        "cute_nvgpu.arch.mbarrier_wait(%b, %zero) : (!cute.ptr<i64, smem>, i32) -> ()",
        "cute_nvgpu.arch.mbarrier_arrive(%b) : (!cute.ptr<i64, smem>) -> ()",
    ),
    "named": (
        "cute_nvgpu.arch.named_barrier(%one, %all) : (i32, i32) -> ()",
        "cute_nvgpu.arch.named_barrier_arrive(%one, %all) : (i32, i32) -> ()",
    ),
}


def _handshakes() -> dict[str, Case]:
    wanted = ((31 - LANES) * 32).astype(np.int32)
    found = {
        f"handshake_{name}": Case(kernel(produce_and_consume(*how), OUT, 64), (blank(),), wanted, threads=64)
        for name, how in HANDSHAKES.items()
    }
    s = '!cute.memref<i32, smem, "64:1">'
    body = (
        f"%s = cute.memref.alloc_smem() : {s}\n"
        f'cute.memref.store(%s, %c, %tid) : ({s}, !cute.coord<"?">, i32) -> ()\n'
        "cute_nvgpu.arch.barrier() : () -> ()\n"
        "%k = arith.constant 63 : i32\n%j = arith.subi %k, %tid : i32\n"
        '%d = cute.make_coord(%j) : (i32) -> !cute.coord<"?">\n'
        f'%r = cute.memref.load(%s, %d) : ({s}, !cute.coord<"?">) -> i32'
    )
    backwards = np.arange(63, -1, -1, dtype=np.int32)
    found["barrier"] = Case(kernel(body + store("i32"), OUT, 64), (blank(64),), backwards, threads=64)
    return found


def cluster_kernel(body: str) -> str:
    """Return a kernel of four-block clusters, which defines ``%rank`` and ``%next``, the following rank."""
    return kernel(
        "%rank = cute_nvgpu.arch.cluster_rank() : () -> i32\n%size = cute_nvgpu.arch.cluster_size() : () -> i32\n"
        "%one = arith.constant 1 : i32\n%zero = arith.constant 0 : i32\n%up = arith.addi %rank, %one : i32\n"
        "%next = arith.remui %up, %size : i32\n%block = nvvm.read.ptx.sreg.ctaid.x : i32\n"
        "%n = arith.constant 32 : i32\n%at = arith.muli %block, %n : i32\n%i = arith.addi %at, %tid : i32\n"
        '%oc = cute.make_coord(%i) : (i32) -> !cute.coord<"?">\n' + body,
        OUT,
        attributes=", known_cluster_size = array<i32: 4, 1, 1>",
    )


def _clusters() -> dict[str, Case]:
    far = SMEM.replace("smem", "dsmem")
    memory = (
        f"%s = cute.memref.alloc_smem() : {SMEM}\n%p = cute.get_iter(%s) : {SMEM}\n"
        + SYNC
        + "%q = cute_nvgpu.arch.map_cluster(%p, %next) : (!cute.ptr<i32, smem>, i32) -> !cute.ptr<i32, dsmem>\n"
        '%ly = cute.static : !cute.layout<"32:1">\n'
        f"%d = cute.make_view(%q, %ly) : {far}\n"
        f'cute.memref.store(%d, %c, %i) : ({far}, !cute.coord<"?">, i32) -> ()\n'
        + SYNC
        + f'%r = cute.memref.load(%d, %c) : ({far}, !cute.coord<"?">) -> i32\n'
        + f'%m = cute.memref.load(%s, %c) : ({SMEM}, !cute.coord<"?">) -> i32\n'
        "%h = arith.constant 1000 : i32\n%x = arith.muli %r, %h : i32\n%y = arith.addi %x, %m : i32\n"
        + SYNC
        + store("i32", "%oc", "%y")
    )
    block, lane = np.divmod(np.arange(8 * 32), 32)
    before = (block & ~3) + (block - 1) % 4
    wanted = ((block * 32 + lane) * 1000 + before * 32 + lane).astype(np.int32)
    arrivals = (
        f"%bars = cute.memref.alloc_smem() : {BAR}\n%b = cute.get_iter(%bars) : {BAR}\n"
        "%first = arith.cmpi eq, %tid, %zero : i32\nscf.if %first {\n"
        "  cute_nvgpu.arch.mbarrier_init(%b, %n) : (!cute.ptr<i64, smem>, i32) -> ()\n"
        "  cute_nvgpu.arch.fence_mbarrier_init() : () -> ()\n}\n"
        "cute_nvgpu.arch.cluster_arrive() {relaxed} : () -> ()\ncute_nvgpu.arch.cluster_wait() : () -> ()\n"
        "%half = arith.constant 16 : i32\n%low = arith.cmpi ult, %tid, %half : i32\n"
        "cute_nvgpu.arch.mbarrier_arrive_cluster(%b, %next, %low) : (!cute.ptr<i64, smem>, i32, i1) -> ()\n"
        "scf.if %low {\n"
        "  cute_nvgpu.arch.mbarrier_arrive_cluster(%b, %next) : (!cute.ptr<i64, smem>, i32) -> ()\n}\n"
        "cute_nvgpu.arch.mbarrier_wait(%b, %zero) : (!cute.ptr<i64, smem>, i32) -> ()\n"
        + SYNC
        + store("i32", "%oc", "%rank")
    )
    ranks = np.repeat(np.arange(4), 32).astype(np.int32)

    def sent(op: str, meet: str) -> str:
        return (
            f"%bars = cute.memref.alloc_smem() : {BAR}\n%b = cute.get_iter(%bars) : {BAR}\n"
            f"%s = cute.memref.alloc_smem() : {SMEM}\n%p = cute.get_iter(%s) : {SMEM}\n"
            "%first = arith.cmpi eq, %tid, %zero : i32\nscf.if %first {\n"
            "  %single = arith.constant 1 : i32\n  %bytes = arith.constant 128 : i32\n"
            "  cute_nvgpu.arch.mbarrier_init(%b, %single) : (!cute.ptr<i64, smem>, i32) -> ()\n"
            "  cute_nvgpu.arch.mbarrier_arrive_expect_tx(%b, %bytes) : (!cute.ptr<i64, smem>, i32) -> ()\n"
            "  cute_nvgpu.arch.fence_mbarrier_init() : () -> ()\n}\n"
            f"{meet}"
            "%q = cute_nvgpu.arch.map_cluster(%p, %next) : (!cute.ptr<i32, smem>, i32) -> !cute.ptr<i32, dsmem>\n"
            "%f = cute_nvgpu.arch.map_cluster(%b, %next) : (!cute.ptr<i64, smem>, i32) -> !cute.ptr<i64, dsmem>\n"
            '%off = cute.make_int_tuple(%tid) : (i32) -> !cute.int_tuple<"?">\n'
            '%d = cute.add_offset(%q, %off) : (!cute.ptr<i32, dsmem>, !cute.int_tuple<"?">) -> !cute.ptr<i32, dsmem>\n'
            f"cute_nvgpu.arch.{op}(%d, %i, %f) : (!cute.ptr<i32, dsmem>, i32, !cute.ptr<i64, dsmem>) -> ()\n"
            "cute_nvgpu.arch.mbarrier_wait(%b, %zero) : (!cute.ptr<i64, smem>, i32) -> ()\n"
            + f'%m = cute.memref.load(%s, %c) : ({SMEM}, !cute.coord<"?">) -> i32\n'
            + store("i32", "%oc", "%m")
        )

    given = (before * 32 + lane).astype(np.uint32)
    was = (lane * 37 - 500).astype(np.uint32)
    write_first = (
        "%c37 = arith.constant 37 : i32\n%c500 = arith.constant 500 : i32\n"
        "%scaled = arith.muli %tid, %c37 : i32\n%was = arith.subi %scaled, %c500 : i32\n"
        f'cute.memref.store(%s, %c, %was) : ({SMEM}, !cute.coord<"?">, i32) -> ()\n' + SYNC
    )
    relaxed = "cute_nvgpu.arch.cluster_arrive() {relaxed} : () -> ()\ncute_nvgpu.arch.cluster_wait() : () -> ()\n"
    signed = was.view(np.int32), given.view(np.int32)
    reduced = {
        "add": was + given, "min": np.minimum(*signed), "max": np.maximum(*signed),
        "umin": np.minimum(was, given), "umax": np.maximum(was, given),
        "and": was & given, "or": was | given, "xor": was ^ given,
        "inc": np.where(was >= given, 0, was + 1), "dec": np.where((was == 0) | (was > given), given, was - 1),
    }  # fmt: skip
    reductions = {
        f"cluster_reduced_{op}": Case(
            cluster_kernel(sent(f"reduce_async_{op}", write_first)),
            (blank(8 * 32),),
            wanted_now.astype(np.uint32).view(np.int32),
            grid=8,
        )
        for op, wanted_now in reduced.items()
    }
    return {
        "cluster_memory": Case(cluster_kernel(memory), (blank(8 * 32),), wanted, grid=8),
        "cluster_sent": Case(
            cluster_kernel(sent("store_async", relaxed)), (blank(8 * 32),), given.view(np.int32), grid=8
        ),
        "cluster_arrivals": Case(cluster_kernel(arrivals), (blank(4 * 32),), ranks, grid=4),
        **reductions,
    }


CASES: dict[str, Case] = {
    **_shuffles(), **_reductions(), **_ids(), **_fast_functions(), **_atomics(), **_handshakes(), **_clusters()
}  # fmt: skip
"""All cases by name."""
