import { isWaymarkError, messageOf, originalOf } from './error.ts';

/** Causes and aggregated errors that are followed; chains may be circular. */
const maxCauses = 8;

/**
 * Something thrown as text for the owner of the process: type, message and stack, followed by its causes. Never for a
 * remote client.
 */
export function errorText(thrown: unknown): string {
  return textOf(thrown, maxCauses);
}

/** The error that was thrown first: below the errors of this package that say where it happened. */
export function rootOf(thrown: unknown): unknown {
  let root = originalOf(thrown);
  for (let left = maxCauses; left > 0; left--) {
    if (!isWaymarkError(root) || root.cause === undefined) break;
    root = originalOf(root.cause);
  }
  return root;
}

function textOf(thrown: unknown, left: number): string {
  const error = originalOf(thrown);
  if (!(error instanceof Error)) return messageOf(error);
  const { cause } = error;
  const inner = error instanceof AggregateError ? error.errors.slice(0, maxCauses) : [];
  // A cause that is no error says nothing more where the message has its text.
  const isTold = !(cause instanceof Error) && error.message.includes(messageOf(cause));
  const causes = left === 0 ? [] : [...(cause === undefined || isTold ? [] : [cause]), ...inner];
  return [
    ownText(error, cause instanceof Error),
    ...causes.map((each) => `Caused by: ${textOf(each, left - 1)}`),
  ].join('\n');
}

// Where an error of this package wraps another one, the other's stack is the one that leads to the fault.
function ownText(error: Error, isWrapper: boolean): string {
  const head = `${error.name}: ${error.message}`;
  if (isWaymarkError(error)) {
    const own = `${error.name} ${error.status}: ${error.message}`;
    return isWrapper ? own : `${own}${framesOf(error, head)}`;
  }
  return `${head}${framesOf(error, head)}`;
}

function framesOf({ stack = '' }: Error, head: string): string {
  if (stack.startsWith(head)) return stack.slice(head.length);
  // The message was changed after the error was made, or the engine writes stacks without it.
  const at = stack.search(/^\s+at /m);
  return at < 0 ? '' : `\n${stack.slice(at).replace(/^\n/, '')}`;
}
