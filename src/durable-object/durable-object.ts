import { invalid } from '../core/error.ts';
import { createIds } from '../core/id.ts';
import { checkOptions, type OptionNames } from '../core/options.ts';
import { type Clock, systemClock } from '../core/time.ts';
import type { LocalEngine } from '../engine/local-engine.ts';
import { type ObjectStorage, objectDriver } from '../store/durable-object/driver.ts';
import { RunAlarm } from '../store/durable-object/run-alarm.ts';
import type { Encryption } from '../store/sql/content/cipher.ts';
import type { QueryOptions } from '../store/sql/database/driver.ts';
import { type SqlStore, storeOver } from '../store/sql/sql-store.ts';
import { alarmEngine } from './alarm-engine.ts';

/** Options of `durableObject`. */
export interface DurableObjectOptions extends QueryOptions {
  /** How often the object may be evicted during a run without progress before the run moves to the dead-letter queue. @default 3 */
  readonly attempts?: number;
  /** Encrypts content with your key. @default none */
  readonly encryption?: Encryption;
  /** Milliseconds for which the events of a run are kept after its end. @default 60000 */
  readonly eventsTtl?: number;
  /** @default the system clock */
  readonly clock?: Clock;
  /** @default time-ordered UUIDs */
  readonly newId?: () => string;
}

/** The store and the alarm of an app in a Durable Object. */
export interface DurableObjectParts {
  /** The store, in the object's database. */
  readonly store: SqlStore;
  /** Executes background runs, deadlines and what an eviction has interrupted. It is called by the alarm. */
  readonly engine: LocalEngine;
  /** Handles the alarm of the object, which the store sets. */
  alarm(): Promise<void>;
}

const optionNames: OptionNames<DurableObjectOptions> = {
  onQuery: 'function',
  attempts: 'number',
  encryption: true,
  eventsTtl: 'number',
  clock: 'object',
  newId: 'function',
};

/**
 * A store and an engine in a Durable Object with SQLite. The object's alarm belongs to them: call `alarm` from its `alarm` method.
 *
 * @example
 * export class Agents extends DurableObject {
 *   readonly #parts = durableObject(this.ctx.storage);
 *   readonly #fetch = handler(createApp(this.#parts), { auth });
 *   fetch(request: Request) { return this.#fetch(request); }
 *   alarm() { return this.#parts.alarm(); }
 * }
 */
export function durableObject(
  storage: ObjectStorage,
  options: DurableObjectOptions = {},
): DurableObjectParts {
  checkOptions(options, optionNames, 'durableObject()');
  checkStorage(storage);
  const { attempts, encryption, eventsTtl, onQuery } = options;
  const { clock = systemClock, newId = createIds(clock) } = options;
  const alarm = new RunAlarm(storage, clock);
  const driver = objectDriver({ storage, clock, newId, onQuery, onRuns: () => alarm.set() });
  const store = storeOver({ name: 'durable-object', driver, encryption, clock, newId, eventsTtl });
  const engine = alarmEngine(alarm, { clock, attempts });
  return { store, engine, alarm: () => engine.work() };
}

function checkStorage(storage: unknown): void {
  const { sql, transactionSync } = (storage ?? {}) as Partial<ObjectStorage>;
  if (typeof sql?.exec === 'function' && typeof transactionSync === 'function') return;
  throw invalid('durableObject() needs the storage of a Durable Object: pass `this.ctx.storage`.');
}
