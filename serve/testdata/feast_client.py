"""Asks servers, whose addresses are the arguments, with Feast's own client, and
prints what its users get, one line of JSON for each question."""

import json
import sys
import tempfile
from datetime import timedelta

from feast import Entity, FeatureService, FeatureStore, FeatureView, Field, FileSource, RepoConfig, ValueType
from feast.protos.feast.types.EntityKey_pb2 import EntityKey
from feast.protos.feast.types.Value_pb2 import Value
from feast.types import Float64, Int64

folder = tempfile.mkdtemp()
device = Entity(name="device", join_keys=["device_id"], value_type=ValueType.STRING)
source = FileSource(path=folder + "/none.parquet", timestamp_field="event_timestamp")
view = FeatureView(
    name="device_stats",
    entities=[device],
    ttl=timedelta(days=7),
    schema=[Field(name="device_tx_7d", dtype=Int64), Field(name="device_amount_7d", dtype=Float64)],
    source=source,
)
unknown = FeatureView(
    name="unknown_stats", entities=[device], ttl=timedelta(days=7), schema=[Field(name="device_tx_8d", dtype=Int64)], source=source
)
service = FeatureService(name="device_risk", features=[view])
names = ["device_stats:device_tx_7d", "device_stats:device_amount_7d"]
rows = [{"device_id": "d1"}, {"device_id": "nobody"}]
keys = [EntityKey(join_keys=["device_id"], entity_values=[Value(string_val=row["device_id"])]) for row in rows]


def show(ask):
    try:
        print(json.dumps(ask()))
    except Exception as e:
        print(json.dumps({"raised": type(e).__name__, "says": str(e)}))


def online_read(store):
    read = store._get_provider().online_store.online_read(store.config, view, keys, ["device_tx_7d", "device_amount_7d"])
    return [[at.isoformat(), {name: str(value).strip() for name, value in values.items()}] for at, values in read]


for address in sys.argv[1:]:
    store = FeatureStore(config=RepoConfig(
        project="weir",
        provider="local",
        registry=folder + "/registry.db",
        online_store={"type": "remote", "path": address, "connection_retries": 0},
        entity_key_serialization_version=3,
    ))
    store.apply([device, view, unknown, service])
    show(lambda: store.get_online_features(features=names, entity_rows=rows).to_dict())
    show(lambda: store.get_online_features(features=names, entity_rows=rows, full_feature_names=True).to_dict())
    show(lambda: store.get_online_features(features=service, entity_rows=rows).to_dict())
    show(lambda: online_read(store))
    show(lambda: store.get_online_features(features=["unknown_stats:device_tx_8d"], entity_rows=rows).to_dict())
