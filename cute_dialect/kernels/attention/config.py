"""Configuration of an attention kernel: element type, head dimension, mask, tiles and schedule.

>>> config = AttentionConfig()
>>> config.name, config.smem_bytes, config.registers
('attention-bf16-128-full-128x176', 212992, 196)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.kernels.common.kernel_names import by

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.kernels.attention.backward_config import BackwardConfig
    from cute_dialect.kernels.attention.latent_config import LatentConfig
    from cute_dialect.kernels.attention.score_graph import ScoreGraph

HEADS = (32, 64, 96, 128, 192, 256)
"""Supported head dimensions. TMA pads smaller heads with zeros."""

COPIED_HEADS = (32, 64, 128, 256)
"""Head dimensions of kernels whose threads copy rows: a row has a power of two of 16-byte pieces."""

MASKS = ("full", "right", "left", "both")
"""Bounded sides of a query's keys: ``right`` is causal attention, ``both`` a sliding window."""

BYTES = ("f8E4M3FN", "f8E5M2")
"""8-bit element types."""

ELEMENTS = ("bf16", "f16", *BYTES)
"""Element types of Q, K and V."""

OUTPUTS = ("bf16", "f16", "f32")
"""Element types of the result of 8-bit operands. Other results have the type of the operands."""

DESCALES = ("", "q", "k", "v", "qk", "qv", "kv", "qkv")
"""The 8-bit operands that have a descale per sequence and key head."""

MOST_OF_PRODUCER = 204
"""Most registers of a consumer for which the producer's warps have 40 registers to transpose V, instead of 24."""

BIASES = ("i1", "f16", "bf16", "f32")
"""Element types of an added bias. ``i1`` is a mask, which is True for visible keys."""

SMEM = DEFAULT_TARGET.shared
"""Shared memory available to a block, in bytes."""

_C = TypeVar("_C", bound="AttentionConfig | BackwardConfig | LatentConfig")


@dataclass(frozen=True)
class KernelNames(Generic[_C]):
    """Names of attention's kernels: the function they compute, the tile, and the settings that differ from the default.

    Words of a name are separated by hyphens.
    """

    prefix: str
    default: Callable[[str, int, str], _C]  # the configuration of an element type, a head dimension and a mask
    flags: Mapping[str, str]  # words -> boolean fields
    numbers: Mapping[str, str]  # words that a number follows -> fields
    # Fields that hold an element type, or a graph, of which there is only the name; their words are, for example,
    # ``bias_f16``.
    elements: tuple[str, ...] = ()

    def name(self, c: _C) -> str:
        """Return the name of a configuration."""
        plain = self.default(c.element, c.head, c.mask)
        words = [self.prefix, c.element, str(c.head), c.mask]
        words += [word for word, field in self.flags.items() if getattr(c, field)]
        words += [f"{field}_{getattr(c, field)}" for field in self.elements if getattr(c, field)]
        words.append(by((c.tile_m, c.tile_n)))
        differing = [
            (word, field) for word, field in self.numbers.items() if getattr(c, field) != getattr(plain, field)
        ]
        return "-".join(words + [f"{word}{int(getattr(c, field))}" for word, field in differing])

    def configuration(self, name: str) -> _C:
        """Return the configuration with a name.

        Raises:
            ValueError: if the name is not that of a kernel.
        """
        found = None
        match name.removeprefix(f"{self.prefix}-").split("-"):
            case [element, head, mask, *words] if words and head.isdigit():
                found = self.default(element, int(head), mask)
                for word in words:
                    found = found._replace(**self._fields(found, word))
            case _:
                pass
        if found is None or self.name(found) != name:
            usual = self.name(self.default("bf16", 128, "full"))
            raise ValueError(f'there is no kernel named "{name}"; a valid name is "{usual}"')
        return found

    def _fields(self, c: _C, word: str) -> dict[str, Any]:
        """Return the fields that a word sets."""
        field, _, element = word.partition("_")
        if word in self.flags:
            return {self.flags[word]: True}
        if field in self.elements:
            return {field: element}
        if tile := re.fullmatch(r"(\d+)x(\d+)", word):
            return {"tile_m": int(tile[1]), "tile_n": int(tile[2])}
        found = re.fullmatch(r"([a-z]+)(\d+)", word)
        if found is None or found[1] not in self.numbers:
            return {}
        field = self.numbers[found[1]]
        return {field: type(getattr(c, field))(int(found[2]))}


