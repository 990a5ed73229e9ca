from __future__ import annotations

import random
from dataclasses import dataclass

import httpx

from ._errors import Error, Unreachable, WeirError


@dataclass(frozen=True)
class Retries:
    """How a question is asked again after a connection failed, or after a 503 that says when to."""

    attempts: int = 3
    """How often a question is asked at the most; 1 never asks again."""
    first: float = 0.01
    """The longest wait after the first attempt, in seconds; the next ones double."""
    most: float = 2.0
    """The longest wait of all, in seconds. A 503 that says longer is not waited for."""

    def wait(self, n: int, failure: WeirError, after: float, left: float) -> float:
        """Seconds to wait after the nth attempt, or raises its failure if no other would help.

        Chance takes up to all of a wait away, so that many clients do not come back at once.
        """
        wait = after + random.random() * min(self.first * 2.0 ** (n - 1), self.most)
        if after < 0 or n >= self.attempts or after > self.most or wait >= left:
            raise failure
        return wait


NEVER = -1.0


def failed(response: httpx.Response) -> tuple[Error, float]:
    """The error of a response that is not a 200, and after how many seconds to ask again."""
    error = Error.read(response.status_code, response.content)
    after = response.headers.get("Retry-After", "")
    return error, float(after) if error.status == 503 and after.isdecimal() else NEVER


def broken(cause: httpx.TransportError) -> tuple[Unreachable, float]:
    """The failure of a connection. Time that has run out is none: another attempt would take as long."""
    unreachable = Unreachable(f"{type(cause).__name__}: {cause}")
    unreachable.__cause__ = cause
    return unreachable, NEVER if isinstance(cause, httpx.TimeoutException) else 0.0
