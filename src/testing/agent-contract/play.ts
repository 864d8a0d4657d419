import { expect } from 'vitest';
import type { InvokeOptions } from '../../agent/contract/agent.ts';
import type { AgentConnection, WatchEvent } from '../../api/types.ts';
import { assertNever } from '../../core/error.ts';
import type { Chunk, Input, Output } from '../../protocol/turn.ts';
import { expectCursorsChecked, expectIdsChecked } from './bad-ids.ts';
import type { Pattern, Refusal, Step, StepInit, StepInput } from './case.ts';
import { expectHandles } from './handles.ts';
import { joinChunks } from './joined.ts';
import { expectMatch, matches, toldBy } from './match.ts';
import { expectRefs } from './refs.ts';
import type { Stage } from './stage.ts';

/** Executes a step, and fails if its result is not the expected one. */
export async function play(stage: Stage, raw: Step): Promise<void> {
  const step = stage.resolve(raw);
  const { agent } = stage;
  switch (step.do) {
    case 'run':
    case 'stream':
      await playTurn(stage, step);
      return;
    case 'open':
      stage.connections.set(step.connection, agent.streamBidi(toInit(step.at)));
      return;
    case 'send':
      await attempt(connectionOf(stage, step).send(toInput(step.input)), step.refused);
      return;
    case 'sendAll': {
      const connection = connectionOf(stage, step);
      await Promise.all(step.inputs.map((input) => connection.send(toInput(input))));
      return;
    }
    case 'receive':
      await playReceive(stage, step);
      return;
    case 'abort':
      connectionOf(stage, step).abort();
      return;
    case 'close':
      connectionOf(stage, step).close();
      return;
    case 'detach': {
      const { input } = step;
      const call = connectionOf(stage, step).detach(
        input === undefined ? undefined : toInput(input),
      );
      await playOutput(stage, step, call as Promise<Output>);
      return;
    }
    case 'output':
      await playOutput(stage, step, connectionOf(stage, step).output() as Promise<Output>);
      return;
    default:
      await playAround(stage, step);
  }
}

type Around = Exclude<
  Step,
  {
    readonly do:
      | 'run'
      | 'stream'
      | 'open'
      | 'send'
      | 'sendAll'
      | 'receive'
      | 'abort'
      | 'close'
      | 'detach'
      | 'output';
  }
>;

/** The steps that do not run a turn. */
async function playAround(stage: Stage, step: Around): Promise<void> {
  const { agent, model } = stage;
  switch (step.do) {
    case 'getSnapshot': {
      const snapshot = await agent.getSnapshot(step.at);
      expectMatch(snapshot ?? null, step.snapshot, 'snapshot');
      stage.keep(step.as, snapshot ?? null);
      return;
    }
    case 'listSnapshots': {
      const { items } = await agent.listSnapshots(step.sessionId, {
        includeOrphaned: step.includeOrphaned ?? false,
      });
      expectMatch(items, [...step.snapshots], 'snapshots');
      return;
    }
    case 'getSession':
      expectMatch((await agent.getSession(step.sessionId)) ?? null, step.session, 'session');
      return;
    case 'listSessions': {
      const { items } = await agent.listSessions(step.filter);
      const titles = items.map(({ title }) => title ?? '').sort();
      expect(titles, 'titles').toEqual([...step.titles].sort());
      return;
    }
    case 'wait':
      expectMatch(await agent.wait(step.id), step.snapshot, 'snapshot');
      return;
    case 'watch':
      await playWatch(stage, step);
      return;
    case 'badCursors':
      await expectCursorsChecked(agent, step.id);
      return;
    case 'chat': {
      const chat = agent.chat(toInit(step.at));
      const seen = [chat.sessionId ?? null];
      for (const input of step.inputs) {
        await chat.send(toInput(input));
        seen.push(chat.sessionId ?? null);
      }
      expectMatch(seen, [...step.sessionIds], 'session ids');
      return;
    }
    case 'diff':
      expectMatch(await agent.diff(step.from, step.to), step.diff, 'diff');
      return;
    case 'restore':
    case 'fork': {
      const snapshot = await attempt(agent[step.do](step.id, ifHeadOf(step)), step.refused);
      if (snapshot === undefined) return;
      if (step.snapshot !== undefined) expectMatch(snapshot, step.snapshot, 'snapshot');
      stage.keep(step.as, snapshot);
      return;
    }
    case 'edit': {
      const note = step.reason === undefined ? {} : { reason: step.reason };
      const edit = agent.edit(step.id, step.change, { ...ifHeadOf(step), ...note });
      const snapshot = await attempt(edit, step.refused);
      if (snapshot === undefined) return;
      if (step.snapshot !== undefined) expectMatch(snapshot, step.snapshot, 'snapshot');
      stage.keep(step.as, snapshot);
      return;
    }
    case 'label':
      await attempt(agent.label(step.id, step.label, ifHeadOf(step)), step.refused);
      return;
    case 'updateSession':
      expectMatch(
        await agent.updateSession(step.sessionId, step.change),
        step.session,
        'the session',
      );
      return;
    case 'deleteSession': {
      const deleted = await attempt(agent.deleteSession(step.sessionId), step.refused);
      if (step.deleted !== undefined) expect(deleted, 'deleted').toBe(step.deleted);
      return;
    }
    case 'abortSnapshot':
      expect((await agent.abort(step.id)) ?? null, 'status after the abort').toBe(step.status);
      return;
    case 'asked':
      expectAsked(model.requests, step);
      return;
    case 'stopped':
      expect(model.stops, 'stops of the model').toBe(step.times);
      return;
    case 'badIds':
      await expectIdsChecked(agent, step.id);
      return;
    case 'handles':
      await expectHandles(stage);
      return;
    case 'refs':
      await expectRefs(stage);
      return;
    case 'restart':
      await stage.restart();
      return;
    default:
      assertNever(step);
  }
}

