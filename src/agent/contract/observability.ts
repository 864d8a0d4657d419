/** Where an app logs. A `pino` logger fits as it is. */
export interface Logger {
  /** One line per turn. */
  info(fields: object, message: string): void;
  /** One line per failure. */
  error(fields: object, message: string): void;
  /** One line per run that is taken over from a worker that died. */
  warn?(fields: object, message: string): void;
  /** One line per model call. */
  debug?(fields: object, message: string): void;
}

/** Writes a line. A logger that fails must not fail a turn. */
export function writeLog(
  logger: Logger | undefined,
  level: keyof Logger,
  fields: object,
  message: string,
): void {
  try {
    logger?.[level]?.(fields, message);
  } catch {}
}

/** Options for the content of traces, besides ids, names and counts. */
export interface TelemetryOptions {
  /**
   * Adds messages, and arguments and results of tools, to spans, as the agent's `transform` shows them to clients.
   * @default OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true in the environment
   */
  readonly content?: boolean;
  /** Adds the owner as `user.id`. @default false */
  readonly userId?: boolean;
}

export function telemetryOptions({ content, userId }: TelemetryOptions = {}): TelemetryOptions {
  const { env } = globalThis.process ?? {};
  const isOn = env?.OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT === 'true';
  return { content: content ?? isOn, userId: userId ?? false };
}
