import { type TurnInput, toInput } from '../api/turn-values.ts';
import { failedPrecondition, invalid, messageOf, type WaymarkError } from '../core/error.ts';
import type { JsonObject } from '../core/json/json.ts';
import { checkOptions, type OptionNames } from '../core/options.ts';
import type { Input } from '../protocol/turn.ts';

/** When a schedule starts its runs. */
export type ScheduleTimes =
  | {
      /** Five fields, to the minute: `0 7 * * 1-5`. */
      readonly cron: string;
      /** The name of the time zone that `cron` is read in. @default 'UTC' */
      readonly timeZone?: string;
      readonly every?: never;
    }
  | {
      /** Milliseconds between two runs, at least 1000: the times are its multiples since 1970, so 3_600_000 is each full hour. */
      readonly every: number;
      readonly cron?: never;
      readonly timeZone?: never;
    };

/** A schedule that starts runs of an agent in the background. */
export type Schedule = ScheduleTimes & {
  /** Identifies the schedule in the store: letters, digits, `-`, `_` and `.`. */
  readonly key: string;
  /** The agent to run, or its name. */
  readonly agent: string | { readonly name: string };
  /** The input of each run, or a function that returns it for the time that the run is for. */
  readonly input: TurnInput | ((due: Date) => TurnInput | Promise<TurnInput>);
  /** The owner of the sessions. */
  readonly owner?: string;
  /** The session that all runs continue. @default a new session for each run, named by key and time */
  readonly sessionId?: string;
  /** The context of each run. */
  readonly context?: JsonObject;
  /** Number of its runs that may be active at the same time. A time that comes while so many are active is skipped. @default 1 */
  readonly concurrency?: number;
};

/** A schedule with its next time, as `listSchedules` returns it. */
export type ScheduleInfo = ScheduleTimes & {
  readonly key: string;
  /** The name of the agent. */
  readonly agent: string;
  readonly owner?: string;
  readonly sessionId?: string;
  /** When the next run starts, as ISO 8601; in the past if no process has started it yet. Absent: the time never comes. */
  readonly nextAt?: string;
  /** The last time for which a process had to start a run. */
  readonly last?: {
    /** The time that it is for, as ISO 8601. */
    readonly due: string;
    /** The session of the run. Absent if it was not started. */
    readonly sessionId?: string;
    /** The id of the run. */
    readonly runId?: string;
    /** Why no run was started. */
    readonly error?: string;
  };
};

const optionNames: OptionNames<Schedule> = {
  key: 'text',
  cron: 'text',
  timeZone: 'text',
  every: 'number',
  agent: true,
  input: true,
  owner: 'text',
  sessionId: 'text',
  context: 'object',
  concurrency: 'number',
};

/** The input of the run for a time. */
export async function inputOf({ input }: Schedule, due: number): Promise<Input> {
  if (typeof input !== 'function') return toInput(input);
  try {
    return toInput(await input(new Date(due)));
  } catch (cause) {
    throw failedPrecondition(`Its \`input\` failed: ${messageOf(cause)}`, { cause });
  }
}

/** The first time of a schedule after another; `undefined` if there is none, as on the 31st of February. */
export async function nextTime(
  { key, cron, timeZone = 'UTC', every }: Schedule,
  after: number,
): Promise<number | undefined> {
  if (every !== undefined) return (Math.floor(after / every) + 1) * every;
  const { Cron } = await import('croner');
  try {
    const times = new Cron(cron, { mode: '5-part', paused: true, timezone: timeZone });
    return times.nextRun(new Date(after))?.getTime();
  } catch (cause) {
    throw invalid(
      `The times of schedule "${key}" are not valid: ${messageOf(cause)} \`cron\` takes five fields such as "0 7 * * 1-5", \`timeZone\` a name such as "Europe/Lisbon".`,
      { cause },
    );
  }
}

/** Refuses a schedule that cannot be right. Whether `cron` is valid is known when it is first used. */
export function checkSchedule(schedule: Schedule): void {
  checkOptions(schedule, optionNames, 'schedule()', { timezone: 'timeZone', tz: 'timeZone' });
  const {
    key,
    cron,
    every,
    timeZone,
    agent,
    input,
    concurrency = 1,
  } = schedule as Partial<Schedule>;
  if (key === undefined || !/^[\w.-]{1,128}$/.test(key)) {
    throw invalid('The `key` of a schedule must be 1 to 128 letters, digits, "-", "_" and ".".');
  }
  const wrong = (what: string): WaymarkError => invalid(`Schedule "${key}" ${what}`);
  if ((cron === undefined) === (every === undefined))
    throw wrong('needs either `cron` or `every`.');
  if (every !== undefined && !(Number.isSafeInteger(every) && every >= 1_000)) {
    throw wrong('needs `every` in milliseconds: a whole number of at least 1000.');
  }
  if (every !== undefined && timeZone !== undefined) {
    throw wrong('has a `timeZone`, which only `cron` uses.');
  }
  if (typeof nameOf(agent) !== 'string') throw wrong('needs the `agent` to run, or its name.');
  if (input === undefined) throw wrong('needs the `input` of its runs.');
  if (!(Number.isSafeInteger(concurrency) && concurrency >= 1)) {
    throw wrong('needs `concurrency` as a whole number of at least 1.');
  }
  if (concurrency > 1 && schedule.sessionId !== undefined) {
    throw wrong(
      'has a `sessionId`, and a session runs one turn at a time: leave `concurrency` out.',
    );
  }
}

/** The name of the agent. */
export const nameOf = (agent: Schedule['agent'] | undefined): string =>
  typeof agent === 'string' ? agent : (agent?.name as string);

/** The times of a schedule as text, to notice a change. */
export const timesOf = ({ cron, timeZone = 'UTC', every }: Schedule): string =>
  every === undefined ? `${cron} ${timeZone}` : `${every}`;

/** A time in session ids, request ids and lists. */
export const textOf = (time: number): string => new Date(time).toISOString().replace('.000Z', 'Z');
