from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class Event:
    """An event in the form of its record on the topic of a stream."""

    stream: str
    event: Mapping[str, Any]


@dataclass(frozen=True)
class Record:
    """The position at which a producer has written an event."""

    topic: str
    partition: int
    offset: int
    timeout: float | None = None
    """Seconds that the answer waits for it, 0.1 if None; at most half of the server's time for a question."""


def encode(
    features: Iterable[str] | None,
    service: str | None,
    entities: Iterable[Mapping[str, Any]],
    at: datetime | int | None,
    members: Iterable[Any] | Mapping[str, Iterable[Any]] | None,
    pending: Iterable[Event] | None,
    event: Event | None,
    wait_for: Record | None,
) -> bytes:
    """Returns the body of a question."""
    question: dict[str, Any] = {"entities": list(entities)}
    if isinstance(features, str):
        raise TypeError("features is a list of names, not one name")
    if features is not None:
        question["features"] = list(features)
    if service is not None:
        question["service"] = service
    if at is not None:
        question["at"] = at
    if members is not None:
        question["members"] = {k: _values(v) for k, v in members.items()} if isinstance(members, Mapping) else _values(members)
    if pending is not None:
        question["pending"] = [{"stream": p.stream, "event": p.event} for p in pending]
    if event is not None:
        question["event"] = {"stream": event.stream, "event": event.event}
    if wait_for is not None:
        record: dict[str, Any] = {"topic": wait_for.topic, "partition": wait_for.partition, "offset": wait_for.offset}
        if wait_for.timeout is not None:
            record["timeout_ms"] = int(wait_for.timeout * 1000)
        question["wait_for"] = record
    return _dump(question).encode()


def _values(members: Iterable[Any]) -> list[Any]:
    if isinstance(members, (str, bytes)):  # whose items are its letters
        raise TypeError("members is a list of values, not one value")
    return list(members)


def _dump(value: Any) -> str:
    """Encodes JSON. Decimals keep their digits, and datetimes become milliseconds since 1970."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(str(k))}:{_dump(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple, set, frozenset)):
        return "[" + ",".join(map(_dump, value)) + "]"
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"{value} is not a JSON number")
        return format(value, "f")
    if isinstance(value, datetime):
        return str(milliseconds(value))
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a JSON number")
    return json.dumps(value)


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def milliseconds(moment: datetime) -> int:
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone: say which, such as datetime.now(timezone.utc)")
    return (moment - _EPOCH) // timedelta(milliseconds=1)
