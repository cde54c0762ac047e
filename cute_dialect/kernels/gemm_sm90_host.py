"""The types of a Hopper GEMM, the arguments of its kernel, and the host function that launches it."""

from __future__ import annotations

from cute_dialect.kernels.gemm_sm90_config import BITS, GemmConfig, Operand, one_more
from cute_dialect.kernels.gemm_sm90_epilogue import arguments, checks
from cute_dialect.kernels.script import Script
from cute_dialect.kernels.values import Value

__all__ = ["GemmHost"]


class GemmHost:
    """Names the types; emits the host function."""

    def __init__(self, b: Script, config: GemmConfig):
        self.b = b
        self.c = c = config
        m, n, _ = c.tile
        e, out = c.element, c.output
        self.A_ = Operand(c, m, c.cluster_n, c.major_a)
        self.B_ = Operand(c, n, c.cluster_m, "k" if c.major_b == "k" else "mn")
        chunk = c.chunk
        staging = f"(64,{chunk},2,{c.consumers}):({chunk},1,{64 * chunk},{128 * chunk})"
        self.sC = f'!cute.memref<{out}, smem, align<1024>, S<3,4,3>, "{staging}">'
        self.barriers_type = f'!cute.memref<i64, smem, "({c.stages},2):(1,{c.stages})">'
        extra = ", 1" if c.batch else ""
        self.tma_c = f"!cute_nvgpu.atom.tma_store<{out}, box = ({chunk}, 16{extra}), swizzle = 128, l2 = 256>"
        majors = ", ".join("k" if x == "k" else "mn" for x in (c.major_a, c.major_b))
        self.wgmma = f"!cute_nvgpu.atom.wgmma<64x{n}x{256 // c.bits}, (f32,{e},{e},f32), A = smem, major = ({majors})>"
        groups, self.atoms = (1, m // 64) if c.schedule == "pingpong" else (c.consumers, 1)
        atoms = self.atoms  # instructions a warp group needs for its rows
        layout = "(1,1,1):(0,0,0)" if groups == 1 and atoms > 1 else f"({groups},1,1):(1,0,0)"
        self.mma = f'!cute.tiled_mma<{self.wgmma}, atom_layout_MNK = <"{layout}">>'
        fragment = f'"((2,2,{n // 8}),{atoms},1):((1,2,4),{n // 2 if atoms > 1 else 0},0)"'
        self.acc = f"!cute.memref<f32, rmem, {fragment}>"
        self.result = f"!cute.memref<{out}, rmem, {fragment}>"
        vector = 128 // BITS[out]
        strides = f"(?{{div={vector}}},1)" if not c.batch else f"(?{{div={vector}}},1,?{{div={vector}}})"
        self.matC = f'!cute.memref<{out}, gmem, align<16>, "{"(?,?,?)" if c.batch else "(?,?)"}:{strides}">'

        for name, text in self._types().items():
            b.name_type(name, text)

    def _types(self) -> dict[str, str]:
        return {
            "sA": self.A_.smem, "sB": self.B_.smem, "sC": self.sC, "barriers": self.barriers_type,
            "loadA": self.A_.atom, "loadB": self.B_.atom, "storeC": self.tma_c, "wgmma": self.wgmma, "mma": self.mma,
            "acc": self.acc, "result": self.result, "A": self.A_.matrix, "B": self.B_.matrix, "C": self.matC,
        }  # fmt: skip

    def parameters(self) -> dict[str, str]:
        """Names and types of the kernel's parameters."""
        found = {"loadA": self.A_.atom, "loadB": self.B_.atom, "storeC": self.tma_c}
        found |= {"tiles_m": "i32", "tiles_n": "i32", "k_tiles": "i32"}
        found |= {"matrices": "i32"} if self.c.batch else {}
        return found | self.more_arguments() | self.epilogue_arguments()

    def more_arguments(self) -> dict[str, str]:
        """Return further arguments of the host function, which go to the kernel; those of the epilogue follow."""
        return {}

    def epilogue_arguments(self) -> dict[str, str]:
        """Return the arguments of the epilogue."""
        return arguments(self.c.epilogue, self.c.output, batch=self.c.batch)

    def host(self, *, fallback: str = "") -> None:
        """Emit ``@launch(A, B, C)``: the tensor maps, the numbers of tiles, the grid; ``fallback``
        for other matrices.
        """
        b, c = self.b, self.c
        m, n, k = c.tile
        matrices = {"A": self.A_.matrix, "B": self.B_.matrix, "C": self.matC}
        fused = self.epilogue_arguments()
        arguments = matrices | self.more_arguments() | fused
        with b.host("launch", arguments, fallback=fallback) as (A, B, C, *others):
            rows, columns, depth, *more = self.check_shapes(A, B, C)
            checks(c.epilogue, b, dict(zip(fused, others[len(others) - len(fused) :])), rows, columns, more)
            load_a = self._map("load", A, self.A_.atom, f"[{self.A_.part}:1;{k}:1]", self.A_.tile_layout)
            load_b = self._map("load", B, self.B_.atom, f"[{self.B_.part}:1;{k}:1]", self.B_.tile_layout)
            layout = f"(16,{c.chunk}):({c.chunk},1)"
            layout = one_more(layout, "0") if c.batch else layout
            store_c = self._map("store", C, self.tma_c, f"[16:1;{c.chunk}:1]", layout)
            tiles_m, tiles_n = b.ceil_div(rows, m * c.cluster_m), b.ceil_div(columns, n * c.cluster_n)
            k_tiles = b.ceil_div(depth, k)
            self.launch([load_a, load_b, store_c, tiles_m, tiles_n, k_tiles, *more, *others])

    def launch(self, arguments: list[Value]) -> None:
        """Launch as many blocks as the waves that the tiles make need."""
        b, c = self.b, self.c
        tiles = arguments[3] * arguments[4]
        if c.batch:
            tiles = tiles * arguments[6]
        waves = b.ceil_div(tiles, c.sms // c.cluster)
        grid = ((tiles + waves - 1) // waves) * c.cluster
        b.launch("gemm", arguments, grid=grid, threads=c.threads)

    def _map(self, kind: str, tensor: Value, expected: str, tile: str, layout: str) -> Value:
        """Make the tensor map for tiles of a matrix."""
        b = self.b
        tiler = b.tile(tile[:-1] + ";1:1]" if self.c.batch else tile)
        atom, _ = b.results(f"cute_nvgpu.make_tma_{kind}", tensor, b.layout(layout), tiler, swizzle=128, l2=256)
        if atom.type != b.type(expected):
            raise ValueError(f"expected {expected}, got {atom.type}")
        return atom

    def check_shapes(self, A: Value, B: Value, C: Value) -> list[Value]:
        """Assert that the matrices fit; gives M, N, K (and the number of matrices)."""
        b = self.b
        rows, depth, *more = self._shape(A)
        columns, depth_b, *more_b = self._shape(B)
        rows_c, columns_c, *more_c = self._shape(C)
        checks = [
            (depth.eq(depth_b), "A and B must have the same K"),
            (rows.eq(rows_c), "A and C must have the same M"),
            (columns.eq(columns_c), "B and C must have the same N"),
        ]
        for one, two, name in zip(more * 2, [*more_b, *more_c], "BC"):
            checks.append((one.eq(two), f"A and {name} must have as many matrices"))
        for ok, text in checks:
            b.do("cf.assert", ok, msg=f'"{text}"')
        return [rows, columns, depth, *more]

    def _shape(self, tensor: Value) -> list[Value]:
        b = self.b
        shape = b.op("cute.get_shape", b.op("cute.get_layout", tensor))
        return list(b.results("cute.get_scalars", shape, types=["i32"] * (3 if self.c.batch else 2)))
