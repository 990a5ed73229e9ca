package io.github.weirstream.client;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Instant;
import java.util.List;

/**
 * What is answered of one feature. Times are those of events.
 *
 * @param value a number, a text, a bool, or lists and objects of them; a null node where there is none, never null.
 *     Numbers have all their digits ({@link JsonNode#decimalValue}).
 * @param from the first millisecond that the value covers; null for a lifetime
 * @param to the last millisecond that the value covers
 * @param exact whether the value is exactly that of the events in the window
 * @param standardError the relative standard error of an estimate, else 0
 * @param relativeError how far off the value may lie at the most, as a share of it
 * @param falsePositiveRate the probability at the most with which a value that was not met is said to have been
 * @param uncertain how much greater than stated the value may be
 * @param capped whether more was met than the feature keeps
 * @param completeSince from when on the state holds all events; null: all there ever were
 * @param oldest with OUTSIDE_MAX_AGE the oldest moment that can be asked for, else null
 * @param members whether the entity has met the members that the question names, in their order; value is a null node and
 *     status UNKNOWN then, for each member has its own
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
    Instant completeSince,
    Instant oldest,
    List<Member> members) {

  /** Whether a value was met. */
  public record Member(JsonNode member, boolean met, Status status) {}

  /**
   * Whether the value is that of its whole window: a rule may use it. What is not known must not be taken for a 0, which
   * approves.
   */
  public boolean isKnown() {
    return status == Status.PRESENT || status == Status.NULL_VALUE || status == Status.NOT_FOUND;
  }
}
