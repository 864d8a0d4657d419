import { describe, expect, test, vi } from 'vitest';
import type { ErrorInfo } from '../../src/agent/contract/error-reports.ts';
import { agentTool } from '../../src/agent/define/agent-tool.ts';
import { type App, waymark } from '../../src/app.ts';
import type { AppOptions } from '../../src/app-options.ts';
import { WaymarkError } from '../../src/core/error.ts';
import { retry } from '../../src/generate/middleware/retry.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { eventually } from '../support/eventually.ts';
import { must, openApp, say } from './support/kit.ts';

interface Heard {
  readonly error: unknown;
  readonly info: ErrorInfo;
}

/** An app whose failures are kept in the order in which `onError` hears of them. */
function listening(
  options: AppOptions = {},
): App & AsyncDisposable & { readonly heard: readonly Heard[] } {
  const heard: Heard[] = [];
  const app = waymark({
    store: memoryStore(),
    onError: (error, info) => heard.push({ error, info }),
    ...options,
  });
  return Object.assign(app, {
    heard,
    [Symbol.asyncDispose]: () => app.close({ grace: 1_000 }),
  });
}

const bug = (): TypeError => new TypeError('my bug is here');

/** An agent whose turns throw. */
function broken(app: App, thrown: unknown): ReturnType<App['defineCustomAgent']> {
  return app.defineCustomAgent({ name: 'broken' }, (session) =>
    session.run(() => {
      throw thrown;
    }),
  );
}

describe('in this process', () => {
  test('S140 the output of a failed turn has the message, the stack and the thrown error', async () => {
    await using app = listening();
    const thrown = bug();
    const { error } = await broken(app, thrown).runText('x', { throwOnError: false });
    expect(must(error).message).toBe('my bug is here');
    expect(must(error).status).toBe('INTERNAL');
    expect(must(error).cause).toBe(thrown);
  });

  test.each([
    ['a string', 'key=sk-123', 'key=sk-123'],
    ['an object', { code: 7, key: 'sk-123' }, 'Thrown: {"code":7,"key":"sk-123"}'],
    ['an error without a message', new RangeError(), 'RangeError'],
  ])(
    'S140 %s that was thrown is the cause, and its text the message',
    async (_, thrown, message) => {
      await using app = listening();
      const { error } = await broken(app, thrown).runText('x', { throwOnError: false });
      expect(must(error)).toMatchObject({ status: 'INTERNAL', message });
      expect(must(error).cause).toBe(thrown);
    },
  );

  test('S140 S51 as JSON an error is what remote clients get, however it is copied', async () => {
    await using app = listening();
    const output = await broken(app, bug()).runText('x', { throwOnError: false });
    const redacted = { status: 'INTERNAL', message: 'An unexpected error occurred.' };
    expect(JSON.parse(JSON.stringify(output)).error).toEqual(redacted);
    expect(JSON.stringify({ ...output.error })).not.toContain('my bug');
    // A tool that gives another agent's output as its own, or a step that keeps it, keeps what is public.
    const copier = app.defineCustomAgent({ name: 'copier' }, (session) =>
      session.run(async () => {
        const kept = await session.step('other', async () => output);
        return { output: { output, kept } };
      }),
    );
    const copied = await copier.runText('x');
    expect(copied.output).toMatchObject({ output: { error: redacted }, kept: { error: redacted } });
    expect(JSON.stringify(copied)).not.toContain('my bug');
  });

  test('S141 S51 a failed snapshot and a failed background run keep the redacted form', async () => {
    await using app = listening();
    const agent = broken(app, bug());
    const { sessionId } = await agent.runText('x', { throwOnError: false });
    const { items } = await agent.listSnapshots(sessionId, { includeOrphaned: true });
    const { snapshotId = '' } = await agent.run({ ...say('y'), detach: true });
    const ended = await agent.wait(snapshotId);
    const redacted = { status: 'INTERNAL', message: 'An unexpected error occurred.' };
    expect(items.map(({ error }) => error)).toEqual([redacted]);
    expect(ended.error).toEqual(redacted);
  });

  test('S142 a message for the caller stays, and so do its details; its cause does not leave', async () => {
    await using app = listening();
    const thrown = new WaymarkError('FAILED_PRECONDITION', 'You have no credit left.', {
      details: { credit: 0 },
      cause: new Error('select credit from accounts where key=sk-123'),
    });
    const output = await broken(app, thrown).runText('x', { throwOnError: false });
    expect(output.error).toBe(thrown);
    expect(JSON.parse(JSON.stringify(output)).error).toEqual({
      status: 'FAILED_PRECONDITION',
      message: 'You have no credit left.',
      details: { credit: 0 },
    });
  });

  test('S142 an error may have a message of its own for remote clients', async () => {
    await using app = listening();
    const thrown = new WaymarkError('UNAVAILABLE', 'No answer from db-7.internal.', {
      publicMessage: 'The orders are not available. Try again.',
    });
    const output = await broken(app, thrown).runText('x', { throwOnError: false });
    expect(output.error?.message).toBe('No answer from db-7.internal.');
    expect(JSON.parse(JSON.stringify(output)).error.message).toBe(
      'The orders are not available. Try again.',
    );
  });
});