class AttentionConfig(NamedTuple):
    """Configuration of an attention kernel."""

    element: str = "bf16"  # of Q, K and V, one of ELEMENTS
    head: int = 128  # head dimension, one of HEADS; smaller heads are padded with zeros
    mask: str = "full"  # one of MASKS
    from_end: bool = False  # align the last query with the last key instead of the first query with the first key
    packed: bool = False  # variable-length sequences, packed one after the other
    groups: bool = False  # packed queries are those of groups of sequences; K and V have a matrix for each group
    lse: bool = False  # also return the log-sum-exp of each row
    # Split-KV: several blocks share the keys of a tile. Each returns a partial f32 result and log-sum-exps, which
    # ``combine.py`` reduces.
    split: bool = False
    tile_m: int = 128  # queries of a block, 64 per consumer warpgroup
    tile_n: int = 176  # keys of a step
    stages: int = 2  # stages of K, and of V
    q_stages: int = 1  # tiles of Q in shared memory
    overlap: bool = True  # run the MMAs with V while the next scores go through softmax
    pingpong: bool = (
        True  # consumers issue their MMAs alternately, so that one's softmax overlaps with the other's MMAs
    )
    lazy: bool = True  # rescale the accumulator only if a row maximum has grown by more than softmax.SLACK
    # With keys bounded on the right, a block takes tiles in pairs of equal total length. Fewer tiles than
    # multiprocessors need no pairs.
    pairs: bool = True
    sms: int = 132  # multiprocessors of the GPU
    head_v: int = 0  # head dimension of V and of the result, one of HEADS; 0: that of Q and K
    used: bool = False  # the number of keys of each sequence is an array
    used_q: bool = False  # the number of queries of each sequence is an array
    padded: bool = False  # the first key of each sequence is an array
    chunked: bool = False  # a query sees the keys of its own chunk only
    page: int = 0  # keys of a page; 0: the keys of a sequence are contiguous
    pack: bool = False  # rows of a tile are (query, head) pairs of the heads that share keys
    # Functions of the scores. Each makes the kernel scale the scores before softmax, not within it.
    scaled: bool = False  # the scale may be negative or 0
    softcap: bool = False  # cap * tanh(score / cap)
    alibi: bool = False  # subtract the distance of query and key, times a slope per head
    bias: str = ""  # element type of an added bias, one of BIASES; "i1" is a mask of visible keys
    sinks: str = ""  # element type of a per-head logit that joins the sum of exponentials; "" for none
    functions: ScoreGraph | None = None  # functions of scores and of visible keys
    dropout: bool = False  # set probabilities to 0 at random
    # A block mask: lists of the key blocks that a block of queries sees; 0 for none.
    block_m: int = 0  # queries of a block, a multiple of tile_m
    block_n: int = 0  # keys of a block, a multiple of tile_n
    # Operands of 8 bits. V is transposed in shared memory, and probabilities are multiplied by 2^8 before rounding.
    output: str = ""  # element type of the result, one of OUTPUTS; "" for that of the operands
    emulated: int = 0  # exponentials, of every 8, that FMAs compute instead of the special function unit
    descale: str = ""  # the operands, of "qkv", that have a factor for each key head of each sequence

    @property
    def bits(self) -> int:
        """Bits of an element of Q, K and V."""
        return 8 if self.element in BYTES else 16

    @property
    def transposes(self) -> bool:
        """Return True if warps transpose V in shared memory, because the MMA reads only K-major operands."""
        return self.bits == 8

    @property
    def result(self) -> str:
        """Element type of the result."""
        return self.output or self.element

    @property
    def value_head(self) -> int:
        """Head dimension of V and of the result."""
        return self.head_v or self.head

    @property
    def adjusts(self) -> bool:
        """Return True if the scores are changed between the MMA and softmax."""
        return self.scaled or self.softcap or self.alibi or bool(self.bias) or self.has_score

    @property
    def has_score(self) -> bool:
        """Return True if a function of scores changes them, other than by hiding keys."""
        return self.functions is not None and self.functions.has("score")

    @property
    def has_mask(self) -> bool:
        """Return True if a function selects visible keys."""
        return self.functions is not None and self.functions.has("visible")

    @property
    def hides(self) -> bool:
        """Return True if a row may have no visible key."""
        return self.mask != "full" or bool(self.bias) or self.functions is not None or self.block_n > 0

    @property
    def consumers(self) -> int:
        """Number of consumer warpgroups, 64 queries each."""
        return self.tile_m // 64

    @property
    def threads(self) -> int:
        """Threads of a block: a producer warpgroup and the consumers."""
        return 128 * (1 + self.consumers)

    @property
    def bounded(self) -> tuple[bool, bool]:
        """(left, right): True if the mask bounds the keys of a query on that side."""
        return self.mask in ("left", "both"), self.mask in ("right", "both")

    @property
    def rows_loaded(self) -> int:
        """Keys of one TMA load: those of a step, or the part of a step in one page."""
        return self.tile_n if self.gathers else min(self.page or self.tile_n, self.tile_n)

    @property
    def page_loads(self) -> int:
        """Pages of a step."""
        return self.tile_n // self.rows_loaded

    @property
    def clears(self) -> bool:
        """Return True if the producer zeroes values past the end of a sequence."""
        return not self.gathers and not self.transposes and self.reads_past_end

    @property
    def reads_past_end(self) -> bool:
        """Return True if the last step of a sequence may read values of other sequences."""
        return self.packed or self.used or self.page > 0

    @property
    def gathers(self) -> bool:
        """Return True if a warpgroup loads keys and values by cp.async, because TMA boxes do not fit the pages."""
        n = self.tile_n
        return self.page > 0 and (self.page % 8 != 0 or (n % self.page != 0 and self.page % n != 0))

    @property
    def takes_pairs(self) -> bool:
        """Return True if a work item is a pair of tiles."""
        return self.pairs and self.bounded[1] and not self.split and not self.pack

    @property
    def key_bytes(self) -> int:
        """Bytes of the keys of one step."""
        return self.tile_n * self.head * self.bits // 8

    @property
    def value_bytes(self) -> int:
        """Bytes of the values of one step."""
        return self.tile_n * self.value_head * self.bits // 8

    @property
    def query_bytes(self) -> int:
        """Bytes of a tile of Q."""
        return self.tile_m * self.head * self.bits // 8

    @property
    def smem_bytes(self) -> int:
        """Shared memory of a block in bytes, without barriers."""
        values = self.value_bytes * (2 if self.transposes else 1)
        return self.stages * (self.key_bytes + values) + self.q_stages * self.query_bytes

    @property
    def registers(self) -> int:
        """Registers of a consumer thread for scores, probabilities and the accumulator."""
        return self.tile_n // 2 + self.tile_n * self.bits // 64 + self.value_head // 2

    @property
    def name(self) -> str:
        """Unique name of the kernel: the function it computes, then the settings that differ from the default."""
        return _NAMES.name(self)

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        if self.element not in ELEMENTS:
            raise ValueError(f"element is {self.element!r}; use one of {', '.join(ELEMENTS)}")
        if self.output not in (OUTPUTS if self.bits == 8 else ("",)):
            raise ValueError(
                f"output is {self.output!r}; use one of {', '.join(OUTPUTS)} for 8-bit elements, or '' for others"
            )
        if not 0 <= self.emulated <= 8 or (self.emulated and self.bits != 8):
            raise ValueError(f"emulated is {self.emulated}; use 0 to 8 for 8-bit elements, or 0 for others")
        if self.descale not in (DESCALES if self.bits == 8 else ("",)):
            raise ValueError(f"descale is {self.descale!r}; use letters of 'qkv', in this order, for 8-bit elements")
        if self.head not in HEADS:
            raise ValueError(f"head is {self.head}; use one of {', '.join(map(str, HEADS))}")
        if self.bits == 8 and 32 in (self.head, self.value_head):
            raise ValueError(f"head is 32; use one of {', '.join(map(str, HEADS[1:]))} for 8-bit elements")
        if self.head_v and self.head_v not in HEADS:
            raise ValueError(f"head_v is {self.head_v}; use one of {', '.join(map(str, HEADS))}, or 0 for that of Q")
        for field, known in (("bias", BIASES), ("sinks", BIASES[1:])):
            if getattr(self, field) and getattr(self, field) not in known:
                raise ValueError(f"{field} is {getattr(self, field)!r}; use one of {', '.join(known)}")
        if self.groups and not self.packed:
            raise ValueError("groups=True needs packed=True")
        if self.chunked and self.mask != "both":
            raise ValueError(f"mask is {self.mask!r}; chunked=True needs 'both'")
        if self.padded and self.page:
            raise ValueError(f"page is {self.page}; padded=True needs page=0")
        if self.mask not in MASKS:
            raise ValueError(f"mask is {self.mask!r}; use one of {', '.join(MASKS)}")
        if (self.pack or self.page) and not {self.head, self.value_head} <= {*COPIED_HEADS}:
            raise ValueError(
                f"head is {self.head} and head_v is {self.value_head}; with pack=True or pages, use one of "
                f"{', '.join(map(str, COPIED_HEADS))}"
            )
        if self.gathers and self.transposes:
            raise ValueError(f"page={self.page} with tile_n={self.tile_n} is not supported for 8-bit elements")
        if self.gathers and not self.pack:
            raise ValueError(f"page={self.page} with tile_n={self.tile_n} needs pack=True")
        if self.split and not self.lse:
            raise ValueError("split=True needs lse=True")
        if self.tile_m not in (64, 128, 192):
            raise ValueError(f"tile_m is {self.tile_m}; it must be 64, 128 or 192")
        if self.block_n and (self.block_m % self.tile_m or self.block_n % self.tile_n):
            raise ValueError(
                f"the tile is {self.tile_m}x{self.tile_n}; it must divide the blocks of the mask, "
                f"{self.block_m}x{self.block_n}"
            )
        if self.dropout and (self.pack or self.bits == 8):
            raise ValueError("dropout=True needs pack=False and elements of 16 bits")
        if self.functions is not None and (self.pack or self.packed):
            raise ValueError("functions of scores need pack=False and packed=False")
        of_sequences = self.packed or self.used or self.used_q or self.padded or self.page > 0
        if self.block_n and (self.mask != "full" or of_sequences or self.pack):
            raise ValueError("a block mask needs mask='full', and no packed, used, used_q, padded, page or pack")
        unit = 256 // self.bits  # K of an MMA with V
        if self.tile_n % unit or not unit <= self.tile_n <= 256:
            raise ValueError(f"tile_n is {self.tile_n}; it must be a multiple of {unit} up to 256")
        if self.stages < 1 or self.q_stages < 1:
            raise ValueError(f"stages and q_stages must be at least 1, got {self.stages} and {self.q_stages}")
        if self.smem_bytes + 256 > SMEM:
            raise ValueError(
                f"the kernel needs {self.smem_bytes} bytes of shared memory; at most {SMEM - 256} are "
                "available, use smaller tiles or fewer stages"
            )
        most = 136 if self.consumers == 3 else 208
        if self.registers > most:
            raise ValueError(
                f"the kernel needs {self.registers} registers per consumer thread; at most {most} are "
                "available, use smaller tiles"
            )


