import { WaymarkError } from '../core/error.ts';
import type { JsonObject } from '../core/json/json.ts';
import type { Clock } from '../core/time/clock.ts';
import type { ToolRequestPart } from '../protocol/message.ts';

/** What happens to a tool call that gets no answer before its deadline. */
export type OnExpiry = 'decline' | 'fail';

/** Until when a tool call waits for the answer of a person. Without `expiresIn` and `expiresAt` it waits forever. */
export interface InterruptDeadline {
  /** Milliseconds from now. */
  readonly expiresIn?: number;
  /** A point in time, instead of `expiresIn`. */
  readonly expiresAt?: Date;
  /**
   * `decline`: the turn continues, and the model reads that there was no answer. `fail`: the turn fails with
   * `DEADLINE_EXCEEDED`.
   * @default 'decline'
   */
  readonly onExpiry?: OnExpiry;
}

/** A deadline as it is stored with the request that waits. */
export function deadlineMetadata(
  { expiresIn, expiresAt, onExpiry }: InterruptDeadline,
  clock: Clock,
): JsonObject {
  if (expiresIn === undefined && expiresAt === undefined) return {};
  const time = expiresAt?.getTime() ?? clock.now() + Number(expiresIn);
  if (!(Math.abs(time) <= latestTime) || (expiresIn !== undefined && !(expiresIn > 0))) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      'The deadline of an interrupt must be a positive number of milliseconds (`expiresIn`) or a valid date (`expiresAt`).',
    );
  }
  return {
    expiresAt: new Date(time).toISOString(),
    ...(onExpiry === 'fail' && { onExpiry }),
  };
}

/**
 * The deadline of requests that are answered together, as milliseconds: the latest of theirs. `undefined` if one of them waits
 * forever.
 */
export function latestDeadline(requests: readonly ToolRequestPart[]): number | undefined {
  const times = requests.map(({ metadata }) => Date.parse(String(metadata?.expiresAt)));
  const latest = Math.max(...times);
  return Number.isFinite(latest) ? latest : undefined;
}

/** The deadline of a call that waits for these requests. */
export function deadlineOf(requests: readonly ToolRequestPart[]): InterruptDeadline {
  const latest = latestDeadline(requests);
  if (latest === undefined) return {};
  const fails = requests.some(({ metadata }) => metadata?.onExpiry === 'fail');
  return { expiresAt: new Date(latest), ...(fails && { onExpiry: 'fail' }) };
}

/** The latest time that a date can have. */
const latestTime = 8.64e15;
