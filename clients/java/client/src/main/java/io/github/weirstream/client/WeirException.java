package io.github.weirstream.client;

/** The reason for no answer: {@link Refused}, a failed connection, a timeout, or a response that is not Weir's. */
public class WeirException extends RuntimeException {
  private static final long serialVersionUID = 1;

  WeirException(String message, Throwable cause) {
    super(message, cause);
  }

  /** The server refused the question or failed to answer it. */
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

    /** The HTTP status. From 500 on the question may be valid, and another attempt may succeed. */
    public int status() {
      return status;
    }

    /** The error code, such as unknown_feature; empty if the response is not Weir's. */
    public String code() {
      return code;
    }

    /** The feature concerned, or null. */
    public String feature() {
      return feature;
    }

    /** The key concerned, in the question or in an entity, or null. */
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

    /** The reason for which a pending event would be a dead letter, or null. */
    public String reason() {
      return reason;
    }

    /** The dotted path in the event, or null. */
    public String path() {
      return path;
    }

    /** The name that was probably meant, or null. */
    public String nearest() {
      return nearest;
    }
  }
}
