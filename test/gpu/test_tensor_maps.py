"""Tensor maps on the GPU: a map encoded by the driver moves each element to the place that the layouts state."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from arch_support import fill, header

from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, Layout
from cute_dialect.arch import copy_atom, find_tma
from cute_dialect.arch.descriptors import smem_tile
from cute_dialect.arch.tensor_map import Im2colMapSpec, TensorDim, TensorMapSpec, im2col_for_convolution
from cute_dialect.arch.tma import derive
from cute_dialect.runtime import driver as cuda
from cute_dialect.runtime.host_program import LaunchShape, Pointer, TensorMap

# CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion (CUDA driver API).
DATA_TYPE = {
    "UINT8": 0,
    "UINT16": 1,
    "UINT32": 2,
    "INT32": 3,
    "INT64": 5,
    "FLOAT16": 6,
    "FLOAT32": 7,
    "FLOAT64": 8,
    "BFLOAT16": 9,
    "TFLOAT32": 11,
}
INTERLEAVE = {0: 0, 16: 1, 32: 2}
SWIZZLE = {0: 0, 32: 1, 64: 2, 128: 3}
PROMOTION = {0: 0, 64: 1, 128: 2, 256: 3}
WORD = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def array(kind: type, values: Sequence[int]) -> object:
    return (kind * max(1, len(values)))(*values)


def encode(spec: TensorMapSpec | Im2colMapSpec, address: int) -> ctypes.Array[ctypes.c_char]:
    """Encode a spec with the driver into 128 bytes. The driver must accept every spec that passes its own checks."""
    storage = ctypes.create_string_buffer(192)
    at = -(-ctypes.addressof(storage) // 64) * 64
    library = ctypes.CDLL("libcuda.so.1")
    from cute_dialect.arch.tensor_map import DATA_TYPES

    kind = ctypes.c_int(DATA_TYPE[DATA_TYPES[spec.element]])
    extents, strides = array(ctypes.c_uint64, spec.extents), array(ctypes.c_uint64, spec.strides)  # type: ignore[arg-type]
    tail = [
        ctypes.c_int(INTERLEAVE[spec.interleave]),
        ctypes.c_int(SWIZZLE[spec.swizzle]),
        ctypes.c_int(PROMOTION[spec.l2_promotion]),
        ctypes.c_int(spec.oob_fill == "nan"),
    ]
    common = [ctypes.c_void_p(at), kind, ctypes.c_uint32(len(spec.extents)), ctypes.c_uint64(address), extents, strides]
    element_strides = array(ctypes.c_uint32, spec.element_strides)
    if isinstance(spec, TensorMapSpec):
        code = library.cuTensorMapEncodeTiled(*common, array(ctypes.c_uint32, spec.box), element_strides, *tail)
    else:
        code = library.cuTensorMapEncodeIm2col(
            *common,
            array(ctypes.c_int, spec.lower),
            array(ctypes.c_int, spec.upper),
            ctypes.c_uint32(spec.channels),
            ctypes.c_uint32(spec.pixels),
            element_strides,
            *tail,
        )
    assert code == 0, f"the driver refuses {spec}: {code}"
    return ctypes.create_string_buffer(ctypes.string_at(at, 128), 128)


def kernel(instructions: list[str], smem: int, loads: bool, total: int) -> str:
    """Return a kernel ``(map, out, image)`` that fills shared memory from ``image`` and finally dumps it to ``out``."""
    move = (
        "  mov.u32 %i, %t;\nLOOP{n}:\n  setp.lt.u32 %p, %i, " + str(smem) + ";\n  @!%p bra END{n};\n"
        "  cvt.u64.u32 %x, %i;\n  add.u64 %y, %x, %{mem};\n  add.u32 %w, %s, %i;\n{body}  add.u32 %i, %i, 128;\n"
        "  bra LOOP{n};\nEND{n}:\n"
    )
    into = move.format(n=0, mem="g", body="  ld.global.b8 %v, [%y];\n  st.shared.b8 [%w], %v;\n")
    out = move.format(n=1, mem="o", body="  ld.shared.b8 %v, [%w];\n  st.global.b8 [%y], %v;\n")
    issue = "".join(f"  @%first {i}\n" for i in instructions)
    wait = (
        "WAIT:\n  mbarrier.try_wait.parity.shared.b64 %p, [%b], 0;\n  @!%p bra WAIT;\n"
        if loads
        else "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n"
    )
    return (
        ".visible .entry probe(.param .align 64 .b8 map[128], .param .u64 out, .param .u64 image)\n.reqntid 128\n{\n"
        f"  .shared .align 1024 .b8 tile[{smem}];\n  .shared .align 8 .b64 bar;\n"
        "  .reg .u64 %map, %g, %o, %x, %y;\n  .reg .b32 %s, %b, %t, %i, %w;\n"
        "  .reg .b16 %v, %m;\n  .reg .pred %p, %first;\n  mov.b16 %m, 1;\n"
        "  mov.u64 %map, map;\n  cvta.param.u64 %map, %map;\n"
        "  ld.param.u64 %g, [image];\n  cvta.to.global.u64 %g, %g;\n"
        "  ld.param.u64 %o, [out];\n  cvta.to.global.u64 %o, %o;\n  mov.u32 %s, tile;\n  mov.u32 %b, bar;\n"
        "  mov.u32 %t, %tid.x;\n  setp.eq.u32 %first, %t, 0;\n"
        "  @%first mbarrier.init.shared.b64 [%b], 1;\n  fence.mbarrier_init.release.cluster;\n"
        f"{into}  fence.proxy.async.shared::cta;\n  bar.sync 0;\n"
        f"  @%first mbarrier.arrive.expect_tx.shared.b64 _, [%b], {total};\n{issue}{wait}{out}  ret;\n}}\n"
    )


def launch(ptx: str, tensor_map: ctypes.Array[ctypes.c_char], image: np.ndarray, out: int) -> None:
    gpu = cuda.driver()
    function = gpu.get_function(gpu.load_module((header("8.0", "sm_90a") + ptx).encode() + b"\0"), "probe")
    pointer = gpu.allocate(image.nbytes)
    gpu.to_device(pointer, image.ctypes.data, image.nbytes)
    values = [tensor_map, ctypes.c_uint64(out), ctypes.c_uint64(pointer)]
    parameters = (ctypes.c_void_p * 3)(*(ctypes.addressof(v) for v in values))
    gpu.launch(function, LaunchShape(block=(128, 1, 1)), parameters)
    gpu.synchronize(0)
    gpu.free(pointer)


class Buffer:
    """Device memory that holds a numpy array."""

    def __init__(self, data: np.ndarray):
        self.gpu = cuda.driver()
        self.gpu.enter(0)
        self.data = np.ascontiguousarray(data)
        self.pointer = self.gpu.allocate(self.data.nbytes)
        self.gpu.to_device(self.pointer, self.data.ctypes.data, self.data.nbytes)

    def read(self) -> np.ndarray:
        self.gpu.to_host(self.data.ctypes.data, self.pointer, self.data.nbytes)
        self.gpu.free(self.pointer)
        return self.data


def coordinates(layout: Layout, coord: object, rank: int) -> list[int]:
    out = [0] * rank

    def walk(value: object, path: tuple[int, ...]) -> None:
        if isinstance(value, tuple):
            for i, v in enumerate(value):
                walk(v, (*path, i))
        elif value:
            out[path[0]] += value  # type: ignore[operator]

    walk(evaluate(coord, layout), ())  # type: ignore[arg-type]
    return out


def instructions(spec: TensorMapSpec, direction: str, first: list[int], multicast: bool = False) -> list[str]:
    """Return an instruction per box (and slice) of the tile that starts at the TMA coordinates ``first``."""
    out: list[str] = []
    for box, cta in product(range(spec.boxes), range(spec.multicast)):
        step = coordinates(spec.steps, box, spec.rank)
        part = coordinates(spec.slices, cta, spec.rank) if spec.multicast > 1 else [0] * spec.rank
        at = [sum(x) for x in zip(first, step, part)]
        place = f"%s+{evaluate(box, spec.offsets) * (spec.element_bits // 8) + cta * spec.box_bytes}"  # type: ignore[operator]
        operands = {f"c{i}": str(c) for i, c in enumerate(at)}
        operands |= {"map": "%map", "bar": "%b", "d": place, "a": place, "mask": "%m"}
        out.append(fill(find_tma(direction, spec.rank, multicast=multicast).ptx, operands))
    return out


def place(smem: AnyLayout, point: tuple[int, ...]) -> int:
    return evaluate(point, smem)  # type: ignore[return-value]


def check_load(
    gmem: Layout, smem: AnyLayout, tile: tuple[int, ...], elt: str, at: tuple[int, ...], **options: object
) -> None:
    spec = derive(gmem, smem, tile, elt, **options)  # type: ignore[arg-type]
    word = WORD[spec.element_bits // 8]
    cosize = int(evaluate(size(gmem) - 1, gmem)) + 1  # type: ignore[operator,arg-type]
    # Bit patterns that are not NaN in any type.
    memory = (np.arange(cosize, dtype=np.uint64) * 7 % (97 if word is np.uint8 else 30011)).astype(word)
    source = Buffer(memory)
    plain = smem.outer if isinstance(smem, ComposedLayout) else smem
    elements = int(evaluate(size(plain) - 1, plain)) + 1  # type: ignore[operator,arg-type]
    result = Buffer(np.full(elements, 0, dtype=word))
    origin = tuple(c * t for c, t in zip(at, tile))
    total = spec.boxes * spec.multicast * spec.box_bytes
    code = kernel(
        instructions(spec, "load", coordinates(spec.coordinates, origin, spec.rank)),
        elements * (spec.element_bits // 8),
        True,
        total,
    )
    poison = np.full(elements, np.iinfo(word).max, dtype=word)
    launch(code, encode(spec.bind([], source.pointer), source.pointer), poison, result.pointer)
    got = result.read()
    source.read()
    wanted = poison.copy()
    sizes = [int(size(m)) for m in gmem]  # type: ignore[arg-type]
    for point in product(*(range(t) for t in tile)):
        element = tuple(o + p for o, p in zip(origin, point))
        inside = all(e < s for e, s in zip(element, sizes))
        wanted[place(smem, point)] = memory[evaluate(element, gmem)] if inside else 0  # type: ignore[index]
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize("elt", ["f8E4M3FN", "bf16", "f32"])
@pytest.mark.parametrize("width", [0, 32, 64, 128])
@pytest.mark.parametrize("major", ["k", "mn"])
def test_tile_loads(elt: str, width: int, major: str) -> None:
    unit = {"f8E4M3FN": 16, "bf16": 8, "f32": 4}[elt]
    gmem = Layout((100, 160), (160, 1)) if major == "k" else Layout((160, 100), (1, 160))
    tile = (64, 8 * unit) if major == "k" else (8 * unit, 32)
    for order in (None, (1, 0)):
        for at in ((0, 0), (1, 1)):  # The second tile crosses the edges of the tensor.
            check_load(gmem, smem_tile(major, width, elt, tile, order), tile, elt, at)


def test_more_modes() -> None:
    check_load(Layout("(1000):(1)"), Layout("(256):(1)"), (256,), "f16", (3,))
    check_load(Layout((64, 48, 3), (48, 1, 64 * 48)), Layout((32, 16, 1), (16, 1, 0)), (32, 16, 1), "f32", (1, 2, 2))
    nested = Layout(((8, 6), (16, 4)), ((64, 512), (1, 16)))
    check_load(nested, Layout((16, 16), (16, 1)), (16, 16), "f32", (2, 3))
    five = Layout((8, 16, 2, 3, 2), (1, 8, 128, 256, 768))
    check_load(five, Layout((8, 16, 2, 1, 2), (1, 8, 128, 0, 256)), (8, 16, 2, 1, 2), "f16", (0, 0, 0, 2, 0))
    seven = Layout((8, 16, 2, 3, 2, 2, 3), (1, 8, 128, 256, 768, 1536, 3072))
    check_load(seven, Layout((8, 16, 1, 1, 1, 1, 1)), (8, 16, 1, 1, 1, 1, 1), "f16", (0, 0, 1, 2, 1, 1, 2))
    check_load(Layout((64, 64), (64, 1)), Layout("((8,4),64):((64,2048),1)"), (32, 64), "f16", (1, 0))


def test_slices_of_a_multicast_fill_the_tile() -> None:
    # One CTA loads all the slices that the CTAs of a cluster would multicast.
    for ctas in (2, 4):
        check_load(
            Layout("(256,128):(128,1)"), smem_tile("k", 128, "f16", (128, 64)), (128, 64), "f16", (1, 1), multicast=ctas
        )


def test_element_strides() -> None:
    gmem, tile = Layout((64, 32), (32, 1)), (Layout((16,), (2,)), Layout(32))
    spec = derive(gmem, Layout((16, 32), (32, 1)), tile, "f32")
    source, result = Buffer(np.arange(2048, dtype=np.uint32)), Buffer(np.zeros(512, dtype=np.uint32))
    code = kernel(instructions(spec, "load", [0, 8]), 2048, True, spec.box_bytes)
    launch(code, encode(spec, source.pointer), np.zeros(512, dtype=np.uint32), result.pointer)
    wanted = source.read().reshape(64, 32)[8:40:2]
    assert np.array_equal(result.read().reshape(16, 32), wanted)


def test_narrow_rows_in_a_wide_swizzle() -> None:
    # Rows of 64 bytes under the 128-byte swizzle occupy 128 bytes each, so no dense layout describes them.
    dims = (TensorDim(64, 1, 32), TensorDim(64, 64, 16))
    spec = TensorMapSpec("f16", dims, swizzle=128)
    source, result = Buffer(np.arange(4096, dtype=np.uint16)), Buffer(np.zeros(1024, dtype=np.uint16))
    operands = {"c0": "0", "c1": "0", "map": "%map", "bar": "%b", "d": "%s"}
    code = kernel([fill(find_tma("load", 2).ptx, operands)], 2048, True, spec.box_bytes)
    launch(code, encode(spec, source.pointer), np.full(1024, 0xFFFF, dtype=np.uint16), result.pointer)
    got, memory = result.read(), source.read().reshape(64, 64)
    wanted = np.full(1024, 0xFFFF, dtype=np.uint16)
    for r, c in product(range(16), range(32)):
        offset = 64 * r + c
        wanted[offset ^ ((offset >> 6 & 7) << 3)] = memory[r, c]
    assert np.array_equal(got, wanted), got.reshape(16, 64)[:4]


@pytest.mark.parametrize("direction", ["store", "reduce_add"])
@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_stores(direction: str, rank: int) -> None:
    shape, tile = (24, 6, 5, 3, 2)[:rank], (16, 4, 2, 2, 1)[:rank]
    gmem = Layout(shape)
    smem = Layout(tile)
    spec = derive(gmem, smem, tile, "i32")
    before = np.arange(int(np.prod(shape)), dtype=np.uint32) * 3
    target = Buffer(before.copy())
    data = np.arange(1000, 1000 + int(np.prod(tile)), dtype=np.uint32)
    dump = Buffer(np.zeros(data.size, dtype=np.uint32))
    at = (1,) * rank
    origin = tuple(a * t for a, t in zip(at, tile))
    code = kernel(instructions(spec, direction, coordinates(spec.coordinates, origin, rank)), data.nbytes, False, 0)
    launch(code, encode(spec, target.pointer), data, dump.pointer)
    got = target.read()
    wanted = before.copy()
    for point in product(*(range(t) for t in tile)):
        element = tuple(o + p for o, p in zip(origin, point))
        if all(e < s for e, s in zip(element, shape)):
            value = data[evaluate(point, smem)]  # type: ignore[index]
            i = evaluate(element, gmem)
            wanted[i] = value + (before[i] if direction == "reduce_add" else 0)  # type: ignore[index]
    assert np.array_equal(got, wanted)
    assert np.array_equal(dump.read(), data)


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_prefetch_and_multicast_to_one_block(rank: int) -> None:
    shape, tile = (24, 6, 5, 3, 2)[:rank], (16, 4, 2, 2, 1)[:rank]
    gmem, data = Layout(shape), np.arange(int(np.prod(shape)), dtype=np.uint32)
    spec = derive(gmem, Layout(tile), tile, "i32")
    source, result = Buffer(data), Buffer(np.zeros(int(np.prod(tile)), dtype=np.uint32))
    steps = [fill(copy_atom("SM90_TMA_DESCRIPTOR_PREFETCH").ptx, {"map": "%map"})]
    steps += instructions(spec, "prefetch", [0] * rank) + instructions(spec, "load", [0] * rank, multicast=True)
    code = kernel(steps, spec.box_bytes, True, spec.box_bytes)
    launch(code, encode(spec, source.pointer), np.zeros(spec.box_elements, dtype=np.uint32), result.pointer)
    got = result.read()
    assert [got[i] for i in range(got.size)] == [
        source.data[evaluate(point[::-1], gmem)]  # type: ignore[index]
        for point in product(*(range(t) for t in reversed(tile)))
    ]
    source.read()


@pytest.mark.parametrize("direction", ["store", "reduce_add"])
@pytest.mark.parametrize("rank", [3, 4, 5])
def test_im2col_stores(rank: int, direction: str) -> None:
    # Without padding and filter, the base pixels are the pixels of the tensor in order.
    spatial = (9, 7, 5)[: rank - 2]
    spec = im2col_for_convolution(
        "i32", (8, *spatial, 3), (1,) * (rank - 2), padding=(0,) * (rank - 2), stride=(1,) * (rank - 2),
        dilation=(1,) * (rank - 2), channels=4, pixels=16,
    )  # fmt: skip
    before = np.arange(8 * int(np.prod(spatial)) * 3, dtype=np.uint32)
    data = np.arange(5000, 5064, dtype=np.uint32)
    target, dump = Buffer(before.copy()), Buffer(np.zeros(64, dtype=np.uint32))
    operands = {f"c{i}": str(c) for i, c in enumerate([4, 2, *[0] * (rank - 3), 1])} | {"map": "%map", "a": "%s"}
    code = kernel([fill(find_tma(direction, rank, im2col=True).ptx, operands)], 256, False, 0)
    launch(code, encode(spec, target.pointer), data, dump.pointer)
    wanted = before.copy().reshape(-1, 8)
    first = int(np.prod(spatial)) + 2
    block = data.reshape(16, 4)
    wanted[first : first + 16, 4:] = block + (wanted[first : first + 16, 4:] if direction == "reduce_add" else 0)
    assert np.array_equal(target.read(), wanted.reshape(-1))


@pytest.mark.parametrize("extra", ["", "prefetch", "multicast"])
@pytest.mark.parametrize("rank", [3, 4, 5])
def test_im2col_loads(rank: int, extra: str) -> None:
    # Base pixels are visited in the order W, H, D, N, each shifted by the filter tap. Outside the tensor they are zero.
    spatial, channels, pixels, batch = (9, 7, 5)[: rank - 2], 16, 64, 3
    taps, padding, dilation = (3, 3, 2)[: rank - 2], (1, 1, 0)[: rank - 2], (1, 2, 1)[: rank - 2]
    spec = im2col_for_convolution(
        "f16", (32, *spatial, batch), taps, padding=padding, stride=(1,) * (rank - 2), dilation=dilation,
        channels=channels, pixels=pixels,
    )  # fmt: skip
    tensor = (np.arange(32 * int(np.prod(spatial)) * batch) % 30011).astype(np.uint16)
    grid = tensor.reshape(batch, *reversed(spatial), 32)
    ranges = [range(low, extent + high) for low, extent, high in zip(spec.lower, spatial, spec.upper)]
    bases = [(n, *reversed(p)) for n in range(batch) for p in (q[::-1] for q in product(*reversed(ranges)))]
    for start, tap in ((0, 0), (5, 1)):
        offsets = [min(tap, t - 1) * d for t, d in zip(taps, dilation)]
        n, *high_first = bases[start]
        at = [16, *reversed(high_first), n]
        operands = {f"c{i}": str(c) for i, c in enumerate(at)} | {"map": "%map", "bar": "%b", "d": "%s"}
        operands |= {f"o{i}": f"%o{i}" for i in range(rank - 2)}
        operands["mask"] = "%m"
        steps = [fill(find_tma("load", rank, im2col=True, multicast=extra == "multicast").ptx, operands)]
        if extra == "prefetch":
            steps.insert(0, fill(find_tma("prefetch", rank, im2col=True).ptx, operands))
        code = kernel(steps, spec.box_bytes, True, spec.box_bytes)
        moves = "".join(f"  .reg .b16 %o{i};\n  mov.b16 %o{i}, {o};\n" for i, o in enumerate(offsets))
        code = code.replace("  mov.u64 %map, map;\n", moves + "  mov.u64 %map, map;\n")
        source, result = Buffer(tensor), Buffer(np.zeros(pixels * channels, dtype=np.uint16))
        launch(code, encode(spec, source.pointer), np.zeros(pixels * channels, dtype=np.uint16), result.pointer)
        source.read()
        wanted = np.zeros((pixels, channels), dtype=np.uint16)
        for i, (n, *high_first) in enumerate(bases[start : start + pixels]):
            point = [h + o for h, o in zip(high_first, reversed(offsets))]
            if all(0 <= x < e for x, e in zip(point, reversed(spatial))):
                wanted[i] = grid[(n, *point)][16 : 16 + channels]
        assert np.array_equal(result.read().reshape(pixels, channels), wanted)


def test_maps_by_cuda_python_are_the_drivers() -> None:
    """Tensor maps encoded through cuda-python have the same bytes as those of a direct driver call."""
    gpu = cuda.driver()
    gpu.enter(0)
    address = gpu.allocate(1 << 20)
    spec = TensorMapSpec(
        element="f16", dims=(TensorDim(512, 1, 64, 1), TensorDim(300, 520, 128, 1)), swizzle=128, l2_promotion=128
    )
    want = bytes(encode(spec, address))
    described = TensorMap(Pointer(0, 0), (512, 300), (1040,), (64, 128), (1, 1), 6, 0, 3, 2, 0)
    own = [gpu.encode_map(address, described) for _ in range(64)]
    assert own == [want] * 64
    gpu.free(address)
