import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { commands } from './commands.ts';
import { compare } from './compare.ts';
import type { UseKit } from './kit.ts';
import { createWorld, erase, take, type World } from './steps.ts';

/** Random trees, compared with the reference model. */
export function randomContract(useKit: UseKit, numRuns: number): void {
  describe('random histories', () => {
    test(`every state of ${numRuns} random trees reads as it was written`, async () => {
      const kit = useKit();
      await fc.assert(
        fc.asyncProperty(commands, async (steps) => {
          const world = createWorld(kit);
          for (const step of steps) await take(world, step);
          await compare(kit, world.scope, world.model);
          await eraseAll(world);
        }),
        // A failure in a long history takes many tries to shorten: it is reported before the test's own time is over.
        { numRuns, interruptAfterTimeLimit: 800_000, markInterruptAsFailure: true },
      );
    }, 900_000);
  });
}

async function eraseAll(world: World): Promise<void> {
  const { kit, scope, model } = world;
  for (const sessionId of [...model.keys()]) await erase(world, sessionId);
  expect((await kit.timeline.listSessions(scope)).items).toEqual([]);
  expect(await kit.maintenance.verify()).toEqual([]);
}
