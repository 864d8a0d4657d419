import { WaymarkError } from '../core/error.ts';

/** Something is sent after the end. */
export function closed(): WaymarkError {
  return new WaymarkError(
    'FAILED_PRECONDITION',
    'The connection is closed: open another with streamBidi to send more.',
  );
}

/** The line was cut, and what was lost with it cannot be told. */
export function cutOff(): WaymarkError {
  return new WaymarkError(
    'UNAVAILABLE',
    'The connection was cut, and what was sent last may or may not have been taken. Look at the session first.',
  );
}

/** The connection ended by itself, and left something out. */
export function notRun(): WaymarkError {
  return new WaymarkError(
    'FAILED_PRECONDITION',
    'The connection ended before this input was taken.',
  );
}
