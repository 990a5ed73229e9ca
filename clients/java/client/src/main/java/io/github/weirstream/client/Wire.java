package io.github.weirstream.client;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.NullNode;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The bodies of requests and responses. */
final class Wire {
  private static final ObjectMapper JSON =
      JsonMapper.builder()
          .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
          .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES) // a later server may send more
          .disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
          .build();

  private Wire() {}

  record Failure(Error error) {}

  record Error(
      String code, String message, String feature, String key, Integer entity, Integer event, String reason, String path, String nearest) {}

  private record Body(
      Long at,
      List<Result> results,
      List<Pending> pending,
      Waited waited,
      @JsonProperty("read_from") String readFrom,
      @JsonProperty("staleness_ms") long staleness,
      @JsonProperty("table_lag_ms") Long tableLag) {}

  private record Result(JsonNode entity, Map<String, Value> features) {}

  private record Pending(String stream, Long time, boolean deduplicated, Long met, boolean late, boolean uncounted) {}

  private record Waited(boolean applied, @JsonProperty("nothing_applied") boolean nothingApplied) {}

  private record Member(JsonNode member, Boolean value, String status) {}

  private record Value(
      JsonNode value,
      String status,
      Long from,
      Long to,
      boolean exact,
      @JsonProperty("standard_error") double standardError,
      @JsonProperty("relative_error") double relativeError,
      @JsonProperty("false_positive_rate") double falsePositiveRate,
      long uncertain,
      boolean capped,
      @JsonProperty("later_events") boolean laterEvents,
      @JsonProperty("complete_since") Long completeSince,
      @JsonProperty("complete_at") Long completeAt,
      Double filled,
      Long oldest,
      List<Member> members) {

    Feature read() {
      return new Feature(
          value == null ? NullNode.instance : value,
          Status.of(status),
          moment(from),
          moment(to),
          exact,
          standardError,
          relativeError,
          falsePositiveRate,
          uncertain,
          capped,
          laterEvents,
          moment(completeSince),
          moment(completeAt),
          filled,
          moment(oldest),
          members == null
              ? List.of()
              : members.stream().map(m -> new Feature.Member(m.member(), m.value(), Status.of(m.status()))).toList());
    }
  }

  static byte[] encode(Question question) {
    try {
      return JSON.writeValueAsBytes(question);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("the question cannot be written: " + e.getOriginalMessage(), e);
    }
  }

  static Answer answer(byte[] body, int entities) {
    Body wire;
    try {
      wire = JSON.readValue(body, Body.class);
    } catch (IOException e) {
      throw new WeirException("the answer cannot be read: " + e.getMessage(), e);
    }
    if (wire == null || wire.at == null || wire.results == null) {
      throw new WeirException("the answer cannot be read: it lacks at or results", null);
    }
    if (wire.results.size() != entities) {
      throw new WeirException(
          entities + " entities were asked about, but " + wire.results.size() + " are answered", null);
    }
    return new Answer(
        moment(wire.at),
        wire.results.stream().map(Wire::result).toList(),
        wire.pending == null
            ? List.of()
            : wire.pending.stream()
                .map(p -> new Answer.PendingOutcome(p.stream, moment(p.time), p.deduplicated, moment(p.met), p.late, p.uncounted))
                .toList(),
        wire.waited != null && wire.waited.applied,
        wire.waited != null && wire.waited.nothingApplied,
        "replica".equals(wire.readFrom),
        Duration.ofMillis(wire.staleness),
        wire.tableLag == null ? null : Duration.ofMillis(wire.tableLag));
  }

  private static Answer.Result result(Result wire) {
    if (wire == null || wire.features == null || wire.features.containsValue(null)) {
      throw new WeirException("the answer cannot be read: a result lacks features", null);
    }
    Map<String, Feature> features = new LinkedHashMap<>();
    wire.features.forEach((name, value) -> features.put(name, value.read()));
    return new Answer.Result(wire.entity, features);
  }

  /** Returns the error of a response other than 200. */
  static WeirException.Refused refusal(int status, byte[] body) {
    try {
      Failure failure = JSON.readValue(body, Failure.class);
      if (failure != null && failure.error != null && failure.error.code != null) {
        return new WeirException.Refused(status, failure.error);
      }
    } catch (IOException e) {
      // The response is not Weir's, but that of a proxy or another server.
    }
    String message = "the server answered " + status + ", but not as Weir does";
    return new WeirException.Refused(status, new Error(null, message, null, null, null, null, null, null, null));
  }

  private static Instant moment(Long ms) {
    return ms == null ? null : Instant.ofEpochMilli(ms);
  }
}
