"""Small programs on tensor memory: a kernel that fills shared and tensor memory, runs tcgen05 ops, and reads D back.

Warp 0 allocates 512 columns. All threads copy an image to shared memory at byte 1024, and another to tensor memory.
Thread 0 runs the ops and commits them; then each warp loads its lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from interp_support import DSMEM, kernel, run_kernel
from numpy.typing import NDArray

from cute_dialect.interp import Pointer, RunReport
from cute_dialect.interp.memory.buffers import SMEM_ORIGIN

IMAGE = SMEM_ORIGIN + 1024
"""Address of the image in shared memory."""
Words = NDArray[np.uint32]
Bytes = NDArray[np.uint8]
STRICT = ("race", "oob", "sync", "strict")


def call(name: str, operands: str = "", types: str = "", result: str = "()") -> str:
    """Return a call of a tcgen05 intrinsic."""
    return f'llvm.call_intrinsic "llvm.nvvm.tcgen05.{name}"({operands}) : ({types}) -> {result}'


def chunks(columns: int) -> list[tuple[int, int]]:
    """Return (first column, power of two) of pieces of at most 64 columns."""
    out: list[tuple[int, int]] = []
    at = 0
    while at < columns:
        n = 64
        while n > columns - at:
            n //= 2
        out.append((at, n))
        at += n
    return out


def constants(numbers: Sequence[int], kind: str) -> str:
    """Return definitions of `%kind_number` for each number."""
    return "\n".join(f"%{kind}_{n if n >= 0 else f'm{-n}'} = arith.constant {n} : {kind}" for n in sorted(set(numbers)))


class Program:
    """A program under construction. Methods add ops of thread 0; `lines` may also be extended."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.defined: set[str] = set()
        self.constants: list[str] = []

    def number(self, value: int, kind: str = "i32") -> str:
        """Return the name of a constant."""
        width = int(kind[1:])
        if width > 1 and value >> (width - 1):
            value -= 1 << width
        name = f"%k{kind}_{value if value >= 0 else f'm{-value}'}"
        if name not in self.defined:
            self.defined.add(name)
            literal = ("true" if value else "false") if kind == "i1" else f"{value} : {kind}"
            self.constants.append(f"{name} = arith.constant {literal}")
        return name

    def tensor(self, column: int, lane: int = 0) -> str:
        """Return the name of a pointer to a column of the allocation."""
        name = f"%p_{lane}_{column}"
        if name not in self.defined:
            self.defined.add(name)
            offset = self.number(lane << 16 | column)
            self.lines.append(f"{name}i = arith.addi %base, {offset} : i32")
            self.lines.append(f"{name} = llvm.inttoptr {name}i : i32 to !llvm.ptr<6>")
        return name

    def mma(
        self,
        name: str,
        a: str,
        b: int,
        shape: int,
        enable: bool,
        more: Sequence[tuple[str, str]],
        d: int = 0,
        lane: int = 0,
    ) -> None:
        """Add an MMA. `a` is the name of a descriptor or pointer, `more` are the operands after the enable flag."""
        kind = "!llvm.ptr<6>" if "tensor" in name else "i64"
        operands = [
            (self.tensor(d, lane), "!llvm.ptr<6>"),
            (a, kind),
            (self.number(b, "i64"), "i64"),
            (self.number(shape), "i32"),
            (self.number(enable, "i1"), "i1"),
            *more,
        ]
        self.lines.append(call(f"mma.{name}", ", ".join(o for o, _ in operands), ", ".join(t for _, t in operands)))

    def codes(self, *values: int) -> list[tuple[str, str]]:
        """Return immediate operands."""
        return [(self.number(v), "i32") for v in values]

    def run(
        self,
        image: Bytes,
        columns: int,
        tensor: Words | None = None,
        *,
        checks: Sequence[str] = STRICT,
        schedule: str = "round-robin",
        reports: Sequence[str] = (),
    ) -> tuple[Words, RunReport]:
        """Run the program and return the first columns of tensor memory, of shape (128, columns).

        An image of shape (2, bytes) has one row for each block of a pair. Tensor memory then has 256 rows, and the ops
        have cta_group 2.
        """
        blocks = len(image) if image.ndim == 2 else 1
        each = image.size // blocks
        size = -(-max(each, 16) // 2048) * 2048
        padded = np.zeros((blocks, size), np.uint8)
        padded[:, :each] = image.reshape(blocks, each)
        filled = np.zeros((128 * blocks, 1), np.uint32) if tensor is None else tensor
        rank = "nvvm.read.ptx.sreg.cluster.ctarank : i32" if blocks == 2 else "arith.constant 0 : i32"
        barrier = "nvvm.cluster.arrive {aligned}\nnvvm.cluster.wait {aligned}" if blocks == 2 else "nvvm.barrier0"
        commit = call("commit.shared.cg1", "%bar", "!llvm.ptr<3>")
        if blocks == 2:
            commit = call("commit.mc.shared.cg2", f"%bar, {self.number(3, 'i16')}", "!llvm.ptr<3>, i16")
        stores, loads = [], []
        for first, n in chunks(0 if tensor is None else filled.shape[1]):
            vector = f"vector<{n}xi32>" if n > 1 else "i32"
            stores.append(f"""
    %to{first} = arith.addi %mine, {self.number(first)} : i32
    %tp{first} = llvm.inttoptr %to{first} : i32 to !llvm.ptr<6>
    %ti{first} = arith.muli %thread, {self.number(filled.shape[1])} : i32
    %tj{first} = arith.addi %ti{first}, {self.number(first)} : i32
    %tg{first} = llvm.getelementptr %tensor[%tj{first}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %tv{first} = llvm.load %tg{first} {{alignment = 4 : i64}} : !llvm.ptr<1> -> {vector}
    {call(f"st.32x32b.x{n}", f"%tp{first}, %tv{first}, {self.number(0, 'i1')}", f"!llvm.ptr<6>, {vector}, i1")}""")
        for first, n in chunks(columns):
            vector = f"vector<{n}xi32>" if n > 1 else "i32"
            loads.append(f"""
    %ro{first} = arith.addi %mine, {self.number(first)} : i32
    %rp{first} = llvm.inttoptr %ro{first} : i32 to !llvm.ptr<6>
    %rv{first} = {call(f"ld.32x32b.x{n}", f"%rp{first}, {self.number(0, 'i1')}", "!llvm.ptr<6>, i1", vector)}
    {call("wait.ld")}
    %ri{first} = arith.muli %thread, {self.number(columns)} : i32
    %rj{first} = arith.addi %ri{first}, {self.number(first)} : i32
    %rg{first} = llvm.getelementptr %out[%rj{first}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %rv{first}, %rg{first} {{alignment = 4 : i64}} : {vector}, !llvm.ptr<1>""")
        c512, c1, c0, c32, c21, c16 = (self.number(v) for v in (512, 1, 0, 32, 21, 16))
        body = f"""
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %bar = llvm.getelementptr %d[8] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %smem = llvm.getelementptr %d[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %warp = arith.divui %tid, {c32} : i32
    %isfirst = arith.cmpi eq, %warp, {c0} : i32
    %leads = arith.cmpi eq, %tid, {c0} : i32
    %rank = {rank}
    %iszero = arith.cmpi eq, %rank, {c0} : i32
    %single = arith.andi %leads, %iszero : i1
    %before = arith.muli %rank, {self.number(128)} : i32
    %thread = arith.addi %tid, %before : i32
    %images = arith.muli %rank, {self.number(size)} : i32
    %mineimage = llvm.getelementptr %image[%images] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    scf.if %isfirst {{
      {call(f"alloc.shared.cg{blocks}", f"%d, {c512}", "!llvm.ptr<3>, i32")}
    }}
    scf.if %leads {{
      nvvm.mbarrier.init %bar, {c1} : !llvm.ptr<3>, i32
    }}
    %sixteen = arith.muli %tid, {c16} : i32
    scf.for %i = %sixteen to {self.number(size)} step {self.number(2048)} : i32 {{
      %from = llvm.getelementptr %mineimage[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
      %to = llvm.getelementptr %smem[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %v = llvm.load %from {{alignment = 16 : i64}} : !llvm.ptr<1> -> vector<4xi32>
      llvm.store %v, %to {{alignment = 16 : i64}} : vector<4xi32>, !llvm.ptr<3>
    }}
    nvvm.fence.proxy {{kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}}
    {barrier}
    {call("fence.after.thread.sync")}
    %base = llvm.load %d : !llvm.ptr<3> -> i32
    %lane = arith.shli %warp, {c21} : i32
    %mine = arith.addi %base, %lane : i32
    {"".join(stores)}
    {call("wait.st")}
    {call("fence.before.thread.sync")}
    {barrier}
    {call("fence.after.thread.sync")}
    scf.if %single {{
      {chr(10).join(self.lines)}
      {commit}
    }}
    nvvm.mbarrier.try_wait.parity %bar, {c0}, {self.number(10000)} : !llvm.ptr<3>, i32, i32
    {call("fence.after.thread.sync")}
    {"".join(loads)}
    {call("fence.before.thread.sync")}
    {barrier}
    scf.if %isfirst {{
      %all = llvm.inttoptr %base : i32 to !llvm.ptr<6>
      {call(f"dealloc.cg{blocks}", f"%all, {c512}", "!llvm.ptr<6>, i32")}
    }}
    llvm.return
        """
        out = np.zeros((128 * blocks, columns), np.uint32)
        params = "%image: !llvm.ptr<1>, %tensor: !llvm.ptr<1>, %out: !llvm.ptr<1>"
        module = kernel("\n".join(self.constants) + body, params, DSMEM)
        arguments = [Pointer(padded), Pointer(np.ascontiguousarray(filled)), Pointer(out)]
        report = run_kernel(
            module,
            "k",
            arguments,
            blocks,
            128,
            cluster=blocks,
            dynamic_smem=1024 + size,
            checks=list(checks),
            schedule=schedule,
            reports=reports,
        )
        return out, report


def rows(matrix: Bytes, start: int) -> tuple[Bytes, int]:
    """Return rows of bytes as core matrices of 8 rows of 16 bytes without swizzle, and their descriptor.

    Args:
        matrix: Bytes of shape (rows, bytes), a multiple of 8 rows and of 16 bytes.
        start: Offset in the image.
    """
    r, c = matrix.shape
    data = matrix.reshape(r // 8, 8, c // 16, 16).transpose(2, 0, 1, 3).reshape(-1)
    at = IMAGE + start
    return data, (at >> 4) | (16 * r >> 4) << 16 | (128 >> 4) << 32 | 1 << 46
