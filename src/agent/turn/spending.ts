import { createKeyedEmitter, type KeyedEmitter } from '../../core/async/emitter.ts';
import { Mutex } from '../../core/async/mutex.ts';
import type { Usage } from '../../protocol/turn.ts';
import { addUsage } from '../../protocol/usage.ts';
import type {
  Spend,
  SpendCount,
  SpendEntry,
  SpendReservation,
  SpendSupport,
} from '../../store/contract/store.ts';

/** Whose spend it is. */
type Payer = () => Omit<Spend, 'entries' | 'settles'>;

/** The calls of this process that wait for budgets of one store. */
interface Waiting {
  readonly queues: Map<string, { readonly mutex: Mutex; length: number }>;
  /** Called with the owner when reservations were settled. */
  readonly settled: KeyedEmitter;
}

const waiting = new WeakMap<object, Waiting>();

/** The calls of this process that wait for one budget. */
interface BudgetQueue {
  /** Runs the work when all that came before it is over. */
  run(work: () => Promise<void>): Promise<void>;
  /** Calls back when a reservation of the same owner is settled; returns a function that unsubscribes. */
  onSettled(listener: () => void): () => void;
}

/**
 * What an invocation and the sub-agents inside it have spent and the store has not recorded yet. It goes along with the next
 * commit or checkpoint of any of them.
 */
export class Spending {
  /** Where it is recorded; `undefined`: nowhere. */
  readonly store: SpendSupport | undefined;
  readonly #payer: Payer;
  readonly #entries = new Map<string, SpendEntry>();
  #holder: string | undefined;
  /** Reservations whose calls have ended. */
  readonly #settles = new Set<string>();

  constructor(store: SpendSupport | undefined, payer: Payer) {
    this.store = store;
    this.#payer = payer;
  }

  /** Takes note of a call of a model by an agent. */
  add(agent: string, model: string, usage: Usage, calls = 1): void {
    // A model that does not count leaves nothing to record.
    if (this.store === undefined || Object.keys(usage).length === 0) return;
    const key = `${agent}\0${model}`;
    const known = this.#entries.get(key);
    this.#entries.set(key, {
      agent,
      model,
      calls: (known?.calls ?? 0) + calls,
      usage: known === undefined ? usage : addUsage(known.usage, usage),
    });
  }

  /** Takes note of the end of a call that had a reservation. */
  settle(reservation: string): void {
    this.#settles.add(reservation);
  }

  /** Makes a reservation, as {@link SpendSupport.reserve}. The store must have it. */
  async reserve(
    reservation: Omit<SpendReservation, 'owner' | 'agent' | 'sessionId' | 'holder'>,
  ): Promise<readonly SpendCount[] | undefined> {
    await this.flush();
    try {
      this.#holder ??= reservation.id;
      const holder = this.#holder;
      return await this.store?.reserve?.({ ...this.#payer(), ...reservation, holder });
    } catch (error) {
      // It may have been made all the same.
      this.settle(reservation.id);
      throw error;
    }
  }

  /** The queue for the budgets of the owner, or of the session alone. */
  queue(of: 'owner' | 'session'): BudgetQueue {
    const { owner = '', agent, sessionId } = this.#payer();
    const key = JSON.stringify(of === 'owner' ? [owner] : [owner, agent, sessionId]);
    const store = this.store ?? this;
    const { queues, settled } = waiting.get(store) ?? {
      queues: new Map(),
      settled: createKeyedEmitter(),
    };
    waiting.set(store, { queues, settled });
    const queue = queues.get(key) ?? { mutex: new Mutex(), length: 0 };
    queues.set(key, queue);
    return {
      async run(work) {
        queue.length++;
        await queue.mutex.run(work).finally(() => {
          queue.length--;
          if (queue.length === 0) queues.delete(key);
        });
      },
      onSettled: (listener) => settled.subscribe(owner, listener),
    };
  }

  /** Writes with what is not recorded yet, if the write goes to the same store. After an error it is still not recorded. */
  alongWith<Value>(
    store: SpendSupport | undefined,
    write: (spend: { readonly spend?: Spend }) => Promise<Value>,
  ): Promise<Value> {
    return this.isRecorded || store !== this.store ? write({}) : this.#record(write);
  }

  async #record<Value>(
    write: (spend: { readonly spend: Spend }) => Promise<Value>,
  ): Promise<Value> {
    const entries = [...this.#entries.values()];
    const settles = [...this.#settles];
    this.#entries.clear();
    this.#settles.clear();
    try {
      const payer = this.#payer();
      const spend = { ...payer, entries, ...(settles.length > 0 && { settles }) };
      const result = await write({ spend });
      if (settles.length > 0) waiting.get(this.store ?? this)?.settled.emit(payer.owner ?? '');
      return result;
    } catch (error) {
      for (const { agent, model, usage, calls } of entries) this.add(agent, model, usage, calls);
      for (const id of settles) this.settle(id);
      throw error;
    }
  }

  /** Whether the store has everything that was spent. */
  get isRecorded(): boolean {
    return this.#entries.size === 0 && this.#settles.size === 0;
  }

  /** Records by itself what no commit has taken along. */
  async flush(): Promise<void> {
    if (!this.isRecorded) await this.#record(async ({ spend }) => await this.store?.add(spend));
  }

  /** What the session has spent, its sub-agents included; `undefined`: no store says it. */
  async ofSession(): Promise<Usage | undefined> {
    const { owner = null, ...session } = this.#payer();
    return this.#withUnrecorded(await this.store?.total({ owner, ...session }));
  }

  /** What the owner has spent since a day, over all agents; `undefined`: no store says it. */
  async ofOwner(sinceDay: number | undefined): Promise<Usage | undefined> {
    const { owner = null } = this.#payer();
    return this.#withUnrecorded(
      await this.store?.total({ owner, ...(sinceDay !== undefined && { sinceDay }) }),
    );
  }

  #withUnrecorded(recorded: Usage | undefined): Usage | undefined {
    if (recorded === undefined) return undefined;
    return [...this.#entries.values()].reduce((sum, { usage }) => addUsage(sum, usage), recorded);
  }
}
