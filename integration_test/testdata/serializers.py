"""Registers schemas and produces payments with Confluent's own serializers.

usage: serializers.py BROKERS REGISTRY first|second
"""

import sys
import time
from decimal import Decimal

from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

brokers, url, phase = sys.argv[1:]
registry = SchemaRegistryClient({"url": url})
producer = Producer({"bootstrap.servers": brokers})
now = int(time.time() * 1000)

FIELDS = """{"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}, {"name": "user", "type": "string"},
  {"name": "amount", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]}"""
AVRO = '{"type": "record", "name": "Payment", "fields": [%s]}' % FIELDS
LATER = '{"type": "record", "name": "Payment", "fields": [{"name": "note", "type": ["null", "string"], "default": null}, %s]}' % FIELDS
JSON = '{"title": "Payment", "type": "object", "properties": {"at": {"type": "integer"}, "user": {"type": "string"}, "amount": {"type": "number"}}}'


def message_class():
    """Payment, which imports the file of its amount and a type that comes with protoc."""
    field = descriptor_pb2.FieldDescriptorProto
    money = descriptor_pb2.FileDescriptorProto(name="money.proto", package="shop", syntax="proto3")
    one = money.message_type.add(name="Money")
    one.field.add(name="value", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL, json_name="value")
    file = descriptor_pb2.FileDescriptorProto(name="payment.proto", package="shop", syntax="proto3", dependency=["money.proto", "google/protobuf/timestamp.proto"])
    one = file.message_type.add(name="Payment")
    one.field.add(name="user", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL, json_name="user")
    one.field.add(name="amount", number=2, type=field.TYPE_MESSAGE, type_name=".shop.Money", label=field.LABEL_OPTIONAL, json_name="amount")
    one.field.add(name="at", number=3, type=field.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp", label=field.LABEL_OPTIONAL, json_name="at")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    for f in (money, file):
        pool.Add(f)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Payment"))


def payment(kind):
    p = kind(user="u1", amount={"value": "0.10"})
    p.at.seconds, p.at.nanos = now // 1000, now % 1000 * 1_000_000
    return p


def produce(topic, serializer, value, times):
    for _ in range(times):
        producer.produce(topic, serializer(value, SerializationContext(topic, MessageField.VALUE)))


if phase == "first":
    produce("avro", AvroSerializer(registry, AVRO), {"at": now, "user": "u1", "amount": Decimal("0.10")}, 10)
    kind = message_class()
    produce("protobuf", ProtobufSerializer(kind, registry, {"use.deprecated.format": False}), payment(kind), 10)
    produce("json", JSONSerializer(JSON, registry), {"at": now, "user": "u1", "amount": 0.1}, 10)
else:
    produce("avro", AvroSerializer(registry, LATER), {"at": now, "user": "u1", "amount": Decimal("0.10"), "note": None}, 5)
    produce("json", JSONSerializer(JSON, registry), {"at": now, "user": "u1", "amount": 0.1}, 5)
if producer.flush(30) > 0:
    sys.exit("not all was produced")
