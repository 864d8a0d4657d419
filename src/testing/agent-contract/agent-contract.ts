import { describe, test } from 'vitest';
import type { ContractCase } from './case.ts';
import { contractCases } from './cases.ts';
import { play } from './play.ts';
import { type ContractHost, openStage } from './stage.ts';

/**
 * Declares the tests that agents are held to, whatever their store and however they are reached. `open` gives an empty store
 * for each case, and the way to the agents of an app.
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
        // The runner shows where in the runner it failed; what matters is where in the case.
        if (error instanceof Error) error.message = `step ${index} (${step.do}): ${error.message}`;
        throw error;
      }
    }
  } finally {
    await stage.close();
  }
}
