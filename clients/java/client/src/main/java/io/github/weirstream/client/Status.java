package io.github.weirstream.client;

/** What a value is based on. */
public enum Status {
  /** Computed from events in the window. */
  PRESENT,
  /** There are events in the window, but no value. */
  NULL_VALUE,
  /** No event in the window: the neutral value, such as 0 of a count. */
  NOT_FOUND,
  /** Computed from the window's events since {@link Feature#completeSince} only: the feature is younger than its window. */
  INCOMPLETE,
  /** The moment lies in the past, and the value may count events after it. */
  LATER_EVENTS,
  /** The feature reads the event in hand, and the question has none: there is no value. */
  NO_EVENT,
  /** The moment is older than the state that is kept. */
  OUTSIDE_MAX_AGE,
  /** The part of the store that holds the entity does not answer: there is no value. Ask again later. */
  UNAVAILABLE,
  /** The state of the entity cannot be read: there is no value until an operator repairs it. */
  DAMAGED,
  /** A status of a later server that this client does not know: treat it as no value. */
  UNKNOWN;

  /** Whether a value covers its whole window and nothing after it. */
  boolean isKnown() {
    return this == PRESENT || this == NULL_VALUE || this == NOT_FOUND;
  }

  static Status of(String wire) {
    for (Status status : values()) {
      if (status.name().equals(wire)) {
        return status;
      }
    }
    return UNKNOWN;
  }
}
