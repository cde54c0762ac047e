"""Configuration of the backward of attention: element type, head dimension, mask, tiles and stages.

>>> config = default_backward_config("bf16", 128, "right")
>>> config.name, config.smem_bytes
('attention-backward-bf16-128-right-64x128', 197632)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.kernels.attention.config import MASKS, SMEM, KernelNames
from cute_dialect.kernels.common.kernel_names import by

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.kernels.attention.score_graph import ScoreGraph

BACKWARD_HEADS = (64, 96, 128, 192, 256)
"""Supported head dimensions. TMA pads smaller heads with zeros."""

VALUE_HEADS = (64, 128)
"""Supported head dimensions of V if they are smaller than that of a Q and K of 192 or 256."""


class BackwardConfig(NamedTuple):
    """Configuration of the kernels that compute dq, dk and dv."""

    element: str = "bf16"  # of Q, K, V, dO and the gradients: bf16 or f16
    head: int = 128  # head dimension, one of BACKWARD_HEADS; smaller heads are padded with zeros
    mask: str = "full"  # one of config.MASKS
    from_end: bool = False  # align the last query with the last key instead of the first query with the first key
    packed: bool = False  # variable-length sequences, packed one after the other
    dlse: bool = False  # the log-sum-exp has a gradient, too
    deterministic: bool = False  # add the blocks' parts of dq in a fixed order
    # Several blocks share the steps of a key tile, and add their parts of dk and dv in f32.
    split: bool = False
    tile_m: int = 64  # queries of a step
    tile_n: int = 128  # keys of a block
    q_stages: int = 2  # stages of Q, with the row statistics
    grad_stages: int = 2  # stages of dO
    # Buffers of dS; with one, consumers synchronize twice in a step. On an H200, measured once, heads of 64 were
    # 2 % faster with one buffer if the mask was "right". Without a mask they were 2 to 4 % slower.
    ds_stages: int = 2
    dq_parts: int = 1  # parts in which a consumer passes its part of dq through shared memory
    # Start of the scores of a step: 0, at its begin; 1 or 2, before dq of the previous step is stored. The last step
    # then starts scores in vain (1), or is a copy of the step in the code (2).
    ahead: int = 0
    # The consumers of large heads split the queries of the scores, and exchange P and dS through shared memory.
    # Otherwise both compute all scores of a step; heads of 192 and 256 are then 5 to 15 % slower (an H200).
    halves: bool = False
    late: bool = False  # start the MMAs of dv after dS is computed, not before
    # With a mask on one side, a block takes key tiles in pairs of equal total length.
    pairs: bool = True
    sms: int = 132  # multiprocessors of the GPU, which take work items in turn
    dynamic: bool = False  # the resident blocks take tiles of keys from a counter, because their lengths differ
    functions: ScoreGraph | None = None  # functions of scores and of visible keys, with their slopes
    dropout: bool = False  # set probabilities to 0 at random
    # A block mask: lists of the blocks of queries that see a block of keys; 0 for none.
    block_m: int = 0  # queries of a block, a multiple of tile_m
    block_n: int = 0  # keys of a block, a multiple of tile_n
    # With a block mask, the producers have as few registers as without one: consumers spill less, producers more.
    lean: bool = False
    head_v: int = 0  # head dimension of V and dO, one of VALUE_HEADS; 0: that of Q and K

    @property
    def value_head(self) -> int:
        """Head dimension of V and dO."""
        return self.head_v or self.head

    @property
    def learned(self) -> tuple[int, ...]:
        """Inputs of the functions that have gradients."""
        names = () if self.functions is None else self.functions.names
        return tuple([int(name.split()[1]) for name in names if name.startswith("slope ")])

    @property
    def query_reads(self) -> tuple[tuple[int, int], ...]:
        """Words of nodes of the functions that read arrays by the query alone: (node, index of the word).

        The first kernel stores them with the row statistics, so that consumers read them from shared memory. Other
        nodes are read for each score.
        """
        return self._words_along("row")

    @property
    def key_reads(self) -> tuple[tuple[int, int], ...]:
        """Words of nodes of the functions that read arrays by the key alone: (node, index of the word).

        Consumers read them once for each tile of keys, and hold them in shared memory.
        """
        return self._words_along("column")

    def _words_along(self, index: str) -> tuple[tuple[int, int], ...]:
        if self.functions is None:
            return ()
        found, most = list[tuple[int, int]](), 3 if self.head <= 128 else 1  # large heads leave little shared memory
        for node in self.functions.read_along(index):
            words = 2 if self.functions.is_wide(node) else 1
            if len(found) + words <= most:
                found += [(node, word) for word in range(words)]
        return tuple(found)

    @property
    def plain(self) -> BackwardConfig:
        """The configuration of the kernels that do not compute scores."""
        return self._replace(functions=None, block_m=0, block_n=0, dropout=False, sms=132)

    @property
    def consumers(self) -> int:
        """Number of consumer warpgroups."""
        return 2

    @property
    def splits_head(self) -> bool:
        """Return True if the consumers split the head dimension of dk and dv, not the keys: a tile has 64 keys.

        The dk and dv accumulators of 64 keys and more than 128 head elements need the registers of both consumers.
        """
        return self.tile_n == 64

    @property
    def dq_by_rows(self) -> bool:
        """Return True if the consumers split the queries of a tile of dq, not the head dimension."""
        return self.tile_m == 128

    @property
    def threads(self) -> int:
        """Threads of a block: a producer warpgroup and the consumers."""
        return 128 * (1 + self.consumers)

    @property
    def bounded(self) -> tuple[bool, bool]:
        """(left, right): True if the mask bounds the keys of a query on that side."""
        return self.mask in ("left", "both"), self.mask in ("right", "both")

    @property
    def masked(self) -> bool:
        """Return True if the mask hides keys."""
        return self.mask != "full"

    @property
    def starts_rotated(self) -> bool:
        """Return True if blocks start at different query tiles.

        Deterministic blocks would otherwise wait for each other at the first tile. Other blocks
        were not consistently faster on an H200.
        """
        return self.deterministic and not self.masked

    @property
    def takes_pairs(self) -> bool:
        """Return True if a work item is a pair of tiles."""
        return self.pairs and self.mask in ("left", "right")

    @property
    def key_bytes(self) -> int:
        """Bytes of the tile of K."""
        return self.tile_n * self.head * 2

    @property
    def value_bytes(self) -> int:
        """Bytes of the tile of V."""
        return self.tile_n * self.value_head * 2

    @property
    def query_bytes(self) -> int:
        """Bytes of a tile of Q."""
        return self.tile_m * self.head * 2

    @property
    def grad_bytes(self) -> int:
        """Bytes of a tile of dO."""
        return self.tile_m * self.value_head * 2

    @property
    def smem_bytes(self) -> int:
        """Shared memory of a block in bytes, without barriers."""
        staged = 2 * self.query_bytes // self.dq_parts
        values = 4 * (self.q_stages * self.stats_values + 64 * self.consumers * len(self.key_reads))
        ds = self.ds_stages * self.tile_m * self.tile_n * 2 * (2 if self.halves else 1)
        rings = self.q_stages * self.query_bytes + self.grad_stages * self.grad_bytes
        return self.key_bytes + self.value_bytes + rings + values + ds + staged

    @property
    def stats_values(self) -> int:
        """Words in the row statistics of a tile of queries: two for each row, :attr:`query_reads`, and flags."""
        return (2 + len(self.query_reads)) * self.tile_m + 4 * self.has_row_flags

    @property
    def has_row_flags(self) -> bool:
        """True if the row statistics have a flag for every 32 queries: 1 if their words of :attr:`query_reads` equal
        those of the tile's first query.

        The mask function is then evaluated once for each key, not for each score. Most tiles of a mask of documents
        lie in one document.
        """
        return self.functions is not None and self.functions.has("visible") and len(self.query_reads) > 0

    @property
    def dq_values(self) -> int:
        """Registers of a consumer thread for its part of a tile of dq."""
        return self.tile_m * self.head // (128 * self.consumers)

    @property
    def dk_values(self) -> int:
        """Registers of a consumer thread for its part of a tile of dk."""
        return self.tile_n * self.head // (128 * self.consumers)

    @property
    def dv_values(self) -> int:
        """Registers of a consumer thread for its part of a tile of dv."""
        return self.tile_n * self.value_head // (128 * self.consumers)

    @property
    def piece(self) -> int:
        """Registers of dq or dk that a consumer thread passes to the writer at once, through shared memory."""
        return self.dq_values // self.dq_parts

    @property
    def dv_piece(self) -> int:
        """Registers of dv that a consumer thread passes to the writer at once, through shared memory."""
        return min(self.piece, self.dv_values)

    @property
    def name(self) -> str:
        """Unique name of the kernels: the function they compute, then the settings that differ from the default."""
        return _NAMES.name(self)

    def tiles(self, rows: int, batch: int, *, of_keys: bool = False) -> int:
        """Return the tiles per head of the workspaces: those of queries, or those of keys.

        Args:
            rows: Rows of a sequence, or of all packed sequences.
            batch: Number of sequences.
            of_keys: True for the tiles of keys.

        >>> BackwardConfig().tiles(130, 2), BackwardConfig(packed=True).tiles(130, 2)
        (6, 4)
        """
        size = self.tile_n if of_keys else self.tile_m
        return rows // size + batch if self.packed else -(-rows // size) * batch

    def workspaces(
        self, rows: int, heads: int, batch: int, keys: int = 0, key_heads: int = 0
    ) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Return the workspaces: name -> element type and shape of a C-contiguous, uninitialized array.

        Args:
            rows: Queries of a sequence, or of all packed sequences.
            heads: Query heads.
            batch: Number of sequences.
            keys: Keys of a sequence, or of all packed sequences; used if ``split``.
            key_heads: Key heads; used if ``split``.

        >>> BackwardConfig().workspaces(100, 8, 2)
        {'stats': ('f32', (8, 4, 128)), 'dq_sum': ('f32', (8, 4, 8192))}
        """
        tiles = self.tiles(rows, batch)
        found: dict[str, tuple[str, tuple[int, ...]]] = {
            "stats": ("f32", (heads, tiles, self.stats_values)),
            "dq_sum": ("f32", (heads, tiles, self.tile_m * self.head)),
        }
        if self.deterministic:
            found["turns"] = ("i32", (heads, tiles, self.consumers))
        if self.dynamic:
            found["taken"] = ("i32", (1,))
        if self.split:
            key_tiles = self.tiles(keys, batch, of_keys=True)
            found["kv_sum"] = ("f32", (2 * key_heads, key_tiles, self.tile_n * self.head))
        return found

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        if self.element not in ("bf16", "f16"):
            raise ValueError(f"element is {self.element!r}; use 'bf16' or 'f16'")
        if self.head not in BACKWARD_HEADS:
            raise ValueError(f"head is {self.head}; use one of {', '.join(map(str, BACKWARD_HEADS))}")
        if self.head_v and (self.head_v not in VALUE_HEADS or not self.splits_head):
            raise ValueError(
                f"head_v is {self.head_v} and head is {self.head}; head_v must be 0, or one of "
                f"{', '.join(map(str, VALUE_HEADS))} with a head of 192 or 256"
            )
        if self.mask not in MASKS:
            raise ValueError(f"mask is {self.mask!r}; use one of {', '.join(MASKS)}")
        tiles = [(64, 64)] if self.head != 96 else []
        tiles += [(64, 128)] if self.head <= 128 else []
        tiles += [(128, 128)] if self.head == 64 else []
        if (self.tile_m, self.tile_n) not in tiles:
            raise ValueError(
                f"the tile is {self.tile_m}x{self.tile_n}; use {' or '.join(map(by, tiles))} for a head of {self.head}"
            )
        if self.q_stages < 2 or self.grad_stages < 1 or self.ds_stages not in (1, 2):
            raise ValueError(
                f"q_stages, grad_stages and ds_stages are {self.q_stages}, {self.grad_stages} and {self.ds_stages}; "
                "they must be at least 2, at least 1, and 1 or 2"
            )
        if self.halves and not (self.splits_head and self.ds_stages == 2 and not self.late):
            raise ValueError("halves=True needs tile_n=64, ds_stages=2 and late=False")
        if self.split and self.deterministic:
            raise ValueError("split=True adds dk and dv in any order; deterministic=True needs split=False")
        if self.dynamic and (self.deterministic or not self.block_n):
            raise ValueError("dynamic=True starts tiles in any order; it needs a block mask and deterministic=False")
        if self.block_n and (self.block_m % self.tile_m or self.block_n % self.tile_n):
            raise ValueError(
                f"the tile is {self.tile_m}x{self.tile_n}; it must divide the blocks of the mask, "
                f"{self.block_m}x{self.block_n}"
            )
        if self.block_n and (self.masked or self.packed or self.split):
            raise ValueError("a block mask needs mask='full', and no packed or split")
        if self.smem_bytes + 256 > SMEM:
            raise ValueError(
                f"the kernel needs {self.smem_bytes} bytes of shared memory; at most {SMEM - 256} are "
                "available, use smaller tiles or fewer stages"
            )


