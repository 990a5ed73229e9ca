package io.github.weirstream.client;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;

/**
 * Asks for features of entities at a moment. Jackson encodes the values; a BigDecimal keeps its digits.
 *
 * <p>One thread builds a question; many may then ask it.
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public final class Question {
  @JsonProperty private final List<String> features;
  @JsonProperty private final String service;
  @JsonProperty private final List<Map<String, ?>> entities = new ArrayList<>();
  @JsonProperty private Long at;
  @JsonProperty private Object members;
  @JsonProperty private List<Event> pending;
  @JsonProperty private Event event;

  @JsonProperty("wait_for")
  private Written waitFor;

  private record Event(String stream, Object event) {}

  @JsonInclude(JsonInclude.Include.NON_NULL)
  private record Written(String topic, int partition, long offset, @JsonProperty("timeout_ms") Long timeoutMs) {}

  private Question(List<String> features, String service) {
    this.features = features;
    this.service = service;
  }

  /** Asks for features by name. */
  public static Question features(String... names) {
    return new Question(List.of(names), null);
  }

  /** Asks for the features of a service. */
  public static Question service(String name) {
    return new Question(null, name);
  }

  /** Adds an entity: the values of the keys that the features need; others are allowed. */
  public Question entity(Map<String, ?> keys) {
    entities.add(keys);
    return this;
  }

  /** The moment asked about; by default now, or the time of the latest event, pending or in hand. */
  public Question at(Instant moment) {
    at = moment.toEpochMilli();
    return this;
  }

  /** Members for all features: each answer says whether they occurred for the entity. */
  public Question members(Collection<?> values) {
    members = List.copyOf(values);
    return this;
  }

  /** Members for single features, by the features' names. */
  public Question members(Map<String, ? extends Collection<?>> values) {
    members = Map.copyOf(values);
    return this;
  }

  /** Counts an event that is not on the bus yet, in the form of its record on the topic of a stream. */
  public Question pending(String stream, Object event) {
    if (pending == null) {
      pending = new ArrayList<>();
    }
    pending.add(new Event(stream, event));
    return this;
  }

  /**
   * The event in hand, for features that read its fields: it is only looked at, and does not count. Without it the latest of
   * the pending events is in hand.
   */
  public Question event(String stream, Object event) {
    this.event = new Event(stream, event);
    return this;
  }

  /** Waits, for 100 ms, for a record that was written to Kafka. */
  public Question waitFor(String topic, int partition, long offset) {
    waitFor = new Written(topic, partition, offset, null);
    return this;
  }

  /** Waits for a record that was written to Kafka, at most for half of the server's time for a question. */
  public Question waitFor(String topic, int partition, long offset, Duration timeout) {
    waitFor = new Written(topic, partition, offset, timeout.toMillis());
    return this;
  }

  int size() {
    return entities.size();
  }
}