function expectAsked(
  requests: Stage['model']['requests'],
  { told, calls, tools }: Extract<Step, { readonly do: 'asked' }>,
): void {
  const last = requests.at(-1);
  expect(toldBy(last?.messages ?? [])).toEqual(told);
  if (calls !== undefined) expect(requests, 'calls').toHaveLength(calls);
  if (tools !== undefined) expect(last?.tools.map(({ name }) => name)).toEqual(tools);
}

async function playTurn(
  stage: Stage,
  step: Extract<Step, { readonly do: 'run' | 'stream' }>,
): Promise<void> {
  const input = toInput(step.input);
  if (step.do === 'run') {
    await playOutput(
      stage,
      step,
      stage.agent.run(input, { ...toInit(step.at), throwOnError: false }) as Promise<Output>,
    );
    return;
  }
  const turn = stage.agent.stream(input, toInit(step.at));
  const chunks: Chunk[] = [];
  const read = async (): Promise<Output> => {
    for await (const chunk of turn.stream) chunks.push(chunk as Chunk);
    return (await turn.output) as Output;
  };
  await playOutput(stage, step, read());
  if (step.chunks !== undefined) expectChunks(chunks, step.chunks);
}

async function playOutput(
  stage: Stage,
  step: { readonly as?: string; readonly output?: Pattern; readonly refused?: Refusal },
  call: Promise<Output>,
): Promise<void> {
  const output = await attempt(call, step.refused);
  if (output === undefined) return;
  if (step.output !== undefined) expectMatch(output, step.output, 'output');
  stage.keep(step.as, output);
}

async function playReceive(
  stage: Stage,
  step: Extract<Step, { readonly do: 'receive' }>,
): Promise<void> {
  const chunks: Chunk[] = [];
  for await (const chunk of connectionOf(stage, step).receive()) {
    chunks.push(chunk as Chunk);
    if (!matches(chunk, step.until)) continue;
    stage.keep(step.as, chunk);
    if (step.chunks !== undefined) expectChunks(chunks, step.chunks);
    return;
  }
  expect.fail(`no chunk like ${JSON.stringify(step.until)} came, only ${JSON.stringify(chunks)}`);
}

async function playWatch(
  stage: Stage,
  step: Extract<Step, { readonly do: 'watch' }>,
): Promise<void> {
  const { id, after, events } = step;
  const chunks: Extract<WatchEvent, { readonly type: 'chunk' }>[] = [];
  const others: WatchEvent[] = [];
  for await (const event of stage.agent.watch(id, { ...(after !== undefined && { after }) })) {
    if (event.type === 'chunk') chunks.push(event);
    else others.push(event);
  }
  const ids = chunks.map((event) => event.id);
  expect(new Set(ids).size, 'no event comes twice').toBe(ids.length);
  stage.keep(step.as, { ids });
  const seen = joinChunks(chunks.map((event) => ({ ...event, chunk: event.chunk as Chunk })));
  expectMatch([...seen, ...others], [...events], 'events');
}

function expectChunks(chunks: readonly Chunk[], patterns: readonly Pattern[]): void {
  const joined = joinChunks(chunks.map((chunk) => ({ chunk })));
  expectMatch(
    joined.map(({ chunk }) => chunk),
    [...patterns],
    'chunks',
  );
}

function connectionOf(stage: Stage, step: { readonly connection: string }): AgentConnection {
  const { connection } = step;
  return stage.connections.get(connection) ?? expect.fail(`no connection "${connection}" is open`);
}

function ifHeadOf({ ifHead }: { readonly ifHead?: string }): { readonly ifHead?: string } {
  return ifHead === undefined ? {} : { ifHead };
}

function toInit({ state, ...ids }: StepInit = {}): InvokeOptions {
  if (typeof state === 'string') expect.fail(`"${state}" is no state`);
  return { ...ids, ...(state && { state }) };
}

function toInput(input: StepInput): Input {
  return typeof input === 'string'
    ? { message: { role: 'user', content: [{ text: input }] } }
    : input;
}

/** The value of a call, or `undefined` if it was rejected as expected. */
async function attempt<Value>(
  call: Promise<Value>,
  refusal: Refusal | undefined,
): Promise<Value | undefined> {
  if (refusal === undefined) return await call;
  const error: unknown = await call.then(
    (value) => expect.fail(`expected ${refusal.status}, but got ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({ name: 'WaymarkError', ...refusal });
  return undefined;
}
