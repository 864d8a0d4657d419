import { expect } from 'vitest';
import type { RunHandle } from '../../api/agent-api.ts';
import type { ContractAgent, Stage } from './stage.ts';

const unknown = '01890000-0000-7000-8000-00000000000a';

/**
 * Expects the handles of background runs to work without being told the owner again: those of `start`, of a chat and of `attach`. The model
 * answers the first three runs and holds the last three.
 */
export async function expectHandles({ agent, owner }: Stage): Promise<void> {
  const attach = async (): Promise<RunHandle> =>
    agent.attach((await agent.start('attach', owner)).id, owner);
  const starts: Record<string, () => Promise<RunHandle>> = {
    start: () => agent.start('start', owner),
    chat: () => agent.chat(owner).start('chat'),
    attach,
  };
  for (const [name, start] of Object.entries(starts)) {
    const run = await start();
    const types: string[] = [];
    for await (const { type } of run.watch()) types.push(type);
    expect(types.at(-1), `watch of ${name}`).toBe('end');
    expect((await run.wait()).text, `wait of ${name}`).toBe('done');
    expect(await run.status(), `status of ${name}`).toBe('succeeded');
    expect(await run.abort(), `abort of ${name}, too late`).toBe('succeeded');
  }
  for (const [name, start] of Object.entries(starts)) {
    const run = await start();
    expect(await run.status(), `status of ${name}`).toBe('pending');
    expect(await run.abort(), `abort of ${name}`).toBe('aborted');
    expect(await run.status(), `status of ${name}`).toBe('aborted');
  }
  await expectUnknown(agent.attach(unknown, owner));
}

/** A handle of a run that does not exist says so, also when it is to stop the run. */
async function expectUnknown(run: ReturnType<ContractAgent['attach']>): Promise<void> {
  expect(await run.status()).toBeUndefined();
  const calls = { abort: () => run.abort(), wait: () => run.wait() };
  for (const [name, call] of Object.entries(calls)) {
    await expect(call(), name).rejects.toMatchObject({ status: 'NOT_FOUND' });
  }
}
