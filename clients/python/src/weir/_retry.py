from __future__ import annotations

import random
import time
from dataclasses import dataclass

import httpx

from ._errors import Error, Unreachable


@dataclass(frozen=True)
class Retries:
    """When a question is retried after a failed connection, or after a 503 with Retry-After."""

    attempts: int = 3
    """The maximum number of attempts; 1 disables retries."""
    first: float = 0.01
    """The longest wait after the first attempt, in seconds; it doubles after each further one."""
    most: float = 2.0
    """The longest wait of all, in seconds. A 503 whose Retry-After is longer is not retried."""


class Attempts:
    """The attempts at one question, with their deadline and the wait after each."""

    def __init__(self, retries: Retries, timeout: float) -> None:
        """Starts now, with a deadline in `timeout` seconds."""
        self._retries, self._failed = retries, 0
        self._deadline = time.monotonic() + timeout

    def left(self) -> float:
        """Returns the seconds until the deadline, at least a millisecond.

        A wait may end after the deadline, and a socket takes no timeout below zero.
        """
        return max(self._deadline - time.monotonic(), 0.001)

    def wait(self, failure: Error | httpx.RequestError) -> float:
        """Returns the seconds to wait after a failed attempt.

        The wait is partly random, so that many clients do not retry at once: after Retry-After by up to half of it.

        Raises:
            Error, Unreachable: A retry would not help.
        """
        self._failed += 1
        after, retries = _retry_after(failure), self._retries
        if after is not None and after <= retries.most and self._failed < retries.attempts:
            wait = after + random.random() * max(min(retries.first * 2.0 ** (self._failed - 1), retries.most), after / 2)
            if time.monotonic() + wait < self._deadline:
                return wait
        if isinstance(failure, Error):
            raise failure
        raise Unreachable(f"{type(failure).__name__}: {failure}") from failure


def _retry_after(failure: Error | httpx.RequestError) -> float | None:
    """Returns the seconds after which a retry may succeed; None if none may.

    A timeout is not retried: the next attempt would take as long. Nor is an answer that cannot be unpacked.
    """
    if isinstance(failure, Error):
        return failure.retry_after
    return 0.0 if isinstance(failure, httpx.TransportError) and not isinstance(failure, httpx.TimeoutException) else None