def default_backward_config(element: str = "bf16", head: int = 128, mask: str = "full") -> BackwardConfig:
    """Return the default configuration.

    >>> default_backward_config(head=64).tile_m
    128
    """
    config = BackwardConfig(element, head, mask)
    if head == 64:  # dk and dv leave room for scores of 128 queries, and of the next step
        return config._replace(tile_m=128, ahead=1 if mask == "full" else 2)
    if head > 128:
        stages, parts = (1, 2) if head == 256 else (2, 1)
        return config._replace(tile_n=64, grad_stages=stages, dq_parts=parts, halves=True)
    return config if mask == "full" else config._replace(late=True)


_NAMES = KernelNames(
    "attention-backward",
    default_backward_config,
    flags={
        "end": "from_end",
        "packed": "packed",
        "dlse": "dlse",
        "ordered": "deterministic",
        "split": "split",
        "dynamic": "dynamic",
        "dropout": "dropout",
    },
    numbers={
        "q": "q_stages",
        "g": "grad_stages",
        "x": "ds_stages",
        "d": "dq_parts",
        "a": "ahead",
        "h": "halves",
        "l": "late",
        "pairs": "pairs",
        "sms": "sms",
        "bm": "block_m",
        "bn": "block_n",
        "lean": "lean",
        "v": "head_v",
    },
    elements=("functions",),
)


def backward_config_named(name: str) -> BackwardConfig:
    """Return the configuration with a given name.

    Raises:
        ValueError: if the name is not that of a kernel.

    >>> c = default_backward_config(mask="right")._replace(dlse=True, ds_stages=1)
    >>> c.name, backward_config_named(c.name) == c
    ('attention-backward-bf16-128-right-dlse-64x128-x1', True)
    """
    return _NAMES.configuration(name)
