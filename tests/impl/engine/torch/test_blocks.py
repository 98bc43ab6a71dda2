from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from isogloss.engine.torch.blocks import BlockPool, PrefixKeys
from isogloss.engine.torch.executor import NULL_BLOCK

BLOCKS = 9


class Pool(RuleBasedStateMachine):
    """Random owners take, share, publish, distrust and release blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(BLOCKS)
        self.owners: list[list[int]] = []
        self.distrusted: set[int] = set()
        """Held blocks that nobody may find."""
        self.to_clean: set[int] = set()
        """Distrusted blocks that were freed; a new owner may have them already."""

    @precondition(lambda self: self.pool.available)
    @rule(key=st.none() | st.binary(min_size=1, max_size=1))
    def allocate(self, key: bytes | None) -> None:
        block = self.pool.allocate()
        assert all(block not in owner for owner in self.owners)
        self.owners.append([block])
        if key is not None:
            self.pool.publish(block, key)

    @rule(key=st.binary(min_size=1, max_size=1))
    def take_up(self, key: bytes) -> None:
        found = self.pool.find([key])
        if found:
            self.pool.share(found[0])
            self.owners.append(found)

    @precondition(lambda self: self.owners)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.owners) - 1))
        blocks = self.owners.pop(index)
        self.pool.release(blocks)
        freed = {block for block in blocks if self.pool.references(block) == 0}
        self.to_clean |= freed & self.distrusted
        self.distrusted -= freed

    @precondition(lambda self: self.owners)
    @rule(data=st.data())
    def distrust(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.owners) - 1))
        self.pool.distrust(self.owners[index])
        self.distrusted.update(self.owners[index])

    @rule()
    def clean(self) -> None:
        assert set(self.pool.take_unclean()) == self.to_clean
        self.to_clean.clear()

    @invariant()
    def counts_are_those_of_the_owners(self) -> None:
        held = Counter(block for owner in self.owners for block in owner)
        assert NULL_BLOCK not in held
        assert all(self.pool.references(block) == held[block] for block in range(BLOCKS))
        assert self.pool.available == BLOCKS - 1 - len(held)
        assert abs(self.pool.usage - len(held) / (BLOCKS - 1)) < 1e-12

    @invariant()
    def what_is_distrusted_is_never_found(self) -> None:
        for key in range(256):
            assert not set(self.pool.find([bytes([key])])) & self.distrusted


TestPool = Pool.TestCase
TestPool.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_the_longest_unused_block_is_evicted_first():
    pool = BlockPool(4)
    blocks = [pool.allocate() for _ in range(3)]
    for block, key in zip(blocks, (b"a", b"b", b"c"), strict=True):
        pool.publish(block, key)
    pool.release([blocks[0]])
    pool.release(blocks[1:])
    pool.allocate()
    assert pool.find([b"a"]) == []
    # Of blocks released together the later goes first: the start of a prefix is worth more.
    pool.allocate()
    assert pool.find([b"b"]) == [blocks[1]]
    assert pool.find([b"c"]) == []


def test_a_prefix_ends_at_the_first_gap():
    pool = BlockPool(4)
    first, _, third = (pool.allocate() for _ in range(3))
    pool.publish(first, b"a")
    pool.publish(third, b"c")
    assert pool.find([b"a", b"b", b"c"]) == [first]


def test_keys_stand_for_all_tokens_before_and_for_the_salt():
    one = PrefixKeys(2).upto([1, 2, 3, 4], 2)
    assert one == PrefixKeys(2).upto([1, 2, 3, 4, 5], 2)
    assert one[1] != PrefixKeys(2).upto([9, 2, 3, 4], 2)[1]
    assert one[0] != PrefixKeys(2, b"adapter").upto([1, 2], 1)[0]
    assert len({*one, *PrefixKeys(2).upto([3, 4, 3, 4], 2)}) == 4


def test_contents_count_from_the_block_that_they_begin_in() -> None:
    def keys(contents: dict[int, bytes]) -> list[bytes]:
        return PrefixKeys(2, b"", contents).upto([1, 2, 3, 4, 5, 6], 3)

    plain, picture, other = keys({}), keys({3: b"a"}), keys({3: b"b"})
    assert plain[0] == picture[0] == other[0]
    assert len({*plain, *picture, *other}) == 7
    assert keys({3: b"a", 4: b"b"})[:2] == picture[:2]
    assert PrefixKeys(2, b"", {3: b"a"}).fork().upto([1, 2, 3, 4], 2) == picture[:2]


def test_forked_keys_go_their_own_way():
    keys = PrefixKeys(1)
    keys.upto([1], 1)
    twin = keys.fork()
    assert twin.upto([1, 2], 2) != keys.upto([1, 3], 2)
    assert twin.upto([1], 1) == keys.upto([1], 1)
