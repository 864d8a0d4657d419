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
