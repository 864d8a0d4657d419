import type { Client } from 'pg';
import { createKeyedEmitter, type KeyedEmitter } from '../../core/async/emitter.ts';
import { inGroups } from '../../core/async/groups.ts';
import { after, backoff, type Clock } from '../../core/time.ts';
import { type Hint, hintKey } from '../sql/database/driver.ts';
import { quoteName } from './dialect.ts';

// In case a notification was lost with its connection.
const pollInterval = 1000;
const reconnectDelays = { baseMs: 50, maxMs: 2000 };
// Most subscriptions are short; a connection for each would cost more than the notifications.
const lingerMs = 5000;

interface Options {
  readonly clock: Clock;
  readonly channel: string;
  /** The sender id of this process: its own hints are delivered locally. */
  readonly sender: string;
  /** Makes the connection; `undefined` where there is none that could hear. */
  readonly createClient: () => Promise<Client | undefined>;
}

/**
 * Hints from any process, over a separate connection that is open while there are subscribers, and a little longer. Notifications are only hints;
 * subscribers are also called once a second, and after every reconnect, because something may have changed.
 */
export class Listener {
  readonly #options: Options;
  readonly #emitter: KeyedEmitter<Hint> = createKeyedEmitter(hintKey);
  #client: Client | undefined;
  #connecting: Promise<void> | undefined;
  #stopLooking: (() => void) | undefined;
  #stopLingering: (() => void) | undefined;
  #isClosed = false;
  #isDeaf = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Tells listeners of this process. */
  tell(hint: Hint): void {
    this.#emitter.emit(hint);
  }

  listen(hint: Hint, listener: () => void): () => void {
    const leave = this.#emitter.subscribe(hint, listener);
    this.#start();
    return () => {
      leave();
      if (this.#emitter.size === 0) this.#linger();
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stop();
    await this.#connecting?.catch(() => {});
    this.#stop();
  }

  #start(): void {
    if (this.#isClosed) return;
    this.#stopLingering?.();
    this.#stopLingering = undefined;
    this.#stopLooking ??= this.#options.clock.every(pollInterval, () => this.#emitter.emitAll());
    if (this.#isDeaf || this.#client !== undefined || this.#connecting !== undefined) return;
    this.#connecting = this.#connect().finally(() => {
      this.#connecting = undefined;
    });
  }

  #linger(): void {
    this.#stopLingering ??= after(this.#options.clock, lingerMs, () => this.#stop());
  }

  #stop(): void {
    this.#stopLingering?.();
    this.#stopLingering = undefined;
    this.#stopLooking?.();
    this.#stopLooking = undefined;
    const client = this.#client;
    this.#client = undefined;
    client?.end().catch(() => {});
  }

  /** Connects, and retries while there are subscribers. */
  async #connect(): Promise<void> {
    for (let attempt = 1; this.#isWanted(); attempt++) {
      try {
        await this.#open();
        return;
      } catch {
        await sleep(backoff(attempt, reconnectDelays));
      }
    }
  }

  async #open(): Promise<void> {
    const client = await this.#options.createClient();
    if (client === undefined) {
      // The calls once a second have to do.
      this.#isDeaf = true;
      return;
    }
    client.on('notification', ({ payload = '' }) => this.#hear(payload));
    const lost = (): void => {
      if (this.#client !== client) return;
      this.#client = undefined;
      if (this.#isWanted()) this.#start();
    };
    client.on('error', lost);
    client.on('end', lost);
    try {
      await client.connect();
      await client.query(`LISTEN ${quoteName(this.#options.channel)}`);
    } catch (error) {
      client.end().catch(() => {});
      throw error;
    }
    this.#client = client;
    if (this.#isClosed) this.#stop();
    else if (this.#emitter.size === 0) this.#linger();
    // Notifications before LISTEN took effect were not received.
    this.#emitter.emitAll();
  }

  #hear(payload: string): void {
    const words = payload.split(' ');
    if (words[0] === senderWord(this.#options.sender)) return;
    for (const word of words) {
      const [kind, id = ''] = word.split(':');
      if (kind === 'run' || kind === 'events') this.#emitter.emit({ kind, id });
    }
  }

  #isWanted(): boolean {
    return !this.#isClosed && this.#emitter.size > 0;
  }
}

export function toPayload(hints: readonly Hint[], sender: string): string {
  return [senderWord(sender), ...hints.map(({ kind, id }) => `${kind}:${id}`)].join(' ');
}

function senderWord(sender: string): string {
  return `from:${sender}`;
}

// Real time: the other side of a connection knows nothing of an app's clock.
function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}

/** Postgres takes 8000 bytes; a hint is at most 43, and their sender 42. */
const maxHints = 180;

/** Sends hints to other processes, those that come while others are on their way together. */
export function outgoingHints(sender: string, send: (payload: string) => Promise<unknown>) {
  const sendOne = inGroups<Hint, void>(async (hints) => {
    const distinct = new Map(hints.map((hint) => [hintKey(hint), hint]));
    // Subscribers poll once a second in case a hint is lost.
    await send(toPayload([...distinct.values()], sender)).catch(() => {});
    return [];
  }, maxHints);
  let last = Promise.resolve();
  return {
    tell(hints: readonly Hint[]): void {
      for (const hint of hints) last = sendOne(hint);
    },
    /** Resolves when what was told is sent. */
    settled: (): Promise<void> => last,
  };
}
