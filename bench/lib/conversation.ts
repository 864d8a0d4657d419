import type { Scale } from '../job.ts';
import { type Running, seen } from '../systems/system.ts';
import type { SampleCollector } from './samples.ts';
import { replyLength, userText } from './text.ts';

/** Runs one turn and times it; throws when the system did less than its work. */
export async function timedTurn(
  running: Running,
  session: unknown,
  turn: { readonly number: number; readonly tools: boolean },
): Promise<number> {
  const text = userText();
  const started = performance.now();
  const length = await running.turn(session, text);
  const ms = performance.now() - started;
  check('characters streamed', length, replyLength, turn.number);
  check('messages seen by the model', seen.messages, expectedMessages(turn), turn.number);
  return ms;
}

/** Runs the first turns of a new session. */
async function converse(
  running: Running,
  id: string,
  turns: number,
): Promise<{ readonly session: unknown; readonly times: readonly number[] }> {
  const session = await running.start(id);
  const times: number[] = [];
  for (let number = 1; number <= turns; number++) {
    times.push(await timedTurn(running, session, { number, tools: false }));
  }
  return { session, times };
}

/** Runs short sessions, one after the other, as long as there is time, and tells of each. */
export async function shortConversations(
  running: Running,
  options: {
    readonly id: string;
    readonly count: number;
    readonly turns: number;
    readonly budget: number;
    readonly onSession?: (times: readonly number[], session: unknown) => void;
  },
): Promise<number> {
  const { id, count, turns, budget, onSession } = options;
  const deadline = performance.now() + budget;
  let done = 0;
  while (done < count && performance.now() < deadline) {
    const { times, session } = await converse(running, `${id}${done++}`, turns);
    onSession?.(times, session);
  }
  return done;
}

/** Runs short sessions until the process is warm. */
export async function warmUp(running: Running, { warmUp }: Scale): Promise<void> {
  await shortConversations(running, {
    id: 'warm',
    count: Number.POSITIVE_INFINITY,
    turns: 12,
    budget: warmUp,
  });
}

/** Runs the sessions that the first turns are measured in; `id` tells them from those of another time. */
export async function measureFirstTurns(
  running: Running,
  id: string,
  { short, budget }: Scale,
  samples: SampleCollector,
): Promise<void> {
  await shortConversations(running, {
    id,
    count: short,
    turns: 11,
    budget: budget / 20,
    onSession(times) {
      samples.add(1, times[0] ?? Number.NaN);
      // Three turns around the tenth.
      for (const ms of times.slice(8)) samples.add(10, ms);
    },
  });
}

/** Runs a session of so many turns, or until its time is over, and tells of each. */
export async function longConversation(
  running: Running,
  options: {
    readonly id: string;
    readonly turns: number;
    readonly tools?: boolean;
    readonly budget: number;
    readonly onTurn: (turn: {
      readonly number: number;
      readonly ms: number;
      readonly session: unknown;
    }) => void | Promise<void>;
  },
): Promise<{ readonly session: unknown; readonly turns: number }> {
  const { id, turns, tools = false, budget, onTurn } = options;
  const session = await running.start(id);
  const deadline = performance.now() + budget;
  let number = 0;
  while (number < turns && performance.now() < deadline) {
    number++;
    const ms = await timedTurn(running, session, { number, tools });
    await onTurn({ number, ms, session });
  }
  return { session, turns: number };
}

/**
 * Whether a turn is one of those that stand for turn `length`: its last twenty, as a single one may fall on a collection of
 * garbage or on a busy moment of the machine.
 */
export function standsFor(length: number, number: number): boolean {
  const window = length >= 100 ? 20 : 1;
  return number > length - window && number <= length;
}

// A plain turn adds a message of each side; with a tool, also the request and its result.
function expectedMessages({
  number,
  tools,
}: {
  readonly number: number;
  readonly tools: boolean;
}): number {
  return tools ? 4 * number - 1 : 2 * number - 1;
}

function check(what: string, found: number, expected: number, turn: number): void {
  if (found === expected) return;
  throw new Error(`Turn ${turn}: expected ${expected} ${what}, found ${found}.`);
}
