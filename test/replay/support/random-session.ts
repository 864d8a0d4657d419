import fc from 'fast-check';
import { type App, agentTool, type Store, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

/** What is said or done next. */
export type Deed =
  | 'say'
  | 'note'
  | 'notes'
  | 'draft'
  | 'fault'
  | 'clear'
  | 'ask'
  | 'answer'
  | 'decline'
  | 'pay'
  | 'approve'
  | 'edit'
  | 'helper'
  | 'fail'
  | 'stop'
  | 'detach'
  | 'twice'
  | 'branch'
  | 'restore'
  | 'fork';

const deeds: readonly Deed[] = [
  'say',
  'note',
  'note',
  'notes',
  'draft',
  'fault',
  'clear',
  'ask',
  'answer',
  'decline',
  'pay',
  'approve',
  'edit',
  'helper',
  'helper',
  'fail',
  'stop',
  'detach',
  'twice',
  'branch',
  'restore',
  'fork',
];

/** A session as a list of deeds. */
export interface Life {
  readonly policy: 'default' | 'always' | 'some';
  readonly deeds: readonly { readonly kind: Deed; readonly which: number }[];
}

export const lives: fc.Arbitrary<Life> = fc.record({
  policy: fc.constantFrom('default', 'default', 'always', 'some'),
  deeds: fc.array(fc.record({ kind: fc.constantFrom(...deeds), which: fc.nat(20) }), {
    minLength: 2,
    maxLength: 14,
  }),
});

const state = z.object({ notes: z.array(z.string()) });

/** The app whose sessions are recorded: agents with tools that change the state, ask, fail and call another agent. */
export function openRandomApp(store: Store): App {
  const model = scriptedModel({
    patterns: [
      [/^note (\d+)/, ([, n = '']) => ({ toolCalls: [{ name: 'note', input: { text: n } }] })],
      [
        /^notes (\d+)/,
        ([, n = '']) => ({
          text: 'Several.',
          toolCalls: ['slow', 'b', 'c'].map((text) => ({
            name: 'note',
            input: { text: text + n },
          })),
        }),
      ],
      [/^draft/, { toolCalls: [{ name: 'draft' }, { name: 'note', input: { text: 'd' } }] }],
      [/^fault/, { toolCalls: [{ name: 'fault' }] }],
      [/^clear/, { toolCalls: [{ name: 'clear' }] }],
      [/^ask/, { toolCalls: [{ name: 'ask' }, { name: 'note', input: { text: 'asked' } }] }],
      [/^pay/, { toolCalls: [{ name: 'pay', input: { amount: 1 } }] }],
      [
        /^helper (\d+)/,
        ([text]) => ({
          toolCalls: [{ name: 'helper', input: { message: text.replace('helper', 'note') } }],
        }),
      ],
      [/^fail/, { text: 'half', error: new Error('on purpose') }],
      [/^stop/, { chunks: ['half'], hang: true }],
      [/.*/, ([text]) => `re ${text}`],
    ],
    afterTools: (_, results) => `done ${JSON.stringify(results).slice(0, 200)}`,
    otherwise: 'x',
  });
  const app = waymark({ store, model, onError: () => {} });
  defineAgents(app);
  return app;
}

function defineAgents(app: App): void {
  const tools = defineTools(app);
  const withState = { state, initialState: { notes: [] } };
  const helper = app.defineAgent({ name: 'helper', ...withState, tools: [tools.note] });
  const all = [...Object.values(tools), agentTool(helper)];
  for (const [policy, snapshot] of Object.entries(policies)) {
    app.defineAgent({ name: policy, ...withState, tools: all, ...(snapshot && { snapshot }) });
  }
}

const policies = {
  default: undefined,
  always: 'always',
  some: ({ turnIndex }: { turnIndex: number }) => turnIndex % 2 === 0,
} as const;

function defineTools(app: App) {
  return {
    note: app.defineTool(
      { name: 'note', description: 'Notes.', input: z.object({ text: z.string() }), state },
      async ({ text }, { session }) => {
        // The first of several changes the state last.
        if (text.startsWith('slow')) for (let at = 0; at < 20; at++) await Promise.resolve();
        session.updateCustom((draft) => void draft.notes.push(text));
        session.addArtifacts({ name: 'notes', parts: [{ text: session.custom.notes.join() }] });
        return session.custom.notes.length;
      },
    ),
    draft: app.defineTool({ name: 'draft', description: 'Drafts.' }, (_, { session, attach }) => {
      session.addArtifacts({ name: 'draft', parts: [{ text: 'word '.repeat(2_000) }] });
      session.addArtifacts({ parts: [{ text: `unnamed ${session.artifacts.length}` }] });
      attach({ media: { url: 'data:,x' } });
      return 'drafted';
    }),
    fault: app.defineTool({ name: 'fault', description: 'Fails.', state }, (_, { session }) => {
      session.updateCustom((draft) => void draft.notes.push('before the fault'));
      throw new Error('on purpose');
    }),
    clear: app.defineTool({ name: 'clear', description: 'Clears.', state }, (_, { session }) => {
      session.setCustom({ notes: [] });
      session.setArtifacts(session.artifacts.slice(0, 1));
      return null;
    }),
    ask: app.defineInterrupt({ name: 'ask', description: 'Asks.' }),
    pay: app.defineTool(
      { name: 'pay', description: 'Pays.', input: z.object({ amount: z.number() }), state },
      ({ amount }, { session, resumed, interrupt }) => {
        session.updateCustom((draft) => void draft.notes.push(resumed ? 'paid' : 'asked to pay'));
        if (resumed === undefined) interrupt({ amount });
        return { paid: amount };
      },
    ),
  };
}

/** Lives through a session of an app. */
export async function live(app: App, { policy, deeds: all }: Life): Promise<void> {
  const agent = app.agent(policy);
  const quiet = { throwOnError: false };
  const first = await agent.run('hello', quiet);
  const ids: string[] = first.snapshotId === undefined ? [] : [first.snapshotId];
  let { sessionId } = first;
  let last = first;
  for (const [at, { kind, which }] of all.entries()) {
    const text = `${kind} ${at}`;
    const from = ids[which % Math.max(1, ids.length)];
    const [asked] = last.interrupts;
    switch (kind) {
      case 'answer':
        if (asked === undefined || asked.toolName === 'pay') continue;
        last = await agent.resume(last, [asked.respond('yes')], quiet);
        break;
      case 'decline':
        if (asked === undefined) continue;
        last = await agent.resume(last, [asked.decline(which % 2 ? 'too much' : undefined)], quiet);
        break;
      case 'approve':
      case 'edit': {
        if (asked?.toolName !== 'pay') continue;
        const edited = kind === 'edit' ? { input: { amount: 2 } } : {};
        last = await agent.resume(last, [asked.approve(edited)], quiet);
        break;
      }
      case 'stop': {
        const stop = new AbortController();
        const turn = agent.stream(text, { sessionId, signal: stop.signal });
        for await (const { modelChunk } of turn.stream) if (modelChunk) stop.abort();
        last = await turn.output;
        break;
      }
      case 'detach': {
        const run = await agent.start(text, { sessionId });
        await run.wait();
        last = { ...last, interrupts: [] } as unknown as typeof last;
        ids.push(run.id);
        continue;
      }
      case 'twice': {
        const connection = agent.streamBidi({ sessionId });
        await connection.sendText(text);
        await connection.sendText(`note ${at}`);
        connection.close();
        last = (await connection.output()) as typeof last;
        break;
      }
      case 'branch':
        if (from === undefined) continue;
        last = await agent.run(text, { ...quiet, snapshotId: from });
        break;
      case 'restore':
        if (from === undefined) continue;
        await agent.restore(from);
        last = { ...last, interrupts: [] } as unknown as typeof last;
        continue;
      case 'fork': {
        if (from === undefined) continue;
        const fork = await agent.fork(from);
        ({ sessionId } = fork);
        ids.splice(0, ids.length, fork.snapshotId);
        last = { ...last, interrupts: [] } as unknown as typeof last;
        continue;
      }
      default:
        last = await agent.run(text, { ...quiet, sessionId });
    }
    if (last.snapshotId !== undefined && last.finishReason !== 'failed') ids.push(last.snapshotId);
  }
}
