"""Writes confluent.json: records as confluent-kafka's own serializers write them 
(pip install 'confluent-kafka[avro,json,protobuf,schemaregistry]' grpcio-tools)."""
import datetime
import decimal
import json
import pathlib
import sys
import tempfile
import uuid

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import SerializationContext, MessageField
import confluent_kafka
import grpc_tools.protoc
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.schema_registry._sync.mock_schema_registry_client import MockSchemaRegistryClient
c = MockSchemaRegistryClient({'url': 'mock://'})
ctx = SerializationContext('payments', MessageField.VALUE)
avro1 = json.dumps({"type":"record","name":"Payment","namespace":"shop","fields":[
 {"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}},
 {"name":"user","type":["null","string"],"default":None},
 {"name":"amount","type":["null",{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}],"default":None},
 {"name":"score","type":"double"},{"name":"small","type":"float"},{"name":"ok","type":"boolean"},
 {"name":"status","type":{"type":"enum","name":"Status","symbols":["OPEN","PAID"]}},
 {"name":"id","type":{"type":"string","logicalType":"uuid"}},
 {"name":"day","type":{"type":"int","logicalType":"date"}},
 {"name":"tags","type":{"type":"map","values":"string"}},
 {"name":"items","type":{"type":"array","items":{"type":"record","name":"Item","fields":[{"name":"sku","type":"string"},{"name":"n","type":"int"}]}}},
 {"name":"place","type":["null",{"type":"record","name":"Place","fields":[{"name":"lat","type":"double"},{"name":"lon","type":"double"}]}],"default":None}]})
avro2 = avro1.replace('"name": "ok", "type": "boolean"', '"name": "ok", "type": ["null", "boolean"]')
events = [
 dict(at=datetime.datetime(2026,1,31,23,59,59,999000,tzinfo=datetime.timezone.utc),user="ä",amount=decimal.Decimal("-12.30"),score=0.1,small=0.25,ok=True,status="PAID",
      id=uuid.UUID("12345678-9abc-def0-0102-030405060708"),day=datetime.date(2026,1,31),tags={"color":"red","x":"y"},items=[{"sku":"a","n":-1},{"sku":"b","n":70000}],place={"lat":-90.0,"lon":180.0}),
 dict(at=datetime.datetime(1969,12,31,23,59,59,tzinfo=datetime.timezone.utc),user=None,amount=decimal.Decimal("9999999999.99"),score=-1e300,small=-0.5,ok=False,status="OPEN",
      id=uuid.UUID("00000000-0000-0000-0000-000000000000"),day=datetime.date(1969,12,31),tags={},items=[],place=None)]
out = {"serializer": "confluent-kafka " + confluent_kafka.__version__, "schemas": {}, "avro": [], "json_schema": []}
for schema in (avro1, avro2):
    s = AvroSerializer(c, schema)
    for e in events:
        b = s(e, ctx)
        out["avro"].append(b.hex())
        out["schemas"][str(int.from_bytes(b[1:5],'big'))] = schema
js = JSONSerializer(json.dumps({"title":"Payment","type":"object","properties":{"at":{"type":"integer"},"user":{"type":"string"}}}), c)
out["json_schema"].append(js({"at": 5, "user": "ä"}, SerializationContext('json', MessageField.VALUE)).hex())

PROTO = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Other { string x = 1; }
message Shop {
  message Payment {
    google.protobuf.Timestamp at = 1;
    string id = 2;
    google.protobuf.StringValue user = 3;
    double score = 4;
    enum Status { OPEN = 0; PAID = 1; }
    Status status = 5;
    map<string, string> tags = 6;
    repeated int32 items = 7;
    oneof with { string card = 8; int64 account = 9; }
    sint64 delta = 10;
  }
}
"""
with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "shop.proto").write_text(PROTO)
    include = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    assert grpc_tools.protoc.main(["", f"-I{folder}", f"-I{include}", f"--python_out={folder}", str(pathlib.Path(folder, "shop.proto"))]) == 0
    sys.path.insert(0, folder)
    import shop_pb2
messages = [
    shop_pb2.Shop.Payment(id="p1", user={"value": "ä"}, score=0.1, status="PAID", tags={"color": "red", "x": "y"}, items=[1, -1, 70000], account=5, delta=-3),
    shop_pb2.Shop.Payment(id="p2", card=""),
    shop_pb2.Other(x="y"),
]
messages[0].at.FromDatetime(datetime.datetime(2026, 1, 31, 23, 59, 59, 999000))
messages[1].at.FromSeconds(-1)
out["protobuf"], out["proto"] = [], PROTO
for i, m in enumerate(messages):
    s = ProtobufSerializer(type(m), c, {"use.deprecated.format": False})
    out["protobuf"].append(s(m, SerializationContext(f"protobuf{i}", MessageField.VALUE)).hex())
with open("confluent.json", "w") as f:
    json.dump(out, f, indent=1)
    f.write("\n")
