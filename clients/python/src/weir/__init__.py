"""Ask a Weir server for features, as a rule engine or a notebook does.

    import weir

    with weir.Client("http://localhost:8080", timeout=0.1) as client:
        keys = {"user_id": "u000001", "device_id": "d000001", "card_id": "c000001"}
        answer = client.query(service="payment_risk", entities=[keys])
        spent = answer.results[0]["user_amount_1d"]
        if not spent.known:
            ...  # decide without it: it is not 0
        elif spent.value is not None and spent.value > 10_000:
            ...

`AsyncClient` does the same for asyncio and trio; `Client.frame` asks about the entities of a pandas DataFrame.
"""

from ._answer import Answer, Feature, Member, PendingOutcome, Result, Status
from ._client import AsyncClient, Client
from ._errors import Error, Unreachable, WeirError
from ._question import Event, Record
from ._retry import Retries

__all__ = [
    "Answer",
    "AsyncClient",
    "Client",
    "Error",
    "Event",
    "Feature",
    "Member",
    "PendingOutcome",
    "Record",
    "Result",
    "Retries",
    "Status",
    "Unreachable",
    "WeirError",
]
