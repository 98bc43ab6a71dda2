"""Decides what each step computes, and owns the blocks of every choice.

Life of a choice: waiting, prefilling (chunk by chunk), decoding (one token a step), gone. When
blocks run out, the least urgent choice goes back to waiting and is computed again later.
"""

from __future__ import annotations

import heapq
from bisect import insort
from dataclasses import dataclass

from isogloss.engine.torch.blocks import BlockPool
from isogloss.engine.torch.jobs import Choice, Job, StepPlan, Work, first_choice

SCORED_CHUNK = 128
"""Prompt tokens to prefill at once when each needs a row of logits: they are wide."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one step may hold."""

    max_num_seqs: int
    """Sequences that run at once."""
    prefill_budget: int
    """Prompt tokens that one step computes beside the decoding sequences."""


class Scheduler:
    """Waiting and running choices. Used by one thread."""

    def __init__(self, pool: BlockPool, block_size: int, limits: Limits) -> None:
        self.pool = pool
        self._block_size = block_size
        self._limits = limits
        self._waiting: list[tuple[tuple[int, int, int], Choice]] = []
        self._running: list[Choice] = []

    @property
    def busy(self) -> bool:
        """Whether a step would find something to do."""
        return bool(self._running or self._waiting)

    def plan(self) -> StepPlan:
        """Choose the work of one step and allocate its blocks."""
        plan = StepPlan()
        self._decode(plan)
        budget = self._prefill(plan, self._limits.prefill_budget)
        if not plan.preempted or not plan.work:
            self._admit(plan, budget)
        while not plan.work and self._running:
            # All that run are beams that wait for others of theirs, which find no blocks.
            self._preempt_last(plan)
            self._admit(plan, budget)
        return plan

    # -- the phases of a step --

    def _decode(self, plan: StepPlan) -> None:
        """Every running choice whose context is computed makes one token."""
        for choice in self._running.copy():
            # Preempting takes from the end of the list, so a choice may be gone when its turn
            # comes, but none that has had its turn.
            if choice.remaining == 1 and choice.table and self._make_room(choice, plan):
                plan.work.append(Work(choice, 1, 1))

    def _make_room(self, choice: Choice, plan: StepPlan) -> bool:
        """See that the block of the next position is there, and is the choice's own."""
        index = choice.computed // self._block_size
        missing = index == len(choice.table)
        if not missing and self.pool.references(choice.table[index]) == 1:
            return True
        while self.pool.available == 0:
            self._preempt_last(plan)
            if not choice.table:
                return False
        block = self.pool.allocate()
        if missing:
            choice.table.append(block)
        else:
            plan.copies.append((choice.table[index], block))
            self.pool.release([choice.table[index]])
            choice.table[index] = block
        return True

    def _preempt_last(self, plan: StepPlan) -> None:
        """Send the least urgent choice back to waiting, and if it is a beam, all beams of its request.

        Beams take their steps together: those that stayed would hold blocks while they wait for the others.
        """
        last = self._running[-1]
        group = [other for other in self._running if other.job is last.job] if last.job.request.beams else [last]
        for choice in group:
            self._preempt(choice, plan)
        plan.work = [work for work in plan.work if work.choice.table]

    def _preempt(self, choice: Choice, plan: StepPlan) -> None:
        self._running.remove(choice)
        self._free(choice)
        choice.computed = 0
        self._push(choice)
        plan.preempted += 1

    def _prefill(self, plan: StepPlan, budget: int) -> int:
        """Go on with prompts that are partly computed. Returns the budget that is left."""
        for choice in self._running:
            if choice.remaining > 1 and budget > 0:
                budget -= self._add_chunk(choice, plan, budget)
        return budget

    def _add_chunk(self, choice: Choice, plan: StepPlan, budget: int) -> int:
        scored = choice.job.prompt_scores is not None
        count = min(choice.remaining, budget, SCORED_CHUNK if scored else budget)
        complete = count == choice.remaining
        plan.work.append(Work(choice, count, count if scored else int(complete)))
        return count

    def _admit(self, plan: StepPlan, budget: int) -> None:
        """Start waiting choices in order, while there are seats, blocks and budget."""
        while self._waiting and budget > 0:
            choice = self._waiting[0][1]
            if not self._has_seats(choice) or not self._take_blocks(choice):
                return
            heapq.heappop(self._waiting)
            insort(self._running, choice, key=lambda other: other.urgency)
            if not choice.job.started:
                choice.job.started = True
                plan.started.append((choice.job, choice.computed))
            budget -= self._add_chunk(choice, plan, budget)

    def _has_seats(self, choice: Choice) -> bool:
        if choice.job.request.beams and any(other.job is choice.job for other in self._running):
            return True
        # A request with more choices than seats runs alone rather than never.
        taken = sum(other.seats for other in self._running)
        return taken == 0 or taken + choice.seats <= self._limits.max_num_seqs

    def _take_blocks(self, choice: Choice) -> bool:
        """Allocate all blocks of a waiting choice, those of a known prefix for free."""
        found = self._known_prefix(choice)
        missing = -(-len(choice.tokens) // self._block_size) - len(found)
        # One block in reserve for each running choice, or the newcomer would soon be preempted.
        spare = self.pool.available - self.pool.idle_among(found) - len(self._running)
        if missing > spare:
            return False
        for block in found:
            self.pool.share(block)
        choice.table = found + [self.pool.allocate() for _ in range(missing)]
        choice.found_blocks = len(found)
        choice.computed = len(found) * self._block_size
        return True

    def _known_prefix(self, choice: Choice) -> list[int]:
        if choice.job.prompt_scores is not None:
            return []
        # At least one token is left to compute: its logits are needed.
        blocks = (len(choice.tokens) - 1) // self._block_size
        return self.pool.find(choice.keys.upto(choice.tokens, blocks))

    # -- what happens around a step --

    def add(self, job: Job) -> None:
        """Queue a request."""
        choice = first_choice(job, job.prefix_keys(self._block_size))
        choice.waiting_forks = tuple(range(1, job.sequences))
        job.choices.append(choice)
        self._push(choice)

    def _push(self, choice: Choice) -> None:
        heapq.heappush(self._waiting, (choice.urgency, choice))

    def advance(self, work: Work) -> None:
        """Note that work is done, and let others find the blocks that are full now."""
        choice = work.choice
        before = choice.computed // self._block_size
        choice.computed += work.count
        full = choice.computed // self._block_size
        if full > before:
            keys = choice.keys.upto(choice.tokens, full)
            for index in range(before, full):
                self.pool.publish(choice.table[index], keys[index])

    def fork(self, choice: Choice) -> list[Choice]:
        """Branch off the waiting choices of a computed prompt; all share its blocks."""
        twins = [choice.fork(index) for index in choice.waiting_forks]
        choice.waiting_forks = ()
        for twin in twins:
            self._join(twin)
        return twins

    def branch(self, choice: Choice, index: int) -> Choice:
        """A sequence that goes on from here another way, and shares all blocks so far."""
        twin = choice.branch(index)
        self._join(twin)
        return twin

    def _join(self, twin: Choice) -> None:
        # Into a last block that is not full, each choice will write for itself.
        twin.found_blocks = twin.computed // self._block_size
        for block in twin.table:
            self.pool.share(block)
        twin.job.choices.append(twin)
        insort(self._running, twin, key=lambda other: other.urgency)

    def remove(self, choice: Choice) -> None:
        """Forget a choice and free its blocks."""
        if choice in self._running:
            self._running.remove(choice)
        else:
            self._waiting = [entry for entry in self._waiting if entry[1] is not choice]
            heapq.heapify(self._waiting)
        choice.job.choices.remove(choice)
        self._free(choice)

    def _free(self, choice: Choice) -> None:
        if not choice.trusted:
            self.pool.distrust(choice.table[choice.found_blocks :])
        self.pool.release(choice.table)
        choice.table = []
