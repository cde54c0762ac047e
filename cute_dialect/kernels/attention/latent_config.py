"""Configuration of multi-head latent attention (MLA) for decoding.

>>> config = LatentConfig()
>>> config.name, config.smem_bytes
('mla-bf16-576-full-64x64', 231936)
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.kernels.attention.config import SMEM, AttentionConfig, KernelNames

LATENT, ROPE = 512, 64
"""Columns of a row of the cache: the latent vector, which is key and value, and the rotary part of the key."""

PARTS = (LATENT // 2, LATENT // 2, ROPE)
"""Columns of the parts of a tile of the cache that are loaded and released separately: each consumer's values, and the
rotary part of the keys."""


class LatentConfig(NamedTuple):
    """Configuration of a kernel. Its rows are (query, head) pairs, because all heads share one key head."""

    element: str = "bf16"  # of Q, the cache and the result: bf16 or f16
    head: int = LATENT + ROPE  # columns of a row of Q and of the cache
    mask: str = "full"  # full, or right: causal, with the last query aligned with the last key
    lse: bool = False  # also return the log-sum-exp of each row
    # Split-KV: several blocks share the keys of a tile. Each returns a partial f32 result and log-sum-exps, which
    # ``combine.py`` reduces.
    split: bool = False
    used: bool = False  # the number of keys of each sequence is an array
    page: int = 0  # keys of a page; 0: the keys of a sequence are contiguous
    tile_m: int = 64  # rows of a block
    tile_n: int = 64  # keys of a step
    lazy: bool = True  # rescale the accumulator only if a row maximum has grown by more than softmax.SLACK
    sms: int = 132  # multiprocessors of the GPU

    @property
    def plain(self) -> AttentionConfig:
        """The configuration of the tile scheduler and the softmax, which are those of other attention."""
        return AttentionConfig(
            self.element,
            mask=self.mask,
            from_end=True,
            lse=self.lse,
            split=self.split,
            tile_m=self.tile_m,
            tile_n=self.tile_n,
            lazy=self.lazy,
            sms=self.sms,
            used=self.used,
            page=self.page,
            pack=True,
        )

    @property
    def consumers(self) -> int:
        """Number of consumer warpgroups. Each has all rows, and half of the values' columns."""
        return 2

    @property
    def threads(self) -> int:
        """Threads of a block: a producer warpgroup and the consumers."""
        return 128 * (1 + self.consumers)

    @property
    def rows_loaded(self) -> int:
        """Keys of one TMA load: those of a step, or the part of a step in one page."""
        return self.tile_n if self.gathers else min(self.page or self.tile_n, self.tile_n)

    @property
    def page_loads(self) -> int:
        """Pages of a step."""
        return self.tile_n // self.rows_loaded

    @property
    def gathers(self) -> bool:
        """Return True if a warpgroup loads the cache by cp.async, because TMA boxes do not fit the pages."""
        n = self.tile_n
        return self.page > 0 and (self.page % 8 != 0 or (n % self.page != 0 and self.page % n != 0))

    @property
    def clears(self) -> bool:
        """Return True if the producer zeroes values past the end of a sequence."""
        return not self.gathers and (self.used or self.page > 0)

    @property
    def smem_bytes(self) -> int:
        """Shared memory of a block in bytes, without barriers: Q without its rotary part, two tiles of the cache, the
        probabilities of both consumers, and the state of the softmax.
        """
        keys = 2 * self.tile_n * self.head * 2
        weights = 2 * self.tile_m * self.tile_n * 2
        return self.tile_m * LATENT * 2 + keys + weights + 2 * 4 * (self.tile_m + 2 * 128)

    @property
    def name(self) -> str:
        """Unique name of the kernel: the function it computes, then the settings that differ from the default."""
        return _NAMES.name(self)

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        if self.element not in ("bf16", "f16"):
            raise ValueError(f"element is {self.element!r}; use 'bf16' or 'f16'")
        if self.head != LATENT + ROPE:
            raise ValueError(f"head is {self.head}; use {LATENT + ROPE}")
        if self.mask not in ("full", "right"):
            raise ValueError(f"mask is {self.mask!r}; use 'full' or 'right'")
        if (self.tile_m, self.tile_n) != (64, 64):
            raise ValueError(f"the tile is {self.tile_m}x{self.tile_n}; use 64x64")
        if self.split and not self.lse:
            raise ValueError("split=True needs lse=True")
        if self.page < 0 or self.sms < 1:
            raise ValueError(f"page is {self.page} and sms is {self.sms}; use 0 or more, and 1 or more")
        assert self.smem_bytes + 256 <= SMEM


def default_latent_config(element: str = "bf16", head: int = LATENT + ROPE, mask: str = "full") -> LatentConfig:
    """Return the default configuration."""
    return LatentConfig(element, head, mask)


_NAMES = KernelNames(
    "mla",
    default_latent_config,
    flags={"lse": "lse", "split": "split", "used": "used"},
    numbers={"page": "page", "l": "lazy", "sms": "sms"},
    elements=(),
)


def latent_config_named(name: str) -> LatentConfig:
    """Return the configuration with a given name.

    Raises:
        ValueError: if the name is not that of a kernel.

    >>> c = LatentConfig(mask="right", lse=True, page=64)
    >>> c.name, latent_config_named(c.name) == c
    ('mla-bf16-576-right-lse-64x64-page64', True)
    """
    return _NAMES.configuration(name)
