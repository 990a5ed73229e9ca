package io.github.weirstream.client;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;

/**
 * Answers a question.
 *
 * @param at the moment answered for
 * @param results of the entities, in their order
 * @param pending what the pending events were taken for, in their order
 * @param applied whether the record of {@link Question#waitFor} is in the results; false too without one
 * @param replica whether any of the state was read from a replica
 * @param staleness how old the state may be that was read from a replica, else zero
 */
public record Answer(
    Instant at, List<Result> results, List<PendingOutcome> pending, boolean applied, boolean replica, Duration staleness) {

  /**
   * What is answered of one entity.
   *
   * @param entity as it was sent
   * @param features by their names
   */
  public record Result(JsonNode entity, Map<String, Feature> features) {

    /**
     * One of the features.
     *
     * @throws IllegalArgumentException if the question did not ask for it
     */
    public Feature feature(String name) {
      Feature feature = features.get(name);
      if (feature == null) {
        throw new IllegalArgumentException("the question did not ask for " + name + ", only for " + features.keySet());
      }
      return feature;
    }
  }

  /**
   * What a pending event was taken for.
   *
   * @param deduplicated whether it was not counted again if it has arrived meanwhile
   * @param late whether it came too late for some features, which do not count it
   */
  public record PendingOutcome(String stream, Instant time, boolean deduplicated, boolean late) {}
}