describe('onError', () => {
  test('S143 hears once of a failed turn, with the thrown error and where it happened', async () => {
    await using app = listening();
    const thrown = bug();
    const agent = broken(app, thrown);
    const { sessionId } = await agent.runText('x', { throwOnError: false });
    const { items } = await agent.listSnapshots(sessionId, { includeOrphaned: true });
    expect(app.heard).toEqual([
      {
        error: thrown,
        info: {
          phase: 'turn',
          agent: 'broken',
          sessionId,
          runId: must(items[0]).snapshotId,
          turnIndex: 0,
        },
      },
    ]);
    expect(must(app.heard[0]).error).toBe(thrown);
  });

  test('S143 hears of the same error object again when another turn throws it', async () => {
    await using app = listening();
    const agent = broken(app, bug());
    const { sessionId } = await agent.runText('x', { throwOnError: false });
    await agent.runText('y', { sessionId, throwOnError: false });
    expect(app.heard).toHaveLength(2);
  });

  test('S143 hears of a handler that throws outside its loop, and of one that throws on', async () => {
    await using app = listening();
    const outside = app.defineCustomAgent({ name: 'outside' }, () => {
      throw bug();
    });
    const wrapping = app.defineCustomAgent({ name: 'wrapping' }, async (session) => {
      try {
        await session.run(() => {
          throw bug();
        });
      } catch (cause) {
        throw new Error('It did not work.', { cause });
      }
    });
    await outside.runText('x', { throwOnError: false });
    await wrapping.runText('x', { throwOnError: false });
    expect(app.heard.map(({ info }) => [info.agent, info.phase])).toEqual([
      ['outside', 'turn'],
      ['wrapping', 'turn'],
    ]);
  });

  test.each([
    ['an error', new Error('connect ECONNREFUSED 10.1.2.3 key=sk-123')],
    ['a string', 'connect ECONNREFUSED 10.1.2.3 key=sk-123'],
    ['an object', { reason: 'connect ECONNREFUSED 10.1.2.3 key=sk-123' }],
  ])(
    'S143 S144 hears once of a model that throws %s; nothing of it is for others',
    async (_, thrown) => {
      await using app = listening();
      const model = app.defineModel({ name: 'own' }, () => {
        throw thrown;
      });
      const chat = app.defineAgent({ name: 'chat', model });
      const output = await chat.runText('x', { throwOnError: false });
      expect(app.heard.map(({ info }) => info)).toMatchObject([
        { phase: 'model', agent: 'chat', model: 'own', turnIndex: 0 },
      ]);
      const { error } = must(app.heard[0]);
      expect(error).toMatchObject({ cause: thrown });
      expect(String(error)).toContain('ECONNREFUSED 10.1.2.3 key=sk-123');
      expect(output.error?.message).toContain('ECONNREFUSED 10.1.2.3 key=sk-123');
      const { items } = await chat.listSnapshots(output.sessionId, { includeOrphaned: true });
      const remote = JSON.stringify([output, items]);
      expect(remote).toContain('Model \\"own\\" failed');
      expect(remote).not.toMatch(/sk-123|10\.1\.2\.3|ECONN/);
    },
  );

  test('S143 hears nothing of attempts that middleware mends, and once where it gives up', async () => {
    await using app = listening();
    const use = [retry({ attempts: 2, delay: 1 })];
    const failing = { error: { name: 'Error', message: 'busy' } };
    const mended = app.defineAgent({
      name: 'mended',
      model: scriptedModel([failing, 'fine']),
      use,
    });
    const given = app.defineAgent({
      name: 'given',
      model: scriptedModel([failing, failing, failing]),
      use,
    });
    expect((await mended.runText('x')).finishReason).toBe('stop');
    expect(app.heard).toEqual([]);
    await given.runText('x', { throwOnError: false });
    expect(app.heard).toHaveLength(1);
  });

  test('S143 hears of a tool, whose turn continues, but not of a call that the model got wrong', async () => {
    await using app = listening();
    const thrown = bug();
    const tool = app.defineTool(
      {
        name: 'look',
        description: 'Looks.',
        input: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] },
      },
      () => {
        throw thrown;
      },
    );
    const model = scriptedModel([
      {
        toolCalls: [
          { name: 'look', input: { at: 'a' } },
          { name: 'look', input: { at: 'b' } },
        ],
      },
      {
        toolCalls: [
          { name: 'look', input: {} },
          { name: 'nowhere', input: {} },
        ],
      },
      'done',
    ]);
    const chat = app.defineAgent({ name: 'chat', model, tools: [tool] });
    expect((await chat.runText('x')).finishReason).toBe('stop');
    expect(app.heard.map(({ error, info }) => [error === thrown, info.phase, info.tool])).toEqual([
      [true, 'tool', 'look'],
      [true, 'tool', 'look'],
    ]);
  });

  test('S143 hears once of a model call inside a tool, and of a sub-agent', async () => {
    await using app = listening();
    const failing = app.defineModel({ name: 'failing' }, () => {
      throw bug();
    });
    const ask = app.defineTool({ name: 'ask', description: 'Asks.' }, async () => {
      const { text } = await app.generate({ model: failing, prompt: 'x' });
      return text;
    });
    const inner = app.defineAgent({ name: 'inner', model: failing });
    const outer = app.defineAgent({
      name: 'outer',
      model: scriptedModel([
        {
          toolCalls: [
            { name: 'ask', input: {} },
            { name: 'inner', input: { message: 'x' } },
          ],
        },
        'done',
      ]),
      tools: [ask, agentTool(inner)],
    });
    const output = await outer.runText('x');
    expect(output.finishReason).toBe('stop');
    expect(app.heard.map(({ info }) => [info.agent, info.phase]).toSorted()).toEqual([
      ['inner', 'model'],
      ['outer', 'model'],
    ]);
    expect(JSON.stringify(await outer.getSnapshot({ sessionId: output.sessionId }))).not.toContain(
      'my bug',
    );
  });

  test('S143 hears of a prompt, a policy, a transform and a hook by their phases', async () => {
    await using app = listening();
    const model = scriptedModel(['one', 'two', 'three', 'four']);
    const fail = (): never => {
      throw bug();
    };
    const prompt = app.defineAgent({ name: 'prompt', model, system: fail });
    const policy = app.defineAgent({ name: 'policy', model, snapshot: fail });
    const state = app.defineAgent({ name: 'state', model, transform: { state: fail } });
    const chunk = app.defineAgent({ name: 'chunk', model, transform: { chunk: fail } });
    const hook = app.defineAgent({ name: 'hook', model, onFinish: fail });
    const failed = [prompt, policy, chunk].map(async (agent) => {
      const { error } = await agent.runText('x', { throwOnError: false });
      expect([agent.name, must(error).message]).toEqual([
        agent.name,
        expect.stringContaining('my bug is here'),
      ]);
      expect(JSON.stringify(error)).not.toContain('my bug');
    });
    await Promise.all(failed);
    await expect(state.runText('x')).rejects.toMatchObject({ status: 'INTERNAL' });
    const { snapshotId = '' } = await hook.run({ ...say('x'), detach: true });
    await hook.wait(snapshotId);
    await eventually(() => app.heard.length === 5);
    expect(Object.fromEntries(app.heard.map(({ info }) => [info.agent, info.phase]))).toEqual({
      prompt: 'prompt',
      policy: 'policy',
      state: 'transform',
      chunk: 'transform',
      hook: 'hook',
    });
    expect(app.heard.every(({ error }) => error instanceof TypeError)).toBe(true);
    expect(app.heard.every(({ info }) => info.sessionId !== undefined)).toBe(true);
  });

  test('S143 hears of a transform that fails where a session is read', async () => {
    let isBroken = false;
    await using app = listening();
    const chat = app.defineAgent({
      name: 'chat',
      model: scriptedModel(['one']),
      transform: {
        state: (state) => {
          if (isBroken) throw bug();
          return state;
        },
      },
    });
    const { sessionId } = await chat.runText('x');
    isBroken = true;
    await expect(chat.getSession(sessionId)).rejects.toMatchObject({ status: 'INTERNAL' });
    expect(app.heard.map(({ info }) => info)).toEqual([{ phase: 'transform', agent: 'chat' }]);
  });

  test('S143 hears of a background run that fails', async () => {
    await using app = listening();
    const agent = broken(app, bug());
    const { snapshotId = '', sessionId } = await agent.run({ ...say('x'), detach: true });
    await agent.wait(snapshotId);
    expect(app.heard.map(({ info }) => info)).toEqual([
      { phase: 'turn', agent: 'broken', sessionId, runId: snapshotId, turnIndex: 0 },
    ]);
  });

  test('S143 hears nothing of a turn that was refused or stopped', async () => {
    await using app = listening();
    const stop = new AbortController();
    const model = app.defineModel({ name: 'slow' }, (_, { signal }) => {
      stop.abort();
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    });
    const chat = app.defineAgent({ name: 'chat', model });
    expect(await chat.runText('x', { signal: stop.signal })).toMatchObject({
      finishReason: 'aborted',
    });
    await expect(chat.run({})).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
    await expect(
      chat.runText('x', { snapshotId: '01890000-0000-7000-8000-00000000000a' }),
    ).rejects.toMatchObject({ status: 'NOT_FOUND' });
    expect(app.heard).toEqual([]);
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('onError is broken');
      },
    ],
    ['rejects', () => Promise.reject(new Error('onError is broken'))],
  ])('S145 one that %s hurts nothing, and both errors are printed', async (_, onError) => {
    const print = vi.spyOn(console, 'error').mockImplementation(() => {});
    try {
      await using app = listening({ onError });
      const { error } = await broken(app, bug()).runText('x', { throwOnError: false });
      expect(must(error).message).toBe('my bug is here');
      await eventually(() => print.mock.calls.length === 1);
      expect(String(print.mock.calls[0])).toMatch(/onError is broken[\s\S]*my bug is here/);
    } finally {
      print.mockRestore();
    }
  });

  test('S145 without one the app prints one line, and the stack; a subscriber shows it instead', async () => {
    const print = vi.spyOn(console, 'error').mockImplementation(() => {});
    try {
      const app = waymark();
      const agent = broken(app, bug());
      const { sessionId } = await agent.runText('x', { throwOnError: false });
      expect(print).toHaveBeenCalledTimes(1);
      const lines = String(print.mock.calls[0]).split('\n');
      expect(lines[0]).toContain(`Agent "broken" failed in turn 1 (session ${sessionId}`);
      expect(lines[1]).toBe('TypeError: my bug is here');
      expect(lines[2]).toContain('errors.test.ts');
      const seen: unknown[] = [];
      const leave = app.subscribeToErrors((error) => seen.push(error));
      await agent.runText('x', { throwOnError: false });
      leave();
      expect([seen.length, print.mock.calls.length]).toEqual([1, 1]);
      await app.close();
    } finally {
      print.mockRestore();
    }
  });

  test('S143 S126 hears that a save failed, with the path that the store names; nobody else does', async () => {
    const path = '/var/lib/app/secret.db';
    const inner = memoryStore();
    const store = {
      ...inner,
      runs: {
        ...must(inner.runs),
        commit: async () => {
          throw new Error(`cannot open ${path}`);
        },
      },
    } as typeof inner;
    const app = openApp({ store });
    const heard: Heard[] = [];
    app.subscribeToErrors((error, info) => heard.push({ error, info }));
    const chat = app.defineAgent({ name: 'chat', model: scriptedModel(['one']) });
    const output = await chat.runText('x', { throwOnError: false });
    expect(heard.map(({ info }) => info.phase)).toEqual(['store']);
    expect(must(heard[0]).error).toMatchObject({ cause: { message: `cannot open ${path}` } });
    expect(JSON.stringify(output)).not.toContain(path);
    await app.close();
  });

  test('S143 hears once of a store that is away, however often it is looked for runs', async () => {
    const inner = memoryStore();
    const runs = must(inner.runs);
    let isAway = true;
    const takeOver: typeof runs.takeOver = async (request) => {
      if (isAway) throw new Error('away');
      return await runs.takeOver(request);
    };
    await using app = listening({ store: { ...inner, runs: { ...runs, takeOver } }, work: false });
    app.defineAgent({ name: 'chat', model: scriptedModel([]) });
    for (let looks = 0; looks < 3; looks++) await app.engine.recover();
    expect(app.heard.map(({ info }) => info)).toEqual([{ phase: 'run', agent: 'chat' }]);
    isAway = false;
    await app.engine.recover();
    isAway = true;
    await app.engine.recover();
    expect(app.heard).toHaveLength(2);
  });
});
