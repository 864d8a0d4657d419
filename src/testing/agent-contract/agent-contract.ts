import { describe, test } from 'vitest';
import type { ContractCase } from './case.ts';
import { contractCases } from './cases.ts';
import { play } from './play.ts';
import { type ContractHost, openStage } from './stage.ts';

/**
 * Declares the conformance tests for agents, over any store and transport. `open` returns an empty store for each case, and
 * access to the agents of an app.
 *
 * @example
 * agentContract('my store', async () => ({ store: await openMyStore(), close: async () => {} }));
 */
export function agentContract(name: string, open: () => Promise<ContractHost>): void {
  describe(`agents, ${name}`, () => {
    for (const each of contractCases) {
      test(`${each.rules.join(' ')} ${each.name}`, () => playCase(each, open));
    }
  });
}

async function playCase(each: ContractCase, open: () => Promise<ContractHost>): Promise<void> {
  const stage = await openStage(await open(), each);
  try {
    for (const [index, step] of each.steps.entries()) {
      try {
        await play(stage, step);
      } catch (error) {
        // The stack trace points into the runner; name the failing step of the case instead.
        if (error instanceof Error) error.message = `step ${index} (${step.do}): ${error.message}`;
        throw error;
      }
    }
  } finally {
    await stage.close();
  }
}