def default_config(element: str = "bf16", head: int = 128, mask: str = "full", *, few: bool = False) -> AttentionConfig:
    """Return the default configuration; ``few`` is for at most 64 queries.

    >>> default_config(mask="right").tile_n, default_config(head=64).tile_m
    (128, 192)
    """
    config = AttentionConfig(element, head, mask)
    if config.bits == 8:
        return _default_of_bytes(config._replace(output="bf16"), few)
    if few:  # one consumer, bound by memory latency
        return config._replace(tile_m=64, tile_n=64 if head > 128 else 128, stages=6 if head == 32 else 3)
    if head <= 64:  # 32 accumulator registers: three consumers with 64 x 128 scores, and room for two tiles of Q
        return config._replace(tile_m=192, tile_n=128, stages=3, q_stages=2)
    if head == 96:
        # On an H200, 2026-11-29: 13 % faster than 128 x 176 for 4 x 4096 tokens, and 12 % than 128 x 128 if masked.
        return config._replace(tile_m=192, tile_n=112 if mask == "full" else 96, stages=3, q_stages=2)
    if head == 192:
        return config._replace(tile_n=112 if mask == "full" else 96)
    if head == 256:  # 128 accumulator registers
        return config._replace(tile_n=80 if mask == "full" else 64)
    # The diagonal halves tiles of 128 x 128. They leave room for two tiles of Q.
    return config if mask == "full" else config._replace(tile_n=128, q_stages=2)


