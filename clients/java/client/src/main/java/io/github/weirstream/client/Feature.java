package io.github.weirstream.client;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Instant;
import java.util.List;

/**
 * The answer for one feature. Times are event times.
 *
 * @param value a number, a text, a bool, or lists and objects of them; a null node if there is none, never null.
 *     Numbers have all their digits ({@link JsonNode#decimalValue}).
 * @param from the first millisecond that the value covers; null for a lifetime
 * @param to the last millisecond that the value covers
 * @param exact whether the value is exact for the events in the window
 * @param standardError the relative standard error of an estimate, else 0
 * @param relativeError the maximum relative error of the value
 * @param falsePositiveRate the maximum probability that a value which did not occur is reported as one that did
 * @param uncertain by how much the true value may exceed the stated one
 * @param capped whether a bound of the feature left something out
 * @param laterEvents whether the value may count events after the moment, which lies in the past
 * @param completeSince the time since which the state holds all events; null if it holds all there ever were
 * @param completeAt for an INCOMPLETE answer: by when the feature is complete at the latest, without a backfill; null if that
 *     is never or unknown
 * @param filled for an INCOMPLETE answer during a backfill: the share of missing records applied so far, else null
 * @param oldest for OUTSIDE_MAX_AGE, the oldest moment that can be asked for, else null
 * @param members one result for each member that the question names, in their order; value is then a null node and status
 *     UNKNOWN, because each member has its own
 */
public record Feature(
    JsonNode value,
    Status status,
    Instant from,
    Instant to,
    boolean exact,
    double standardError,
    double relativeError,
    double falsePositiveRate,
    long uncertain,
    boolean capped,
    boolean laterEvents,
    Instant completeSince,
    Instant completeAt,
    Double filled,
    Instant oldest,
    List<Member> members) {

  /**
   * Whether a value occurred.
   *
   * @param met null if it is unknown
   */
  public record Member(JsonNode member, Boolean met, Status status) {}

  /**
   * Whether the value covers its whole window and nothing after it, so that a rule may use it. An unknown value must not count as 0, which would
   * approve.
   *
   * <p>A known value may be null, such as an average without events. Jackson reads a null node as 0: ask
   * {@link JsonNode#isNumber} first.
   */
  public boolean isKnown() {
    return status == Status.PRESENT || status == Status.NULL_VALUE || status == Status.NOT_FOUND;
  }
}
