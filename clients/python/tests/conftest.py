"""Tests against a server start one from the binary that WEIR_BINARY names; without it they are skipped."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Returns the address of a `weir demo` that has applied 2,000 events and keeps answering."""
    binary = os.environ.get("WEIR_BINARY")
    if not binary:
        pytest.skip("WEIR_BINARY names no binary of weir")
    command = [binary, "demo", "--events", "2000", "--days", "0", "--rate", "0", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    address, said = "", []
    try:
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"Open (http://\S+)", line):
                address = found[1]
            if re.match(r"2000 events,", line):
                yield address
                return
        pytest.fail(f"weir demo ended: {''.join(said)}")
    finally:
        process.terminate()
        process.wait(120)
        process.stdout.close()


def feature(**fields: object) -> dict[str, object]:
    """Returns a feature in the form that the server sends."""
    return {"value": 3, "status": "PRESENT", "from": 0, "to": 1000, "exact": True} | fields


def answer(*results: dict[str, object], **fields: object) -> bytes:
    """Returns an answer with the features of each entity."""
    return json.dumps({"at": 1000, "results": [{"entity": {}, "features": r} for r in results]} | fields).encode()
