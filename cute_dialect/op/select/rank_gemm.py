"""Choice of the kernel of a GEMM of several ranks, and a model of its time.

The model: a message takes ``alpha + bytes / beta`` seconds, over NVLink within a host and over the network between
hosts.  A GEMM runs in whole waves of tiles.  In one kernel, the tiles of a rank wait for its data only, so most of the
transfer is hidden.  ``test/unit/op/test_rank_gemm.py`` compares the model with measured times.

>>> p = RankGemmProblem("all_gather_matmul", "bf16", 2, 8192, 4096, 8192)
>>> t = predict(p)
>>> [round(1e6 * x) for x in (t.transfer, t.gemm, t.separate, t.fused, t.ideal)]
[293, 718, 1011, 733, 718]
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.distributed.gather_gemm import RankGemmConfig
from cute_dialect.kernels.gemm.config import GemmConfig

ONE_SHOT_BYTES = {1: 1 << 62, 2: 1 << 20, 4: 512 << 10, 8: 256 << 10, 32: 128 << 10}
"""Largest number of ranks -> bytes of a result up to which each rank of an all-reduce adds all of it. Not measured."""

TOPOLOGIES = {"h100-dgx": 8, "h200-dgx": 8, "nvl32": 32}
"""Name -> GPUs of a host that are connected by NVLink."""

_TILES = {64: ((64, 64, 64), 8), 128: ((128, 128, 64), 5), 256: ((128, 256, 64), 4)}
"""Columns -> tile and stages."""

_CPU_TILE, _CPU_STAGES = (64, 64, 64), 2


class RankGemmProblem(NamedTuple):
    """A GEMM of several ranks, without its arrays.

    Attributes:
        call: the function.
        rows: rows of the result of all ranks: gathered, or before they are scattered.
        columns: columns of the result of this rank.
        k: the part of K of this rank.
    """

    call: str
    element: str
    ranks: int
    rows: int
    columns: int
    k: int
    major_b: str = "n"
    average: bool = False
    returns_a: bool = False

    @property
    def flops(self) -> int:
        return 2 * self.rows * self.columns * self.k

    @property
    def kind(self) -> str:
        """The kind of the kernel."""
        if self.call == "all_gather_matmul":
            return "gather"
        if self.call == "matmul_reduce_scatter":
            return "scatter"
        size = self.rows * self.columns * BITS[self.element] // 8
        limit = next((b for most, b in ONE_SHOT_BYTES.items() if self.ranks <= most), 0)
        return "one_shot" if size <= limit or self.rows % self.ranks else "two_shot"

    @property
    def sent(self) -> int:
        """Bytes that a rank sends to other ranks."""
        size, others = BITS[self.element] // 8, self.ranks - 1
        if self.kind == "gather":
            return self.rows // self.ranks * self.k * size * others
        whole = self.rows * self.columns * size * others
        return whole if self.kind == "one_shot" else whole // self.ranks * (2 if self.kind == "two_shot" else 1)

    @property
    def matrices(self) -> int:
        """The number of matrices that the tiles are of."""
        return 1 if self.kind == "one_shot" else self.ranks

    @property
    def held(self) -> int:
        """Elements of a half of the staging memory."""
        width = self.k if self.kind == "gather" else self.columns
        pitch = -(-width // 8) * 8
        whole = self.rows * pitch
        return whole * {"gather": 1, "scatter": 1, "one_shot": self.ranks, "two_shot": 2}[self.kind]


class RankGemmChoice(NamedTuple):
    """The kernel of a GEMM of several ranks, and the number of its signals in a half."""

    config: RankGemmConfig
    slots: int
    why: str


def choose_rank_gemm(
    p: RankGemmProblem, *, cpu: bool = False, multiprocessors: int = 132, shares_gpu: bool = False
) -> RankGemmChoice:
    """Return the kernel.

    The tile of a gather depends on the columns of the rank only, and its rows are 128 always, because all ranks must
    divide shards alike.  The tile of a scatter depends on the result, which has one shape on all ranks.

    Args:
        cpu: on the interpreter.
        multiprocessors: those of a rank.
        shares_gpu: several ranks have one GPU.
    """
    columns = next((n for n in _TILES if p.columns <= n), 256)
    tile, stages = (_CPU_TILE, _CPU_STAGES) if cpu else _TILES[columns]
    if not cpu and columns == 256 and _waves(p, 128, 128, multiprocessors) < 2 * _waves(p, 128, 256, multiprocessors):
        tile, stages = _TILES[128]
    if not cpu and tile[0] < 128 and p.kind == "gather":
        tile, stages = (128, 64, 64), 6
    rows = p.rows // p.matrices
    clustered = not (cpu or shares_gpu) and tile[0] == 128 and rows > 128
    base = GemmConfig(
        p.element,
        p.element,
        "k",
        p.major_b,
        tile=tile,
        stages=stages,
        cluster_m=2 if clustered else 1,
        sms=multiprocessors,
        early=False,
        batch=True,
        direct=p.kind == "gather" and p.columns % 8 != 0,
    )
    whole = p.columns % 8 == 0 and not (p.returns_a and p.k % 8)
    config = RankGemmConfig(base, p.ranks, p.kind, vectors=whole, average=p.average, returns_a=p.returns_a)
    tiles = -(-rows // tile[0]) * -(-p.columns // tile[1])
    slots = {"gather": 64, "two_shot": 2 * tiles}.get(p.kind, tiles)
    return RankGemmChoice(config, slots, _reason(p))


def _reason(p: RankGemmProblem) -> str:
    """Return the reason for the kind of the kernel."""
    if p.call != "matmul_all_reduce":
        return "one kernel sends and multiplies"
    if p.kind == "two_shot":
        return "two-shot: each rank adds a part of the rows"
    return "one-shot: each rank adds all rows" + (", which ranks cannot share" if p.rows % p.ranks else "")


def _waves(p: RankGemmProblem, rows: int, columns: int, multiprocessors: int) -> int:
    """Return the number of waves of tiles of a GPU."""
    tiles = -(-(p.rows // p.matrices) // rows) * -(-p.columns // columns) * p.matrices
    return -(-tiles // multiprocessors)


# --------------------------------------------------------------------------------------------------------------- model


class Link(NamedTuple):
    """Messages between GPUs: seconds per message, and bytes per second of a GPU in each direction."""

    alpha: float
    beta: float


NCCL, PUSHED, NETWORK = Link(40e-6, 265e9), Link(2e-6, 345e9), Link(12e-6, 46e9)
"""Collectives of NCCL and stores of a kernel, over NVLink, as measured on two H200; a network of 400 Gb/s per GPU."""

PEAK, SHARE, LAUNCH, SIGNAL = 989.5e12, 0.80, 2e-6, 3e-6
"""FLOP/s of 16-bit MMAs; the share that a large GEMM reaches; seconds of a launch, and of a signal with its wait."""

_TRAFFIC = 1.02
"""Slowdown of a GEMM by transfers at the same time. Measured for three copies of 256 MiB: less than 1 %."""

_ADDED = 3e12
"""Bytes per second of the additions of partial results."""


class Times(NamedTuple):
    """Predicted seconds.

    Attributes:
        transfer: the collective of NCCL alone.
        gemm: the GEMM alone.
        separate: one after the other.
        fused: in one kernel.
        ideal: the longer of the transfer by a kernel and the GEMM.
    """

    transfer: float
    gemm: float
    separate: float
    fused: float
    ideal: float


def predict(p: RankGemmProblem, gpus: int = 8, multiprocessors: int = 132) -> Times:
    """Return the predicted times of a problem.

    Args:
        gpus: GPUs of a host that are connected by NVLink. More ranks use the network.
    """
    gemm = _gemm_time(p, multiprocessors)
    transfer, pushed = (_transfer_time(p, link, gpus) for link in (NCCL, PUSHED))
    slower, n = gemm * _TRAFFIC, p.ranks
    added = 0.0 if p.kind == "gather" else p.rows * p.columns * BITS[p.element] / 8 * 2 / _ADDED
    if n == 1:
        return Times(0.0, gemm, gemm, gemm, gemm)
    if p.kind == "gather":
        fused = 0.0
        for i in range(n):  # shard i has arrived after i / (n - 1) of the transfer
            fused = max(fused, pushed * i / (n - 1) + (SIGNAL if i else 0)) + slower / n
    else:
        fused = max(slower, slower / n + pushed) + SIGNAL + added / n
    return Times(transfer, gemm, transfer + gemm, fused, max(pushed, gemm))


def _gemm_time(p: RankGemmProblem, multiprocessors: int) -> float:
    """Return the seconds of the GEMM of a rank, in whole waves of tiles of 128 x 256."""
    tiles = -(-p.rows // 128) * -(-p.columns // 256)
    waves = -(-tiles // multiprocessors)
    return waves * multiprocessors * 2 * 128 * 256 * p.k / (SHARE * PEAK * multiprocessors / 132) + LAUNCH


def _transfer_time(p: RankGemmProblem, link: Link, gpus: int) -> float:
    """Return the seconds of the transfer of a rank's data to all others."""
    if p.ranks == 1:
        return 0.0
    inside = min(p.ranks, gpus)
    hosts = -(-p.ranks // inside)
    share = p.sent / (p.ranks - 1)
    within = link.alpha + (inside - 1) * hosts * share / link.beta if inside > 1 else 0.0
    if hosts == 1:
        return within
    between = NETWORK.alpha * hosts.bit_length() + (hosts - 1) * share / NETWORK.beta
    return max(within, between) + min(link.alpha, between)
