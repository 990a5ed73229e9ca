package io.github.weirstream.client;

/** Why there is no answer: {@link Refused}, or no connection, no time, or no answer of Weir's. */
public class WeirException extends RuntimeException {
  private static final long serialVersionUID = 1;

  WeirException(String message, Throwable cause) {
    super(message, cause);
  }

  /** The server has refused the question, or failed to answer it. */
  public static final class Refused extends WeirException {
    private static final long serialVersionUID = 1;

    private final int status;
    private final String code;
    private final String feature;
    private final String key;
    private final Integer entity;
    private final Integer event;
    private final String reason;
    private final String path;
    private final String nearest;

    Refused(int status, Wire.Error e) {
      super(e.code() == null ? e.message() : e.message() + " (" + e.code() + ")", null);
      this.status = status;
      this.code = e.code() == null ? "" : e.code();
      this.feature = e.feature();
      this.key = e.key();
      this.entity = e.entity();
      this.event = e.event();
      this.reason = e.reason();
      this.path = e.path();
      this.nearest = e.nearest();
    }

    /** Of HTTP. From 500 on the question may be right, and another attempt may succeed. */
    public int status() {
      return status;
    }

    /** What went wrong, for programs, such as unknown_feature; empty where it was not Weir that answered. */
    public String code() {
      return code;
    }

    /** The feature concerned, or null. */
    public String feature() {
      return feature;
    }

    /** The key concerned, of the question or of an entity, or null. */
    public String key() {
      return key;
    }

    /** Index in the question's entities, or null. */
    public Integer entity() {
      return entity;
    }

    /** Index in the question's pending events, or null. */
    public Integer event() {
      return event;
    }

    /** For which a pending event would be a dead letter, or null. */
    public String reason() {
      return reason;
    }

    /** Where in the event, with dots, or null. */
    public String path() {
      return path;
    }

    /** The name that was perhaps meant, or null. */
    public String nearest() {
      return nearest;
    }
  }
}
