import { existsSync } from 'node:fs';
import type { Agent } from '../../agent/contract/agent.ts';
import type { App } from '../../app.ts';
import type { Input } from '../../protocol/turn.ts';

/** The command for the agent of the engine contract. */
export interface Wish {
  /** @default 1 */
  readonly steps?: number;
  /** Milliseconds per step. @default 0 */
  readonly ms?: number;
  /** The run fails. */
  readonly fail?: boolean;
  /** Waits while this path exists. */
  readonly waitWhile?: string;
  /** Kills its process while this path exists. */
  readonly dieWhile?: string;
  /** Durable steps; each kills its process once it is recorded. @default 0 */
  readonly deadlySteps?: number;
}

/** Defines an agent that executes the command in its input step by step. */
export function defineContractAgent(app: App): Agent {
  app.defineCustomAgent({ name: 'stepper' }, async (session, { respond, signal }) => {
    await session.run(async ({ message }) => {
      const [part] = message?.content ?? [];
      const text = part !== undefined && 'text' in part ? part.text : '{}';
      const wish = JSON.parse(text) as Wish;
      const { steps = 1, ms = 0, fail = false, waitWhile, dieWhile, deadlySteps = 0 } = wish;
      if (fail) throw new Error('as asked');
      for (let step = 0; step < steps && !signal.aborted; step++) {
        await respond.modelChunk({ content: [{ text: `${step};` }] });
        if (ms > 0) await app.clock.sleep(ms, signal);
      }
      while (waitWhile !== undefined && existsSync(waitWhile)) await app.clock.sleep(20, signal);
      if (dieWhile !== undefined && existsSync(dieWhile)) await die();
      for (let step = 0; step < deadlySteps; step++) {
        let isNew = false;
        await session.step(`deadly ${step}`, () => {
          isNew = true;
        });
        if (isNew) await die();
      }
      session.addMessages({ role: 'model', content: [{ text: 'done' }] });
    });
  });
  return app.agent('stepper');
}

// Like running out of memory: no cleanup. The process has sent the id of the run by then.
async function die(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
  process.kill(process.pid, 'SIGKILL');
}

/** A command as an input. */
export function asked(wish: Wish): Input {
  return { message: { role: 'user', content: [{ text: JSON.stringify(wish) }] } };
}

/** A command as an input of a detached run. */
export function detached(wish: Wish): Input {
  return { ...asked(wish), detach: true };
}

/** Polls a condition in real time, because other processes have no fake clock. */
export async function waitUntil(isSo: () => Promise<boolean>, ms = 20_000): Promise<void> {
  for (let left = ms; !(await isSo()); left -= 25) {
    if (left <= 0) throw new Error(`Not so after ${ms} ms.`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
