from __future__ import annotations

import json
from typing import Any


class WeirError(Exception):
    """Why there is no answer."""


class Unreachable(WeirError):
    """No answer came in time, or none at all. `__cause__` is what httpx says of it."""


class Error(WeirError):
    """The server has refused the question, or failed to answer it."""

    status: int
    """Of HTTP. From 500 on the question may be right, and another attempt may succeed."""
    code: str
    """What went wrong, for programs, such as unknown_feature; empty where it was not Weir that answered."""
    message: str
    """What went wrong, for people."""
    feature: str | None
    """The feature concerned."""
    key: str | None
    """The key concerned, of the question or of an entity."""
    entity: int | None
    """Index in the question's entities."""
    event: int | None
    """Index in the question's pending events."""
    reason: str | None
    """For which a pending event would be a dead letter."""
    path: str | None
    """Where in the event, with dots."""
    nearest: str | None
    """The name that was perhaps meant."""

    def __init__(self, status: int, code: str, message: str, details: dict[str, Any]) -> None:
        super().__init__(f"{message} ({code})" if code else message)
        self.status, self.code, self.message = status, code, message
        self.feature, self.key = details.get("feature"), details.get("key")
        self.entity, self.event = details.get("entity"), details.get("event")
        self.reason, self.path, self.nearest = details.get("reason"), details.get("path"), details.get("nearest")

    @staticmethod
    def read(status: int, body: bytes) -> Error:
        """The error of a response that is not a 200."""
        try:
            details = json.loads(body)["error"]
            return Error(status, details["code"], details["message"], details)
        except (ValueError, KeyError, TypeError):
            return Error(status, "", f"the server answered {status}, but not as Weir does", {})
