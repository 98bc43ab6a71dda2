"""Who owns which block of the KV cache, and which blocks can be found again by their tokens."""

from __future__ import annotations

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from isogloss.engine.torch.executor import NULL_BLOCK


class BlockPool:
    """Blocks with reference counts.

    A full block may be published under a key that stands for its tokens and all tokens before
    them. A published block that nobody references keeps its content and can be taken up again,
    until it is the one that was released the longest time ago and a new block is needed.
    """

    def __init__(self, count: int) -> None:
        """`count` includes the null block, which is never handed out."""
        self.capacity = count - 1
        self._references = [0] * count
        self._empty = [block for block in range(count - 1, -1, -1) if block != NULL_BLOCK]
        self._idle: OrderedDict[int, None] = OrderedDict()
        self._by_key: dict[bytes, int] = {}
        self._key_of: dict[int, bytes] = {}
        self._tainted: set[int] = set()
        self._unclean: list[int] = []
        self._highest = NULL_BLOCK

    @property
    def available(self) -> int:
        """Blocks that can be allocated now."""
        return len(self._empty) + len(self._idle)

    @property
    def usage(self) -> float:
        """Share of blocks that somebody references, 0 to 1."""
        return 1.0 - self.available / self.capacity

    @property
    def touched(self) -> range:
        """All blocks that may ever have been written."""
        return range(self._highest + 1)

    def references(self, block: int) -> int:
        """How many sequences hold a block."""
        return self._references[block]

    def allocate(self) -> int:
        """A block with one reference. Ask `available` first."""
        block = self._empty.pop() if self._empty else self._evict()
        self._highest = max(self._highest, block)
        self._references[block] = 1
        return block

    def _evict(self) -> int:
        block, _ = self._idle.popitem(last=False)
        self._unpublish(block)
        return block

    def _unpublish(self, block: int) -> None:
        del self._by_key[self._key_of.pop(block)]

    def share(self, block: int) -> None:
        """Add a reference to a block that is held or published."""
        if self._references[block] == 0:
            del self._idle[block]
        self._references[block] += 1

    def release(self, blocks: Sequence[int]) -> None:
        """Give back one reference of each. Blocks late in a sequence are evicted first."""
        for block in reversed(blocks):
            self._references[block] -= 1
            if self._references[block] == 0:
                self._retire(block)

    def distrust(self, blocks: Sequence[int]) -> None:
        """Let nobody find these held blocks again: they may hold values that are not finite."""
        for block in blocks:
            self._tainted.add(block)
            if block in self._key_of:
                self._unpublish(block)

    def take_unclean(self) -> list[int]:
        """Distrusted blocks that became free since the last call. Clear them before the next
        step."""
        unclean, self._unclean = self._unclean, []
        return unclean

    def _retire(self, block: int) -> None:
        if block in self._key_of:
            self._idle[block] = None
            return
        if block in self._tainted:
            self._tainted.remove(block)
            self._unclean.append(block)
        self._empty.append(block)

    def publish(self, block: int, key: bytes) -> None:
        """Let others find a full block. The first block under a key stays the one found."""
        if key not in self._by_key and block not in self._key_of and block not in self._tainted:
            self._by_key[key] = block
            self._key_of[block] = key

    def find(self, keys: Sequence[bytes]) -> list[int]:
        """The blocks of the longest published prefix. Takes no references."""
        found = []
        for key in keys:
            block = self._by_key.get(key)
            if block is None:
                break
            found.append(block)
        return found

    def idle_among(self, blocks: Sequence[int]) -> int:
        """How many of these count as available until they are shared."""
        return sum(self._references[block] == 0 for block in blocks)


class PrefixKeys:
    """Keys of the full blocks of one growing sequence, each made once.

    A cryptographic hash, because a collision would show one caller's context to another.
    """

    __slots__ = ("_block_size", "_contents", "_keys", "_root")

    def __init__(self, block_size: int, salt: bytes = b"", contents: Mapping[int, bytes] | None = None) -> None:
        """Sequences with different salts never share. `contents` stands for what changes the model's computation from
        a token on, by the token's index: sequences share what comes before the first difference. All are equally long.
        """
        self._block_size = block_size
        self._root = salt
        self._contents = sorted((contents or {}).items())
        self._keys: list[bytes] = []

    def upto(self, tokens: Sequence[int], blocks: int) -> list[bytes]:
        """Keys of the first full blocks."""
        while len(self._keys) < blocks:
            start = len(self._keys) * self._block_size
            parent = self._keys[-1] if self._keys else self._root
            self._keys.append(_key(parent, self._block(tokens, start, start + self._block_size)))
        return self._keys[:blocks]

    def _block(self, tokens: Sequence[int], first: int, last: int) -> bytes:
        """All that is in one block. That something begins in another place of it, its tokens show."""
        begun = [content for index, content in self._contents if first <= index < last]
        return array("q", tokens[first:last]).tobytes() + b"".join(begun)

    def fork(self) -> PrefixKeys:
        """The same keys so far, for a sequence that will go another way."""
        twin = PrefixKeys(self._block_size, self._root, dict(self._contents))
        twin._keys = self._keys.copy()
        return twin


def _key(parent: bytes, content: bytes) -> bytes:
    digest = hashlib.blake2b(parent, digest_size=16, person=b"isogloss-prefix")
    digest.update(content)
    return digest.digest()
