import type { Agent } from '../../agent/agent.ts';
import type { App } from '../../app.ts';
import type { Input } from '../../protocol/turn.ts';

/** What the agent of the engine contract is asked to do. */
export interface Wish {
  /** @default 1 */
  readonly steps?: number;
  /** Milliseconds that a step takes. @default 0 */
  readonly ms?: number;
  readonly fail?: boolean;
}

/** An agent that does what its input says, a step at a time. */
export function defineContractAgent(app: App): Agent {
  app.defineCustomAgent({ name: 'stepper' }, async (session, { respond, signal }) => {
    await session.run(async ({ message }) => {
      const [part] = message?.content ?? [];
      const wish = part !== undefined && 'text' in part ? part.text : '{}';
      const { steps = 1, ms = 0, fail = false } = JSON.parse(wish) as Wish;
      if (fail) throw new Error('as asked');
      for (let step = 0; step < steps && !signal.aborted; step++) {
        await respond.modelChunk({ content: [{ text: `${step};` }] });
        if (ms > 0) await app.clock.sleep(ms, signal);
      }
      session.addMessages({ role: 'model', content: [{ text: 'done' }] });
    });
  });
  return app.agent('stepper');
}

/** A wish as an input that is detached from its start. */
export function detached(wish: Wish): Input {
  return { message: { role: 'user', content: [{ text: JSON.stringify(wish) }] }, detach: true };
}

/** Looks until it is so; real time, as other processes have no other. */
export async function waitUntil(isSo: () => Promise<boolean>, ms = 20_000): Promise<void> {
  for (let left = ms; !(await isSo()); left -= 25) {
    if (left <= 0) throw new Error(`Not so after ${ms} ms.`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
