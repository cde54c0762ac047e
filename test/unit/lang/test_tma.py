"""TMA: tensor maps, tile loads, stores, reductions, multicast and masks, compared with numpy on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from front_tensors import shared_tensor
from tracing import text_of, trace_kernel

import cute_dialect.lang as cute
from cute_dialect.errors import CuteError
from cute_dialect.lang.control.runtime import converted
from cute_dialect.lang.values.tensors import Tensor

cpasync = cute.nvgpu.cpasync
warpgroup = cute.nvgpu.warpgroup
arch = cute.arch

SWIZZLED = 'f16, smem, align<1024>, S<3,4,3>, "(64,64):(64,1)"'


@cute.kernel
def copy_tiles(load: Any, source: Any, store: Any, destination: Any) -> None:
    """Copy tile (x, y) of the source to tile (x, y) of the destination with the first warp."""
    s = shared_tensor(SWIZZLED)
    bar = shared_tensor('i64, smem, align<8>, "1:0"').iterator
    warp = arch.warp_idx()
    bidx, bidy, _ = arch.block_idx()
    if arch.thread_idx().x == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
    arch.sync_threads()
    g = cute.local_tile(source, (64, 64), (bidx, bidy))
    r = cute.local_tile(destination, (64, 64), (bidx, bidy))
    tS, tG = cpasync.tma_partition(load, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
    if warp == 0:
        cpasync.prefetch_descriptor(load)
        if arch.issues():
            arch.mbarrier_arrive_and_expect_tx(bar, 64 * 64 * 2)
        cute.copy(load, tG, tS, tma_bar_ptr=bar, mcast_mask=0)
    arch.mbarrier_wait(bar, 0)
    arch.sync_threads()
    if warp == 0:
        cute.copy(store, s, r)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)


def layout_atom() -> Any:
    """Return the layout of a 64 x 64 tile of 16-bit elements with a 128-byte swizzle."""
    atom = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, cute.Float16)
    assert str(atom) == "S<3,4,3> o 0 o (8,64):(64,1)"
    return cute.tile_to_shape(atom, (64, 64), (0, 1))


@cute.jit
def copied(x: Any, y: Any, reduction: cute.Constexpr) -> None:
    layout = layout_atom()
    load, source = cpasync.make_tiled_tma_atom(cpasync.G2S(), x, layout, (64, 64))
    op = cpasync.CopyReduceBulkTensorTileS2GOp(reduction) if reduction else cpasync.S2G()
    store, destination = cpasync.make_tiled_tma_atom(op, y, layout, (64, 64))
    copy_tiles(load, source, store, destination).launch(grid=(3, 2, 1), block=64)


def sources() -> Any:
    return np.random.default_rng(3).integers(-8, 9, (160, 112)).astype(np.float16)


def test_tiles_are_loaded_and_stored() -> None:
    """Tiles are clipped at the end of the tensor."""
    x, y = sources(), np.zeros((160, 112), np.float16)
    copied(x, y, "", device="cpu")
    assert (x == y).all()


def test_tiles_are_added() -> None:
    x, y = sources(), np.full((160, 112), 2, np.float16)
    copied(x, y, "add", device="cpu")
    assert (y == x + 2).all()


@cute.kernel
def broadcast(load: Any, source: Any, y: Any) -> None:
    """Each block of a two-block cluster multicasts half of a tile; both blocks write the whole tile."""
    s = shared_tensor(SWIZZLED)
    bar = shared_tensor('i64, smem, align<8>, "1:0"').iterator
    rank = arch.block_idx_in_cluster()
    tid = arch.thread_idx().x
    if tid == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
    arch.cluster_arrive()
    arch.cluster_wait()
    blocks = cute.make_layout(2)
    mask = cpasync.create_tma_multicast_mask(blocks_vmnk(), (0, 0, rank, 0), 2)
    g = cute.local_tile(source, (64, 64), (0, 0))
    tS, tG = cpasync.tma_partition(load, rank, blocks, cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
    if arch.warp_idx() == 0:
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(bar, 64 * 64 * 2)
        cute.copy(load, tG, tS, tma_bar_ptr=bar, mcast_mask=mask)
    arch.mbarrier_wait(bar, 0)
    cute.cooperative_copy(s, y[None, None, rank], tid, 64)
    arch.cluster_arrive()
    arch.cluster_wait()


def blocks_vmnk() -> Any:
    return cute.make_layout((1, 1, 2, 1))


@cute.jit
def broadcasted(x: Any, y: cute.Tensor) -> None:
    load, source = cpasync.make_tiled_tma_atom(cpasync.G2SMulticast(), x, layout_atom(), (64, 64), num_multicast=2)
    broadcast(load, source, cute.make_tensor(y.iterator, cute.make_layout((64, 64, 2), stride=(64, 1, 4096)))).launch(
        grid=(2, 1, 1), block=64, cluster=(2, 1, 1)
    )


def test_multicast() -> None:
    x, y = sources()[:64, :64].copy(), np.zeros((2, 64, 64), np.float16)
    broadcasted(x, y, device="cpu")
    assert (y[0] == x).all() and (y[1] == x).all()


def test_masks() -> None:
    def body() -> None:
        layout = cute.make_layout((2, 4))
        assert int(cute.make_layout_image_mask(layout, (1, 0), 1)) == 0b10101010
        assert int(cute.make_layout_image_mask(layout, (1, 3), 0)) == 0b11000000
        assert int(cute.make_layout_image_mask(cute.make_layout((4, 4)), (3, 0), 1)) == 0x8888 - 0x10000
        dynamic = cute.make_layout_image_mask(layout, (arch.block_idx().x % 2, 0), 1)
        assert not dynamic.is_static and type(dynamic) is cute.Int16

    trace_kernel(body, {})


def host_atom(op: Any, *more: Any, **kinds: Any) -> Any:
    """Return a host function that builds one TMA atom."""

    @cute.jit
    def f(x: Any) -> None:
        cpasync.make_tiled_tma_atom(op, x, *more, **kinds)

    return f


ERRORS = {
    "F254: make_tiled_tma_atom(CopyBulkTensorTileG2SOp): num_multicast=2 needs a multicast load\n"
    "hint: use cute.nvgpu.cpasync.CopyBulkTensorTileG2SMulticastOp()": lambda: host_atom(
        cpasync.G2S(), cute.make_layout((64, 64), stride=(64, 1)), (64, 64), num_multicast=2
    ),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors_of_the_host(message: str) -> None:
    with pytest.raises(CuteError) as caught:
        ERRORS[message]()(sources(), device="cpu")
    caught.value.place = None
    caught.value.calls = []
    assert str(caught.value) == f"error {message}"


def test_tensor_maps_are_built_on_the_host() -> None:
    with pytest.raises(CuteError) as caught:
        trace_kernel(
            lambda x: cpasync.make_tiled_tma_atom(cpasync.G2S(), x, cute.make_layout((64, 64)), (64, 64)),
            {"x": '!cute.memref<f16, gmem, "(64,64):(64,1)">'}, Tensor.of,
        )  # fmt: skip
    caught.value.place = None
    caught.value.calls = []
    assert str(caught.value) == (
        "error F260: make_tiled_tma_atom(CopyBulkTensorTileG2SOp): a tensor map can only be created in a host "
        "function\n"
        "hint: create it in the @cute.jit function that launches the kernel, and pass atom and coordinates"
    )


def load_type() -> str:
    return "!cute_nvgpu.atom.tma_load<f16, box = (64, 64), swizzle = 128>"


def a_load(call: Any) -> str:
    """Return the IR of a kernel that computes TMA coordinates and issues a TMA load."""

    def body(load: Any, where: Any) -> None:
        from cute_dialect.lang.machine.atoms import CopyAtom

        atom = CopyAtom(load.type, cpasync.G2S(), load)
        call(atom, Tensor.of(where), shared_tensor(SWIZZLED), shared_tensor('i64, smem, align<8>, "1:0"').iterator)

    parameters = {"load": load_type(), "where": '!cute.coord_tensor<"(0,0)", "(64,64):(1@1,1@0)">'}
    return text_of(trace_kernel(body, parameters, threads=128))


def guarded(condition: Any) -> Any:
    """Return a function that issues a TMA load under a condition."""

    def call(load: Any, where: Any, s: Any, bar: Any) -> None:
        if condition():
            cute.copy(load, where, s, tma_bar_ptr=bar)

    return converted(call)


@pytest.mark.parametrize(
    "condition",
    [
        lambda: arch.thread_idx().x == 0,
        lambda: arch.lane_idx() == 0,
        lambda: (arch.warp_idx() == 0) & (arch.lane_idx() == 0),
        lambda: arch.thread_idx().x % 64 == 0,
        lambda: arch.thread_idx().x < 1,
        lambda: arch.elect_one(),
        converted(lambda: arch.warp_idx() == 0 and arch.elect_one()),
        lambda: arch.shuffle_sync_bfly(arch.lane_idx(), 1) == 0,
    ],
)
def test_explicitly_elected_thread_issues(condition: Any) -> None:
    alone = text_of(trace_kernel(lambda: condition(), {}, threads=128)).count("elect_one")
    assert a_load(guarded(condition)).count("elect_one") == alone


@pytest.mark.parametrize(
    "condition",
    [
        lambda: True,
        lambda: arch.warp_idx() == 0,
        lambda: arch.make_warp_uniform(arch.warp_idx()) == 1,
        lambda: arch.warpgroup_idx() == 0,
        lambda: arch.thread_idx().x // 64 == 0,
        lambda: arch.thread_idx().x < 32,
        lambda: arch.thread_idx().x > 95,
        lambda: arch.block_idx().x > 0,
        lambda: arch.vote_any_sync(arch.thread_idx().x > 5),
    ],
)
def test_one_thread_of_a_warp_issues(condition: Any) -> None:
    assert a_load(guarded(condition)).count("elect_one") == 1


KERNEL_ERRORS = {
    "F254: cute.copy by CopyBulkTensorTileG2SOp: CopyBulkTensorTileG2SOp needs tma_bar_ptr, the mbarrier that "
    "counts its "
    "bytes": (
        lambda load, where, s, bar: cute.copy(load, where, s)
    ),
    "F254: cute.copy by CopyBulkTensorTileG2SOp: CopyBulkTensorTileG2SOp does not take mcast_mask\n"
    "hint: create the atom with cute.nvgpu.cpasync.CopyBulkTensorTileG2SMulticastOp()": (
        lambda load, where, s, bar: cute.copy(load, where, s, tma_bar_ptr=bar, mcast_mask=3)
    ),
    "F254: cute.copy by CopyBulkTensorTileG2SOp: src must be a coordinate tensor of TMA coordinates, the "
    "source of tma_load, got tensor<ptr<f16, smem, align<1024>, S<3,4,3>> o (64,64):(64,1)>\n"
    "hint: src is tensor<ptr<f16, smem, align<1024>, S<3,4,3>> o (64,64):(64,1)>, dst is "
    "tensor<(0,0) o (64,64):(1@1,1@0)>": lambda load, where, s, bar: cute.copy(load, s, where, tma_bar_ptr=bar),
    "F254: cute.nvgpu.cpasync.tma_partition: CopyBulkTensorTileG2SOp loads for one block, but cta_layout has 2\n"
    "hint: use cute.nvgpu.cpasync.CopyBulkTensorTileG2SMulticastOp()": (
        lambda load, where, s, bar: cpasync.tma_partition(
            load, 0, cute.make_layout(2), cute.group_modes(s, 0, 2), cute.group_modes(where, 0, 2)
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", KERNEL_ERRORS)
def test_errors_of_kernels(message: str) -> None:
    with pytest.raises(CuteError) as caught:
        a_load(KERNEL_ERRORS[message])
    caught.value.place = None
    caught.value.calls = []
    assert str(caught.value) == f"error {message}"


def columns(op: Any, body: Any = None, dtype: Any = cute.Float16, **changes: Any) -> None:
    """Trace a host function that builds an im2col atom and a kernel that uses it."""
    given = {"channels": 32, "pixels": 8, "lower": [-1], "upper": [1], **changes}

    @cute.kernel
    def moved(atom: Any):
        if body is not None:
            body(atom)

    @cute.jit
    def launch(x: Any):
        moved(cpasync.make_im2col_tma_atom(op, x, **given)).launch(grid=1, block=32)

    cute.trace(launch, cute.Tensor[dtype, "(?,?,?):(1,?,?)"])


LOAD = cpasync.CopyBulkTensorIm2colG2SOp()
COLUMN_ERRORS = {
    "F250: make_im2col_tma_atom(CopyBulkTensorTileG2SOp): op must be an im2col TMA descriptor": (
        lambda: columns(cpasync.G2S())
    ),
    "F250: make_im2col_tma_atom(CopyBulkTensorIm2colG2SOp): the lower corner has 4 "
    "numbers; write 1 to 3 (W, H, D)": (
        lambda: columns(LOAD, lower=[0] * 4, upper=[0] * 4)
    ),
    "F250: make_im2col_tma_atom(CopyBulkTensorIm2colS2GOp): the lower corner is (-1,); a store or reduction "
    "needs a nonnegative one": lambda: columns(cpasync.CopyBulkTensorIm2colS2GOp()),
    "F254: make_im2col_tma_atom(CopyBulkTensorIm2colG2SOp): the layout of operand #0 is (?,?,?):(1,?,?); the "
    "atom needs modes (C,W,H,N)": (
        lambda: columns(LOAD, lower=[0, 0], upper=[0, 0])
    ),
    "F254: cute.prefetch by CopyBulkTensorIm2colG2SOp: the coordinates must cover one instruction (256 "
    "elements), got tensor<(0,0,0) o (64,8):(1@0,0)>": (
        lambda: columns(
            LOAD, lambda atom: cute.prefetch(atom, cute.make_tensor((0, 0, 0), cute.layout("(64,8):(1@0,0)")))
        )
    ),
    "F260: make_im2col_tma_atom(CopyBulkTensorIm2colG2SOp): a tensor map can only be created in a host function": (
        lambda: columns(LOAD, lambda atom: cpasync.make_im2col_tma_atom(
            LOAD, cute.make_rmem_tensor(4, cute.Float16), channels=32, pixels=8, lower=[0], upper=[0]
        ))
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", COLUMN_ERRORS)
def test_errors_of_columns_of_pixels(message: str) -> None:
    with pytest.raises(CuteError) as caught:
        COLUMN_ERRORS[message]()
    caught.value.place = None
    caught.value.calls = []
    assert str(caught.value).startswith(f"error {message}")


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(("kind", "want"), [("max", 1 << 31), ("min", 5), ("add", (1 << 31) + 5)])
def test_reductions_of_unsigned_numbers_are_unsigned(kind: str, want: int) -> None:
    rows = cute.make_layout((8, 32), stride=(32, 1))

    @cute.kernel
    def reduced(store: Any, where: Any, x: cute.Tensor):
        tid = arch.thread_idx().x
        s = cute.smem_tensor(cute.Uint32, rows, 128)
        for i in range(8):
            s[i, tid] = x[i, tid]
        arch.fence_proxy("async.shared", space="cta")
        arch.sync_threads()
        if tid == 0:
            cute.copy(store, s, cute.local_tile(where, (8, 32), (0, 0)))
            arch.cp_async_bulk_commit_group()
            arch.cp_async_bulk_wait_group(0)

    @cute.jit
    def launch(x: cute.Tensor, y: cute.Tensor):
        op = cpasync.CopyReduceBulkTensorTileS2GOp(kind)
        reduced(*cpasync.make_tiled_tma_atom(op, y, rows, (8, 32)), x).launch(grid=1, block=32)

    x, y = np.full((8, 32), 1 << 31, np.uint32), np.full((8, 32), 5, np.uint32)
    assert "cp.reduce.async.bulk.tensor" in cute.compile(launch, x, y, chip="sm_90a").ptx
    launch(x, y, device="cpu")
    assert (y == want).all()


def test_the_layout_of_all_stages_describes_one_tile() -> None:
    found: list[str] = []

    @cute.jit
    def host(x: cute.Tensor) -> None:
        stages = cute.tile_to_shape(
            warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, cute.Float16), (64, 64, 3), (0, 1, 2)
        )
        info = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, stages, (64, 64))
        plain, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, layout_atom(), (64, 64))
        assert info.atom.type == plain.type and str(info.tma_tensor) == str(coords)
        assert len(info) == 2 and info[0] is info.atom and list(info) == [info.atom, info.tma_tensor]
        found.append(str(info.smem_layout))

    with cute.target("sm_90a"):
        cute.compile(host, np.zeros((128, 128), np.float16), device="cpu")
    assert found == ["S<3,4,3> o 0 o ((8,8),(64,1),(1,3)):((64,512),(1,0),(0,4096))"]
