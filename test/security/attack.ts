import type { ServerLimits } from '../../src/server/index.ts';

/** How the server of an attack is started. */
export interface ServerSetup {
  /** @default true */
  readonly auth?: boolean;
  readonly limits?: Partial<ServerLimits>;
  /** An operation that `authorize` refuses. */
  readonly refused?: string;
  /** Also defines an agent `tooled` with the tools of a hostile MCP server. */
  readonly hostileMcp?: boolean;
}

/** What the server held at one moment, after garbage collection and with nothing under way. */
export interface Held {
  readonly heapBytes: number;
  /** Open files and sockets. */
  readonly handles: number;
  /** Running intervals of the server and the app. */
  readonly timers: number;
}

/** The server under attack: a process of its own. */
export interface Target {
  readonly url: string;
  readonly port: number;
  /** Waits until nothing is under way, collects garbage, and says what is held. */
  settle(): Promise<Held>;
  /** Open files and sockets, while the attack goes on. */
  handles(): Promise<number>;
  /** Calls `server.disconnect`. */
  disconnect(principal: string): Promise<number>;
}

/** What something took. */
export interface Cost {
  /** The longest time for which the event loop was blocked, in milliseconds. */
  readonly blockedMs: number;
  /** How many bytes of memory the process had at most, above what it had before. */
  readonly memoryBytes: number;
}

/** What an attack gets. */
export interface AttackContext extends Target {
  /** Notes a breach unless the condition holds. */
  check(condition: boolean, breach: string): void;
  /** Prints a figure with the result. */
  note(figure: string): void;
  /**
   * What the server takes for a call, from a clean start: sessions are deleted and garbage is collected before. A call that
   * takes more than `most` is made again, up to three times in all.
   */
  costOf(call: () => Promise<unknown>, most: Cost): Promise<Cost>;
}

/** One scripted attack. */
export interface Attack {
  readonly name: string;
  readonly setup?: ServerSetup;
  readonly limits?: {
    /** Milliseconds for which the event loop may be blocked at once. @default 100 */
    readonly blockedMs?: number;
    /** Milliseconds that 99 of 100 looks at the event loop may find it blocked. @default 50 */
    readonly blockedP99Ms?: number;
    /** Megabytes by which the memory of the process may grow. @default 300 */
    readonly memoryMb?: number;
  };
  /** Runs the attack; gives the number of requests, frames or connections. */
  run(context: AttackContext): Promise<number>;
}

/** The header of a known client. */
export const ann: Readonly<Record<string, string>> = { authorization: 'Bearer ann' };

/** A whole number from the environment. */
export function countOf(name: string, usual: number): number {
  const given = Number(process.env[name] ?? usual);
  if (Number.isInteger(given) && given > 0) return given;
  throw new Error(`${name} must be a positive whole number, not ${process.env[name]}.`);
}
