// As V8 and JavaScriptCore say it.
const frozen =
  /object is not extensible|object that is not extensible|read.?only property|(Cannot|Unable to) delete property/i;
const advice =
  'Values read from the session are frozen: to change the custom state, use session.updateCustom((draft) => …).';

/** Adds to the engine's error for a change of a frozen value how the state of a session is changed. */
export function adviseFrozen(error: unknown): void {
  if (!(error instanceof TypeError) || !frozen.test(error.message)) return;
  const { message, stack } = error;
  if (message.endsWith(advice)) return;
  error.message = `${message.replace(/\.$/, '')}. ${advice}`;
  if (stack !== undefined) error.stack = stack.replace(message, () => error.message);
}
