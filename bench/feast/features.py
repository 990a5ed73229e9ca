"""The features of users, devices and cards that BenchmarkQuestions asks Weir for, under the same names."""

from datetime import timedelta

from feast import Entity, FeatureView, Field, FileSource, ValueType
from feast.types import Float64, Int64

COUNTS = {
    "user": ["user_tx_1h", "user_tx_1d", "user_tx_7d", "user_declined_1d", "user_merchants_7d"],
    "device": ["device_tx_1h", "device_tx_7d", "device_users_30d", "device_cards_7d"],
    "card": ["card_tx_1d", "card_merchants_7d", "card_devices_7d"],
}
AMOUNTS = {
    "user": ["user_amount_1d", "user_amount_7d", "user_avg_7d", "user_max_30d"],
    "device": ["device_amount_1d", "device_max_7d"],
    "card": ["card_amount_1d", "card_amount_30d"],
}


def view(entity):
    return FeatureView(
        name=entity.name + "_stats",
        entities=[entity],
        ttl=timedelta(days=30),
        schema=[Field(name=name, dtype=Int64) for name in COUNTS[entity.name]]
        + [Field(name=name, dtype=Float64) for name in AMOUNTS[entity.name]],
        source=FileSource(path="none.parquet", timestamp_field="event_timestamp"),  # never read
    )


entities = [Entity(name=name, join_keys=[name + "_id"], value_type=ValueType.STRING) for name in COUNTS]
views = [view(entity) for entity in entities]
