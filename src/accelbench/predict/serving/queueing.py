"""Continuous batching as a queue: a step-time function goes in, times of requests come out.

The simulation jumps between events (an arrival, a finished request), so that its cost grows with
the requests and not with their tokens.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

#: Seconds of a step, of its prompt tokens, prompts, decoding sequences and their mean context.
StepFunction = Callable[[float, float, float, float], float]


@dataclass(frozen=True)
class Request:
    """A prompt and the number of tokens to generate."""

    prompt: int
    new: int
    due: float = 0.0  # seconds; a closed loop sends it when an earlier one has finished


@dataclass(frozen=True)
class ServerLimits:
    """Limits of the batch."""

    sequences: int = 1 << 30
    cache_tokens: float = math.inf
    step_tokens: int = 8192
    is_mixed: bool = True  # prompts and new tokens share steps; else prompts go first


@dataclass
class ServedTimes:
    """Times of requests in the order that they finished, in seconds."""

    sent: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    last: list[float] = field(default_factory=list)
    new: list[int] = field(default_factory=list)
    busy: float = 0.0
    batch_seconds: float = 0.0  # seconds times sequences that decode
    cache_peak: float = 0.0

    def ttft(self, skip: int = 0) -> np.ndarray:
        """Return times to the first token, without the first `skip` requests."""
        return np.subtract(self.first, self.sent)[skip:]

    def tpot(self, skip: int = 0) -> np.ndarray:
        """Return times per token after the first, without the first `skip` requests."""
        tokens = np.maximum(np.asarray(self.new, float) - 1, 1)
        return np.asarray((np.subtract(self.last, self.first) / tokens)[skip:])

    def tokens_per_second(self, skip: int = 0) -> float:
        """Return the rate between the end of request `skip` and the last end."""
        skip = min(skip, len(self.last) - 2)
        if skip < 0 or self.last[-1] <= self.last[skip]:
            return sum(self.new) / self.last[-1] if self.last and self.last[-1] > 0 else 0.0
        return sum(self.new[skip + 1 :]) / (self.last[-1] - self.last[skip])


@dataclass
class _Waiting:
    """A request whose prompt is not read to its end."""

    sent: float
    request: Request
    left: int

    @property
    def is_begun(self) -> bool:
        return self.left < self.request.prompt


class _Server:
    """State of the simulated server."""

    def __init__(self, step: StepFunction, limits: ServerLimits) -> None:
        self.step, self.limits, self.times = step, limits, ServedTimes()
        self.waiting: deque[_Waiting] = deque()
        #: By the decode step that ends them: end, number, sent, first token, request.
        self.running: list[tuple[int, int, float, float, Request]] = []
        self.now, self.steps, self.admitted = 0.0, 0, 0
        self.cached = self.reserved = 0.0

    def send(self, request: Request, at: float) -> None:
        self.waiting.append(_Waiting(at, request, request.prompt))

    def read_prompts(self) -> bool:
        """Run a step with as many prompt tokens as it may have; False if none may enter."""
        batch = len(self.running) if self.limits.is_mixed else 0
        budget = max(self.limits.step_tokens - batch, 1)
        tokens, prompts = 0, 0
        read: list[_Waiting] = []
        while self.waiting and budget > 0:
            one = self.waiting[0]
            if not one.is_begun and not self._admit(one.request, len(read)):
                break
            part = min(one.left, budget)
            one.left -= part
            budget -= part
            tokens, prompts = tokens + part, prompts + 1
            if one.left:
                break
            read.append(self.waiting.popleft())
        if not tokens:
            return False
        self._run(tokens, prompts, batch, 1 if batch else 0)
        for one in read:
            self._begin(one)
        return True

    def decode(self, until: float) -> None:
        """Run decode steps up to the next finished request, or the time of an arrival."""
        ahead, batch = self.running[0][0] - self.steps, len(self.running)
        context = (self.cached + batch * ahead / 2) / batch
        length = self.step(0.0, 0.0, batch, context)
        if math.isfinite(until) and length > 0:
            ahead = min(ahead, max(math.ceil((until - self.now) / length), 1))
        self._pass(ahead * length, batch, ahead)

    def finish(self) -> int:
        """Record requests that have all their tokens and return their number."""
        count = 0
        while self.running and self.running[0][0] <= self.steps:
            _, _, sent, first, request = heapq.heappop(self.running)
            self.cached -= request.prompt + request.new
            self._record(sent, first, request)
            count += 1
        return count

    def _admit(self, request: Request, read: int) -> bool:
        need = request.prompt + request.new
        if len(self.running) + read >= self.limits.sequences:
            return False
        if self.reserved and self.reserved + need > self.limits.cache_tokens:
            return False
        self.reserved += need
        return True

    def _run(self, tokens: int, prompts: int, batch: int, steps: int) -> None:
        context = self.cached / batch if batch else 0.0
        self._pass(self.step(tokens, prompts, batch, context), batch, steps)

    def _pass(self, seconds: float, batch: int, steps: int) -> None:
        self.now += seconds
        self.steps += steps
        self.cached += batch * steps
        self.times.busy += seconds
        self.times.batch_seconds += seconds * len(self.running)
        self.times.cache_peak = max(self.times.cache_peak, self.cached)

    def _begin(self, one: _Waiting) -> None:
        request = one.request
        self.admitted += 1
        end = self.steps + max(request.new, 1) - 1
        heapq.heappush(self.running, (end, self.admitted, one.sent, self.now, request))
        self.cached += request.prompt + 1

    def _record(self, sent: float, first: float, request: Request) -> None:
        self.reserved -= request.prompt + request.new
        self.times.sent.append(sent)
        self.times.first.append(first)
        self.times.last.append(self.now)
        self.times.new.append(request.new)


def simulate(
    requests: Sequence[Request],
    step: StepFunction,
    limits: ServerLimits | None = None,
    *,
    concurrency: int | None = None,
) -> ServedTimes:
    """Serve requests and return their times.

    Args:
        concurrency: requests in flight of a closed loop; None sends each when it is due.
    """
    server = _Server(step, limits or ServerLimits())
    is_open = concurrency is None
    pending = deque(sorted(requests, key=lambda one: one.due) if is_open else requests)
    for _ in range(min(concurrency or 0, len(pending))):
        server.send(pending.popleft(), 0.0)
    while pending or server.waiting or server.running:
        while is_open and pending and pending[0].due <= server.now:
            server.send(pending[0], pending.popleft().due)
        if not server.waiting and not server.running:
            server.now = max(server.now, pending[0].due)
            continue
        if not (server.waiting and server.read_prompts()):
            server.decode(pending[0].due if is_open and pending else math.inf)
        for _ in range(server.finish()):
            if not is_open and pending:
                server.send(pending.popleft(), server.now)
    return server.times


def spread_requests(count: int, prompt: int, new: int, spread: float = 0.1) -> list[Request]:
    """Return requests whose lengths are spread evenly around their means, in a fixed order.

    Equal lengths would keep all requests of a closed loop in step, which no server shows.
    """
    random = np.random.default_rng(0)
    lengths = [
        np.maximum(np.rint(mean * (1 + spread * random.uniform(-1, 1, count))), 1).astype(int)
        for mean in (prompt, new)
    ]
    return [Request(int(a), int(b)) for a, b in zip(*lengths, strict=True)]
