import { describe, expect, test } from 'vitest';
import type { Agent } from '../../src/index.ts';
import { canary, createCanaryApp, leakIn, mask, transforms } from '../server/canary-app.ts';
import { all, must, say } from './support/kit.ts';

/** What a value says as JSON, and what rejected says. Errors say what they say to remote clients. */
async function told(value: unknown): Promise<string> {
  try {
    return JSON.stringify(await value) ?? '';
  } catch (error) {
    return `rejected: ${JSON.stringify(error)}`;
  }
}

describe.each(Object.entries(transforms))('with the %s transform', (_, transform) => {
  test('S685 S680 S681 S683 every call of an agent in this process hides it', async () => {
    const app = createCanaryApp(transform);
    const agent = app.agent('chat') as Agent;
    const sessionId = 's1';
    const first = await agent.run(say('everything'), { sessionId });
    const { snapshotId: a = '' } = first;
    const { snapshotId: b = '' } = await agent.run(say('more'), { sessionId });
    const asked = await agent.run(say('ask'), { sessionId: 's2' });
    const failed = await agent.run(say('fail'), { sessionId: 's3', throwOnError: false });
    const [failure] = (await agent.listSnapshots('s3')).items;
    const hang = await agent.start(say('hang'), { sessionId: 's4' });
    const whole = async (word: string, of: Agent = agent): Promise<unknown> => {
      const { stream, output } = of.stream(say(word));
      return [await all(stream), await output];
    };
    /** What each call of an agent gives; a call that is not named here fails the test. */
    const calls: Record<string, () => unknown> = {
      openFile: async () => (await agent.openFile({ sessionId }, 'file.txt')).name,
      run: () => [first, asked],
      runText: () => agent.runText('bad'),
      stream: () => whole('everything'),
      streamText: async () => await all(agent.streamText('fail').stream),
      resume: () => agent.resume(asked, (request) => request.approve()),
      start: async () => {
        const run = await agent.start(say('everything'));
        return [await all(run.watch()), await run.wait(), await run.status()];
      },
      attach: async () => {
        const run = agent.attach(a);
        return [await all(run.watch()), await run.wait()];
      },
      streamBidi: async () => {
        const connection = agent.streamBidi();
        await connection.sendText('everything');
        return await connection.output();
      },
      chat: async () => {
        const chat = agent.chat();
        return [await chat.send('everything'), await chat.send('more'), chat.state ?? null];
      },
      getSnapshot: async () => [
        await agent.getSnapshot({ snapshotId: a }),
        await agent.getSnapshot({ sessionId }),
        await agent.getSnapshot({ snapshotId: must(failure).snapshotId }),
      ],
      getSession: () => agent.getSession(sessionId),
      listSnapshots: async () => [await agent.listSnapshots('s3'), failure],
      listSessions: async () => [
        await agent.listSessions(),
        await agent.listSessions({ query: 's1' }),
      ],
      listInterrupts: async () => [await agent.listInterrupts(), await app.listInterrupts()],
      updateSession: () => agent.updateSession(sessionId, { title: `Mine, ${canary}` }),
      deleteSession: () => agent.deleteSession('none'),
      listRuns: () => agent.listRuns(),
      getUsage: () => agent.getUsage(),
      listDeadRuns: () => agent.listDeadRuns(),
      wait: async () => [await agent.wait(a), await agent.wait(must(failure).snapshotId)],
      watch: async () => [
        await all(agent.watch(a)),
        await all(agent.watch(a, { after: '1.0' })),
        await all(agent.watch(must(failure).snapshotId)),
      ],
      steer: () => agent.steer(hang.id, say('hang')),
      abort: async () => [await agent.abort(hang.id), await agent.wait(hang.id)],
      retryRun: () => agent.retryRun(a),
      restore: () => agent.restore(a),
      planUndo: () => agent.planUndo(a),
      fork: () => agent.fork(a),
      edit: () => agent.edit(a, { artifacts: [{ name: 'mine', parts: [] }] }),
      listFiles: () => agent.listFiles(a),
      checkout: () => agent.checkout(a, '/dev/null/nowhere'),
      diff: () => agent.diff(a, b),
      label: () => agent.label(a, 'x'),
    };
    const fields = Object.entries(agent).filter(([, value]) => typeof value === 'function');
    expect(fields.map(([name]) => name).sort()).toEqual(Object.keys(calls).sort());
    expect([leakIn(JSON.stringify(failed)), failed.finishReason]).toEqual([undefined, 'failed']);
    for (const [name, call] of Object.entries(calls)) {
      const text = await told((async () => call())());
      expect([name, leakIn(text)]).toEqual([name, undefined]);
    }
    for (const name of ['custom', 'held']) {
      const text = await told(whole('x', app.agent(name) as Agent));
      expect([name, leakIn(text)]).toEqual([name, undefined]);
      expect(text).toContain(mask);
    }
    await app.close({ grace: 0 });
  });
});
