"""Prints events with Confluent's own deserializer for Avro, one a line.

usage: deserializer.py BROKERS REGISTRY TOPIC COUNT
"""

import sys

from confluent_kafka import DeserializingConsumer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer

brokers, url, topic, count = sys.argv[1:]
consumer = DeserializingConsumer({
    "bootstrap.servers": brokers, "group.id": "deserializer", "auto.offset.reset": "earliest", "enable.auto.commit": False,
    "value.deserializer": AvroDeserializer(SchemaRegistryClient({"url": url})),
})
consumer.subscribe([topic])
for _ in range(int(count)):
    message = consumer.poll(60)
    if message is None:
        sys.exit("no further event came")
    value = message.value()
    spent, amounts = value["features"]["avro_spent"], value["features"]["amounts"]
    print(value["event"]["user"], value["event"]["amount"], spent["value"], spent["status"], spent["exact"],
          [(str(a["value"]), a["count"]) for a in amounts["value"]], amounts["status"])
consumer.close()
