package io.github.weirstream.client;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;

/**
 * The answer to a question.
 *
 * @param at the moment that the answer is about
 * @param results one for each entity, in the order of the question
 * @param pending how the pending events were read, in the order of the question
 * @param applied whether the record of {@link Question#waitFor} is in the results; false without one
 * @param nothingApplied whether it is not because no record of that partition was ever applied: perhaps there is no such
 *     partition
 * @param replica whether any of the state was read from a replica
 * @param staleness the maximum age of state read from a replica, else zero
 * @param tableLag how long before the answer, at the most, all rows were known of the tables that features look up; null if
 *     they look up none, or none that the server has read yet
 */
public record Answer(
    Instant at,
    List<Result> results,
    List<PendingOutcome> pending,
    boolean applied,
    boolean nothingApplied,
    boolean replica,
    Duration staleness,
    Duration tableLag) {

  /**
   * The features of one entity.
   *
   * @param entity as it was sent
   * @param features by name
   */
  public record Result(JsonNode entity, Map<String, Feature> features) {

    /**
     * Returns one of the features.
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
   * How a pending event was read.
   *
   * @param deduplicated whether it counts only once if it has been applied meanwhile
   * @param met when the record that already has the event's ID was written, to the second: the earliest that the entities
   *     asked about remember; null if none does. They do not count the event again. If it is long before its time, the
   *     ID may have been reused for another event
   * @param late whether it came too late for some features, which do not count it
   * @param uncounted whether no answer counts it: it is of other entities than those asked about, or no feature selects it
   */
  public record PendingOutcome(String stream, Instant time, boolean deduplicated, Instant met, boolean late, boolean uncounted) {}
}
