import { readUIMessageStream, type UIMessage, type UIMessageChunk } from 'ai';
import { expect, test } from 'vitest';
import type { WatchEvent } from '../../src/api/types.ts';
import { createClient } from '../../src/client/client.ts';
import type { Message } from '../../src/protocol/message.ts';
import { appendParts, textOf } from '../../src/protocol/messages.ts';
import { outputOfSnapshot } from '../../src/protocol/snapshot-output.ts';
import { LiveTurn } from '../../src/react/live-turn.ts';
import { ResponseEncoder } from '../../src/server/openai/encode.ts';
import { serve } from '../../src/server/serve.ts';
import type { FeedEvent } from '../../src/server/stream/feed.ts';
import { UiEncoder } from '../../src/server/ui-stream/encode.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { type ScriptStep, scriptedModel } from '../../src/testing/scripted-model.ts';
import { eventually } from '../support/eventually.ts';
import { movableClock } from '../support/movable-clock.ts';
import { createGate } from './support/gate.ts';
import { all, openApp, say, type TestApp, told } from './support/kit.ts';
import { mortalStore } from './support/mortal-store.ts';

const claimTtl = 60_000;
const look = { text: 'Look. ', toolCalls: [{ name: 'note', ref: 'n' }] };
const lost = { chunks: ['lo', 'st'], hang: true };

interface Death {
  /** What the worker's model says before the worker is cut off. */
  readonly script: readonly ScriptStep[];
  /** The index of the first message that comes again. */
  readonly index: number;
  /** Steers the run while the model gives its first answer. */
  readonly steered?: boolean;
  readonly told: readonly string[];
}

const gate = createGate();
const deaths: Record<string, Death> = {
  'in its first message': {
    script: [lost],
    index: 0,
    told: ['user: go', 'model: kept'],
  },
  'after its tools': {
    script: [look, { chunks: [], hang: true }],
    index: 2,
    told: ['user: go', 'model: Look. [note?]', 'tool: [note!]', 'model: kept'],
  },
  'in its second message': {
    script: [look, lost],
    index: 2,
    told: ['user: go', 'model: Look. [note?]', 'tool: [note!]', 'model: kept'],
  },
  'in the answer to a steered message': {
    script: [gate.giving('First.'), lost],
    index: 2,
    steered: true,
    told: ['user: go', 'model: First.', 'user: more', 'model: kept'],
  },
};

const cases = Object.entries(deaths);

test.each(cases)(
  'S732 a worker dies %s: a watcher shows exactly the final messages',
  async (_, death) => {
    const { clock, advance } = movableClock();
    const store = memoryStore({ clock });
    const line = mortalStore(store);
    await using first = openApp({ store: line, claimTtl, clock });
    await using second = openApp({ store, claimTtl, clock });
    const define = (app: TestApp, script: readonly ScriptStep[]) => {
      const note = app.defineTool({ name: 'note', description: 'Notes.' }, () => 'noted');
      const model = scriptedModel(script);
      return { model, chat: app.defineAgent({ name: 'chat', model, tools: [note] }) };
    };
    const { chat, model } = define(first, death.script);
    const { snapshotId = '' } = await chat.run({ ...say('go'), detach: true });
    if (death.steered) {
      await gate.reached;
      await chat.steer(snapshotId, 'more');
      gate.open();
    }
    const { chat: heir } = define(second, [{ chunks: ['ke', 'pt'] }]);
    const server = await serve(second, { port: 0, log: () => {} });
    const remote = createClient({ url: server.url }).agent('chat');
    const watched = [all(heir.watch(snapshotId)), all(remote.watch(snapshotId))] as const;
    const isLast = death.script.at(-1) === lost;
    await eventually(async () => {
      expect(model.requests).toHaveLength(death.script.length);
      const page = await store.events?.read({ agent: 'chat' }, snapshotId, { limit: 100 });
      if (isLast) expect(JSON.stringify(page?.events)).toMatch(/"text":"(lo)?st"/);
    });
    line.cut();
    advance(2 * claimTtl);
    const ended = await heir.wait(snapshotId);
    expect(told(ended.state?.messages)).toEqual(death.told);
    for (const events of await Promise.all(watched)) {
      const resets = events.filter(({ type }) => type === 'reset');
      expect(resets).toMatchObject([{ attempt: 2, turnIndex: 0, index: death.index }]);
      expect(told(byTheRule(events as WatchEvent[]))).toEqual(death.told.slice(1));
      expect(told(inReact(events as WatchEvent[]))).toEqual(death.told.slice(1));
      const shown = (ended.state?.messages ?? []).filter(({ role }) => role === 'model');
      const answer = shown.map(textOf).join('');
      expect(await inUseChat(events as WatchEvent[])).toBe(answer);
      expect(inResponses(events as WatchEvent[])).toBe(answer);
    }
    await server.close();
    await line.heal();
  },
);

/** The messages as the documentation says: those from the index of a reset on are dropped. */
function byTheRule(events: readonly WatchEvent[]): readonly Message[] {
  const messages: Message[] = [];
  for (const event of events) {
    if (event.type === 'reset') messages.length = event.index ?? 0;
    if (event.type !== 'chunk') continue;
    const { modelChunk, steered } = event.chunk;
    if (steered) messages.push(steered);
    if (!modelChunk) continue;
    const { role = 'model', index = 0, content } = modelChunk;
    const before = messages[index]?.content ?? [];
    messages[index] = { role, content: appendParts([...before], content) };
  }
  return messages;
}

function inReact(events: readonly WatchEvent[]): readonly Message[] {
  const turn = new LiveTurn();
  for (const event of events) {
    if (event.type === 'reset') turn.reset(event);
    if (event.type !== 'chunk') continue;
    const { turnStart, modelChunk, steered } = event.chunk;
    if (turnStart) turn.start(turnStart.turnIndex);
    if (steered) turn.steer(steered);
    if (modelChunk) turn.add(modelChunk);
  }
  return turn.messages;
}

function feedOf(events: readonly WatchEvent[]): readonly FeedEvent[] {
  return events.map((event) =>
    event.type === 'end'
      ? { type: 'output', output: outputOfSnapshot(event.snapshot) }
      : (event as FeedEvent),
  );
}

async function inUseChat(events: readonly WatchEvent[]): Promise<string> {
  const encoder = new UiEncoder(false);
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of feedOf(events).flatMap((event) => encoder.encode(event)))
        controller.enqueue(chunk as never);
      controller.close();
    },
  });
  let last: UIMessage | undefined;
  for await (const message of readUIMessageStream({ stream })) last = message;
  return (last?.parts ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('');
}

function inResponses(events: readonly WatchEvent[]): string {
  const encoder = new ResponseEncoder({
    model: 'chat',
    echo: {},
    isStored: true,
    newId: () => 'x',
  });
  for (const event of feedOf(events)) {
    if (event.type === 'reset') encoder.reset(event);
    if (event.type === 'chunk') encoder.chunk(event.chunk, Number.parseInt(event.id ?? '', 10));
    if (event.type === 'output') encoder.end({ output: event.output, interrupts: [] });
  }
  const items = encoder.response?.output ?? [];
  return items.map(({ content }) => (content as { text: string }[])[0]?.text).join('');
}
