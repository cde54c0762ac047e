"""Groups of ranks of one process, without a GPU: memory per stream, equal calls, and failed exchanges.

``test/gpu/test_local_group_gpu.py`` runs the kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from cute_dialect import op
from cute_dialect.kernels.distributed.exchange import LATE
from cute_dialect.op.execute import local_group
from cute_dialect.op.execute.rank_groups import group_of
from cute_dialect.op.execute.rank_memory import MemoryShape
from cute_dialect.op.select.all_reduce import AllReduceProblem, choose_all_reduce
from cute_dialect.runtime.arrays import view_of

torch: Any = pytest.importorskip("torch")
LocalGroup = op.distributed.LocalGroup
SMALL, LARGE = MemoryShape(384, 4096, 128, 64), MemoryShape(384, 32768, 128, 64)


class FakeDevice(NamedTuple):
    type: str = "cuda"
    index: int | None = 0

    def __str__(self) -> str:
        return f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, torch.device) or tuple(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]


class FakeStream(NamedTuple):
    device: object

    def synchronize(self) -> None:
        pass


def read_device(kind: object, index: int | None = None) -> FakeDevice:
    if index is not None:
        return FakeDevice(str(kind), index)
    name, _, number = str(kind).partition(":")
    return FakeDevice(name, int(number) if number else None)


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Provide two GPUs whose memory is that of the CPU, and the current stream of calls."""
    state: dict[str, Any] = {"stream": 7, "capturing": False, "peers": True}
    cuda = SimpleNamespace(
        device_count=lambda: 2,
        Stream=FakeStream,
        stream=lambda _: nullcontext(),
        synchronize=lambda _: None,
        can_device_access_peer=lambda *_: state["peers"],
        is_current_stream_capturing=lambda: state["capturing"],
    )
    of_torch = SimpleNamespace(
        cuda=cuda,
        device=read_device,
        zeros=lambda shape, dtype, device: torch.zeros(shape, dtype=dtype),
        tensor=lambda values, dtype, device: torch.tensor(values, dtype=dtype),
        empty=lambda shape, device: torch.empty(shape),
        uint8=torch.uint8,
        int64=torch.int64,
    )
    monkeypatch.setattr(local_group, "import_module", lambda _: of_torch)
    monkeypatch.setattr(local_group, "stream_of", lambda *_: state["stream"])
    monkeypatch.setattr(local_group.driver, "driver", lambda: SimpleNamespace(multiprocessors=lambda _: 132))
    monkeypatch.setenv("CUTE_DIST_TIMEOUT_MS", "2500")
    yield state


def test_memory_of_all_ranks_at_once(fake: dict[str, Any]) -> None:
    group = LocalGroup([0, 0, "cuda:1"])
    assert (len(group), group[0].channels, group[0].shares_gpu) == (3, 64, True)
    assert (group[1].rank, group[1].ranks, group[1].limit) == (1, 3, 2_500_000_000)
    assert LocalGroup([0] * 8)[7].channels == 16 and not LocalGroup(2)[1].shares_gpu
    x, memories = view_of(torch.zeros(8)), []
    for rank in group:
        fake["stream"] = 10 + rank.rank
        memories.append(rank.memory("all_reduce", LARGE, x))
        assert rank.memory("all_reduce", SMALL, x) is memories[-1]
    for memory in memories:
        assert memory.addresses.keep.tolist() == [m.staging.pointer for m in memories]
        assert memory.word_addresses.keep.tolist() == [m.words.pointer for m in memories]
        assert memory.staging.shape == (384, 32768) and memory.words.shape == (128, 3, 16)
        assert memory.steps.shape == (64,) and memory.status.shape == (3,)
    assert len({m.staging.pointer for m in memories}) == 3
    fake["stream"] = 20
    assert group[0].memory("all_reduce", SMALL, x).staging.pointer != memories[0].staging.pointer
    fake["stream"] = 11
    with pytest.raises(op.OpError, match="ranks 1 and 0 share a stream of cuda:0"):
        group[0].memory("all_reduce", SMALL, x)
    fake.update(stream=21, capturing=True)
    assert group[1].memory("all_reduce", SMALL, x) is not memories[1]
    fake["stream"] = 30
    with pytest.raises(op.UnsupportedError, match="make a call on this stream before the capture"):
        group[0].memory("all_reduce", SMALL, x)


def test_calls_of_ranks_are_compared() -> None:
    group = LocalGroup(2)
    group[0].agree("all_reduce of (8,) f16")
    group[0].agree("all_reduce of (4,) f16")
    group[1].agree("all_reduce of (8,) f16")
    text = r"all_reduce: call 2 of rank 1 is all_reduce of \(8,\) f16, but that of rank 0 is all_reduce of \(4,\) f16"
    with pytest.raises(op.DistributedError, match=text):
        group[1].agree("all_reduce of (8,) f16")
    group[1].agree("all_reduce of (4,) f16")
    for rank in group:
        rank.agree("all_reduce of (2,) f16")


def test_a_failed_exchange_is_reported_until_reset() -> None:
    group = LocalGroup([0, 0])
    memory = group[0].memory("all_reduce", SMALL, view_of(torch.zeros(8)))
    group[0].agree("all_reduce of (8,) f16")
    memory.status.keep[1] = LATE
    memory.steps.keep[:] = -1
    for raises in (
        lambda: group[0].agree("all_reduce of (8,) f16"),
        lambda: op.distributed.check(group),
        lambda: op.distributed.check(group[0]),
    ):
        with pytest.raises(op.DistributedError, match=r"rank 1 sent nothing within 2\.5 s \(rank 0 did\)"):
            raises()
    op.distributed.check(group[1])
    op.distributed.reset(group)
    op.distributed.check(group)
    assert not memory.steps.keep.any()
    group[1].agree("all_reduce of (4,) f16")


def test_refused_groups(fake: dict[str, Any]) -> None:
    for devices, text in (
        (3, r"the device of rank 2 is cuda:2; this machine has 2 GPUs, cuda:0 to cuda:1"),
        (["cuda:0", "cpu"], r"the device of rank 1 is cpu"),
        (0, "there are 0 ranks; pass 1 to 32 devices"),
        ([0] * 33, "there are 33 ranks"),
    ):
        with pytest.raises(op.ArgumentError, match=text):
            LocalGroup(devices)
    with pytest.raises(op.ArgumentError, match=r"group is a LocalGroup; pass one of its ranks, such as group\[0\]"):
        group_of("all_reduce", LocalGroup(2))
    assert group_of("all_reduce", (group := LocalGroup(2))[1]) is group[1]
    with pytest.raises(op.UnsupportedError, match="x is in CPU memory, but the ranks of the group are GPUs"):
        op.distributed.all_reduce(torch.zeros(8).half(), group=LocalGroup(1)[0], device="cpu")
    fake["peers"] = False
    LocalGroup([0, 0])
    with pytest.raises(op.DeviceError, match=r"cuda:. cannot access the memory of cuda:.; use GPUs"):
        LocalGroup(2)


def test_grids_of_ranks_that_share_a_gpu_fit_together() -> None:
    """Cooperative launches of two ranks could wait for each other, so such ranks have none."""
    p = AllReduceProblem("bf16", 4, 1 << 22)
    shared, alone = choose_all_reduce(p, channels=33, shares_gpu=True), choose_all_reduce(p)
    assert shared.blocks == 33 and alone.blocks == 64
    assert not shared.config.cooperative and alone.config.cooperative
    assert shared.config.name == alone.config.name + "-s"