def _default_of_bytes(config: AttentionConfig, few: bool) -> AttentionConfig:
    """Return the default configuration for 8-bit elements."""
    head = config.head
    if few:
        return config._replace(tile_m=64, tile_n=64 if head > 128 else 128, stages=3)
    if head == 64:
        return config._replace(tile_m=192, tile_n=160, q_stages=2)
    if head <= 128:
        return config._replace(tile_n=160, q_stages=2)
    return config._replace(tile_n=128)


_NAMES = KernelNames(
    "attention",
    default_config,
    flags={
        "end": "from_end", "packed": "packed", "groups": "groups", "lse": "lse", "split": "split", "scaled": "scaled",
        "softcap": "softcap", "alibi": "alibi", "used": "used", "usedq": "used_q", "padded": "padded",
        "chunked": "chunked", "pack": "pack", "dropout": "dropout",
    },
    numbers={
        "v": "head_v", "page": "page", "s": "stages", "q": "q_stages", "o": "overlap", "p": "pingpong", "l": "lazy",
        "pairs": "pairs", "e": "emulated", "sms": "sms", "bm": "block_m", "bn": "block_n",
    },
    elements=("bias", "sinks", "functions", "output", "descale"),
)  # fmt: skip


def config_named(name: str) -> AttentionConfig:
    """Return the configuration with a given name.

    Raises:
        ValueError: if the name is not that of a kernel.

    >>> c = AttentionConfig(mask="right", lse=True, tile_n=96, stages=3, pingpong=False)
    >>> c.name, config_named(c.name) == c
    ('attention-bf16-128-right-lse-128x96-s3-q1-p0', True)
    """
    return _NAMES.configuration(name)
