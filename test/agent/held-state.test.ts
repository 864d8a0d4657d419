import fc from 'fast-check';
import { expect, test } from 'vitest';
import { modelMessage, userMessage } from '../../src/messages/index.ts';
import type { Message } from '../../src/protocol/message.ts';
import type { State } from '../../src/protocol/state.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { must, openApp, refused, type TestApp } from './support/kit.ts';

// A caller that holds the state gets the same objects back as it gave, and may do with its arrays what it likes.

function define(app: TestApp) {
  const model = scriptedModel({ patterns: [], otherwise: 'ok' });
  const agent = app.defineAgent({ name: 'chat', store: false, model });
  const asked = (): readonly Message[] => must(model.requests.at(-1)).messages;
  return { agent, asked };
}

// A long one is known again; a short one is looked at anew.
const lengths = [3, 10];

async function converse({ agent }: ReturnType<typeof define>, turns: number): Promise<State> {
  const chat = agent.chat();
  for (let turn = 0; turn < turns; turn++) await chat.send(`turn ${turn}`);
  return must(chat.state) as State;
}

test.each(lengths)(
  'S83 what a caller does to the messages of %i turns is what the next one starts from',
  async (turns) => {
    await using app = openApp({ storeless: true });
    const kit = define(app);
    const edit = fc.oneof(
      fc.constant((messages: Message[]) => void messages.push(userMessage('pushed'))),
      fc.constant((messages: Message[]) => void messages.pop()),
      fc.constant((messages: Message[]) => void messages.reverse()),
      fc.nat({ max: 20 }).map((at) => (messages: Message[]) => void messages.splice(at, 1)),
      fc.nat({ max: 20 }).map((at) => (messages: Message[]) => {
        messages[Math.min(at, messages.length)] = modelMessage('other');
      }),
      fc.nat({ max: 20 }).map((at) => (messages: Message[]) => {
        messages[Math.min(at, messages.length)] = messages[0] ?? userMessage('first');
      }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(edit, { maxLength: 3 }), async (edits) => {
        const state = await converse(kit, turns);
        for (const apply of edits) apply(must(state.messages));
        const plain = JSON.parse(JSON.stringify(state)) as State;
        const output = await kit.agent.runText('next', { state });
        const given = kit.asked();
        expect(given).toEqual([...must(plain.messages), userMessage('next')]);
        const fromPlain = await kit.agent.runText('next', { state: plain });
        expect(kit.asked()).toEqual(given);
        expect(output).toEqual(fromPlain);
      }),
      { numRuns: 50 },
    );
  },
);

test.each(lengths)(
  'S83 what is done to the messages of %i turns after the call does not count',
  async (turns) => {
    await using app = openApp({ storeless: true });
    const kit = define(app);
    const state = await converse(kit, turns);
    const before = [...must(state.messages)];
    const running = kit.agent.runText('next', { state });
    must(state.messages)[0] = { role: 'nobody' } as unknown as Message;
    const output = await running;
    expect(kit.asked()).toEqual([...before, userMessage('next')]);
    expect(output.state?.messages?.slice(0, -2)).toEqual(before);
  },
);

test.each(lengths)(
  'S83 a message put into a held state of %i turns is checked like any other',
  async (turns) => {
    await using app = openApp({ storeless: true });
    const kit = define(app);
    const state = await converse(kit, turns);
    must(state.messages)[2] = { role: 'nobody', content: [] } as unknown as Message;
    await refused(kit.agent.runText('next', { state }), 'INVALID_ARGUMENT');
  },
);

test.each(lengths)('S83 two turns can go on from one held state of %i turns', async (turns) => {
  await using app = openApp({ storeless: true });
  const kit = define(app);
  const state = await converse(kit, turns);
  const [left, right] = await Promise.all([
    kit.agent.runText('left', { state }),
    kit.agent.runText('right', { state }),
  ]);
  const said = (output: typeof left) => output.state?.messages?.slice(2 * turns);
  expect(state.messages).toHaveLength(2 * turns);
  expect(said(left)).toEqual([userMessage('left'), modelMessage('ok')]);
  expect(said(right)).toEqual([userMessage('right'), modelMessage('ok')]);
});
