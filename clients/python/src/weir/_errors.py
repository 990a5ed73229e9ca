from __future__ import annotations

import json
from typing import Any

import httpx


class WeirError(Exception):
    """The reason for no answer."""


class Unreachable(WeirError):
    """No answer came in time, or none at all. `__cause__` is the error of httpx."""


class Error(WeirError):
    """The server refused the question or failed to answer it."""

    status: int
    """The HTTP status. From 500 on the question may be valid, and another attempt may succeed."""
    code: str
    """The error code, such as unknown_feature; empty if the response is not Weir's."""
    message: str
    """The error message."""
    feature: str | None
    """The feature concerned."""
    key: str | None
    """The key concerned, in the question or in an entity."""
    entity: int | None
    """Index in the question's entities."""
    event: int | None
    """Index in the question's pending events."""
    reason: str | None
    """The reason for which a pending event would be a dead letter."""
    path: str | None
    """The dotted path in the event."""
    nearest: str | None
    """The name that was probably meant."""
    retry_after: float | None
    """Seconds until a retry, from a 503."""

    def __init__(self, status: int, code: str, message: str, details: dict[str, Any], retry_after: float | None = None) -> None:
        super().__init__(f"{message} ({code})" if code else message)
        self.status, self.code, self.message = status, code, message
        self.feature, self.key = details.get("feature"), details.get("key")
        self.entity, self.event = details.get("entity"), details.get("event")
        self.reason, self.path, self.nearest = details.get("reason"), details.get("path"), details.get("nearest")
        self.retry_after = retry_after
        self._details = details

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is otherwise made again from its text alone, which fails in whatever gets it from another process.
        return Error, (self.status, self.code, self.message, self._details, self.retry_after)

    def of_row(self, row: int) -> Error:
        """Returns the error about a row of a table, whose number in its own question means nothing to its caller."""
        return Error(self.status, self.code, f"row {row}: {self.message}", {**self._details, "entity": row}, self.retry_after)

    @staticmethod
    def read(response: httpx.Response) -> Error:
        """Returns the error of a response other than 200."""
        status, header = response.status_code, response.headers.get("Retry-After", "")
        retry_after = float(header) if status == 503 and header.isdecimal() else None
        try:
            details = json.loads(response.content)["error"]
            return Error(status, details["code"], details["message"], details, retry_after)
        except (KeyError, RecursionError, TypeError, ValueError):
            return Error(status, "", f"the server answered {status}, but not as Weir does", {}, retry_after)
