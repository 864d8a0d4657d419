import { WaymarkError } from '../../src/core/error.ts';
import type { Spend, Store } from '../../src/store/contract/store.ts';
import type { Driver } from '../../src/store/sql/database/driver.ts';
import type { Actor, Scheduler } from './scheduler.ts';

/** The faults of the connection between a process and its store, as probabilities. */
export interface LinkFaults {
  /** A call fails before it reaches the store. */
  lostRequest: number;
  /** A call fails after the store has carried it out. */
  lostAnswer: number;
  /** A notification is not delivered. */
  lostHint: number;
}

/** The connection of a process to the store. */
export interface Link {
  readonly scheduler: Scheduler;
  readonly actor: Actor;
  readonly faults: LinkFaults;
  /** Calls that wait to be sent. When the process dies, the store receives some of them all the same. */
  readonly outgoing: Set<() => Promise<unknown>>;
  /** Hears how many model calls the call to the store recorded. */
  onLostAnswer(calls: number): void;
}

/** Sends one call: it waits to be sent and to be answered, and may fail at both points. */
async function send<Value>(
  link: Link,
  name: string,
  work: () => Promise<Value>,
  calls: () => number = () => 0,
): Promise<Value> {
  const { scheduler, actor, faults, outgoing } = link;
  const { random } = scheduler;
  outgoing.add(work);
  await scheduler.pause(actor, `${name} →`);
  outgoing.delete(work);
  if (random.chance(faults.lostRequest)) throw unavailable(name, random.chance(0.5));
  let result: Value;
  try {
    result = await work();
  } finally {
    await scheduler.pause(actor, `${name} ←`);
  }
  if (random.chance(faults.lostAnswer)) {
    link.onLostAnswer(calls());
    throw unavailable(name, false);
  }
  return result;
}

/** Delivers a notification, perhaps late or never. */
function hint({ scheduler, actor, faults }: Link, listener: () => void): () => void {
  return () => {
    if (actor.dead || scheduler.random.chance(faults.lostHint)) return;
    void scheduler.pause(actor, 'hint').then(listener);
  };
}

function unavailable(name: string, isCertain: boolean): WaymarkError {
  const details = isCertain ? { details: { written: false } } : {};
  return new WaymarkError('UNAVAILABLE', `The connection broke in ${name}.`, details);
}

/** The model calls in the spend among the arguments of a call to the store. */
function callsIn(args: readonly unknown[]): number {
  let calls = 0;
  for (const arg of args) {
    const { spend = arg } = (arg ?? {}) as { readonly spend?: unknown };
    const { entries } = (spend ?? {}) as Partial<Spend>;
    for (const entry of Array.isArray(entries) ? entries : []) calls += entry.calls ?? 0;
  }
  return calls;
}

/** A store as a process reaches it: every call goes through the link. */
export function linkStore(store: Store, link: Link): Store {
  const wrap = <T extends object>(part: T, prefix: string): T => {
    const entries = Object.entries(part).map(([key, value]): [string, unknown] => {
      if (typeof value === 'object' && value !== null) return [key, wrap(value, `${key}.`)];
      if (typeof value !== 'function') return [key, value];
      if (key === 'close') return [key, async () => {}];
      if (/^on[A-Z]/.test(key)) {
        return [key, (id: string, listener: () => void) => value(id, hint(link, listener))];
      }
      return [
        key,
        (...args: unknown[]) =>
          send(
            link,
            prefix + key,
            async () => value(...args),
            () => callsIn(args),
          ),
      ];
    });
    return Object.fromEntries(entries) as T;
  };
  return wrap(store, '');
}

/** The place of the number of calls among the parameters of the statement that adds to the spend. */
const callsAt = 6;

/** A database as a process reaches it: each transaction goes through the link. */
export function linkDatabase(db: Driver, link: Link): Driver {
  return {
    dialect: db.dialect,
    ...(db.isLocal !== undefined && { isLocal: db.isLocal }),
    open: () => db.open(),
    read: (plan) => send(link, 'read', () => db.read(plan)),
    write: (plan, options) => {
      let calls = 0;
      const counted = function* (): ReturnType<typeof plan> {
        // A plan that is refused runs again.
        calls = 0;
        const given = plan();
        for (let step = given.next(); ; ) {
          if (step.done === true) return step.value;
          const { statement, values } = step.value;
          if (statement.name === 'spend_add') calls += Number(values[callsAt]);
          step = given.next(yield step.value);
        }
      };
      return send(
        link,
        'write',
        () => db.write(counted, options),
        () => calls,
      );
    },
    scrub: () => send(link, 'scrub', async () => db.scrub?.()),
    tell: (hints, reach) => {
      if (!link.actor.dead) db.tell(hints, reach);
    },
    listen: (key, listener) => db.listen(key, hint(link, listener)),
    close: async () => {},
  };
}
