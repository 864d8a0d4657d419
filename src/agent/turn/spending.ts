import type { Usage } from '../../protocol/turn.ts';
import { addUsage } from '../../protocol/usage.ts';
import type { Spend, SpendEntry, SpendSupport } from '../../store/contract/store.ts';

/** Whose spend it is. */
type Payer = () => Omit<Spend, 'entries'>;

/**
 * What an invocation and the sub-agents inside it have spent and the store has not recorded yet. It goes along with the next
 * commit or checkpoint of any of them.
 */
export class Spending {
  /** Where it is recorded; `undefined`: nowhere. */
  readonly store: SpendSupport | undefined;
  readonly #payer: Payer;
  readonly #entries = new Map<string, SpendEntry>();

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
    this.#entries.clear();
    try {
      return await write({ spend: { ...this.#payer(), entries } });
    } catch (error) {
      for (const { agent, model, usage, calls } of entries) this.add(agent, model, usage, calls);
      throw error;
    }
  }

  /** Whether the store has everything that was spent. */
  get isRecorded(): boolean {
    return this.#entries.size === 0;
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
