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
 *     UNKNOWN, because each member has its own: see {@link Member#isKnown}
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
   * Whether a value occurred. Each member has a status of its own.
   *
   * @param met null if it is unknown, so that a condition with it throws: ask {@link #isKnown} first
   */
  public record Member(JsonNode member, Boolean met, Status status) {
    /**
     * Whether it is known if the value occurred: met is not null, and covers the whole window and nothing after it. A member
     * that is not known is not one that never occurred.
     */
    public boolean isKnown() {
      return met != null && status.isKnown();
    }
  }

  /**
   * Whether the value covers its whole window and nothing after it, so that a rule may use it: the status is PRESENT,
   * NULL_VALUE or NOT_FOUND. A feature with members is known if all of them are.
   *
   * <p>Never take what is not known for 0, which approves. INCOMPLETE and LATER_EVENTS come with a value, but events are
   * missing from it, or too many in it. A known value may be null, such as an average without events. Jackson reads a null
   * node as 0: ask {@link JsonNode#isNumber} first.
   */
  public boolean isKnown() {
    return members.isEmpty() ? status.isKnown() : members.stream().allMatch(Member::isKnown);
  }
}
