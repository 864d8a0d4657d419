import { expect, vi } from 'vitest';
import type { Status } from '../../core/error.ts';
import { createIds } from '../../core/id.ts';
import { toJson } from '../../core/json/json.ts';
import { systemClock } from '../../core/time.ts';
import type { Message } from '../../protocol/message.ts';
import type { State } from '../../protocol/state.ts';
import {
  emptyState,
  fromPlainState,
  hashState,
  type SessionState,
  toPlainState,
} from '../../session/session-state.ts';
import type {
  AbortSupport,
  Claim,
  ClaimRequest,
  Committed,
  CommitWrite,
  EffectSupport,
  EventSupport,
  FileSupport,
  MaintenanceSupport,
  MemorySupport,
  RunSupport,
  Scope,
  SpendSupport,
  StateBase,
  Store,
  TimelineSupport,
} from '../../store/contract/store.ts';

/** A store that has been opened for one test. */
export interface OpenedStore {
  /** The store to test. */
  readonly store: Store;
  /** Closes the store and opens it again on the same data, as another process would. */
  readonly reopen?: () => Promise<Store>;
  /** Closes the store after the test. */
  readonly close: () => Promise<void>;
  /** Advances the store's clock. Without it the tests wait in real time. */
  readonly advance?: (ms: number) => void | Promise<void>;
  /** `false`: the store is encrypted, and a search does not find the text of messages. @default true */
  readonly searchesText?: boolean;
  /** The raw content of the store, to check that deleted content is gone. */
  readonly dump?: () => Promise<string>;
}

/** The helpers of the contract tests: the store, and shortcuts for turns. */
export interface Kit {
  readonly store: Store;
  readonly runs: RunSupport;
  readonly abort: AbortSupport;
  readonly events: EventSupport;
  readonly timeline: TimelineSupport;
  readonly maintenance: MaintenanceSupport;
  readonly spend: SpendSupport;
  readonly files: FileSupport;
  readonly memory: MemorySupport;
  readonly effects: EffectSupport;
  readonly opened: OpenedStore;
  /** The same helpers over the reopened store. */
  readonly reopen: () => Promise<Kit>;
  readonly scope: Scope;
  /** A new snapshot id. */
  readonly id: () => string;
  /** The time to live of a claim that a test lets expire. */
  readonly ttl: number;
  /** Lets claims with {@link Kit.ttl} expire. */
  readonly expire: () => Promise<void>;
  /** Lets this much time pass. */
  readonly pass: (ms: number) => Promise<void>;
  /** Lets enough time pass for two writes to have different timestamps. */
  readonly tick: () => Promise<void>;
  /** Claims a session at its head, by default for a minute. */
  readonly claim: (
    sessionId: string,
    request?: Partial<ClaimRequest>,
    scope?: Scope,
  ) => Promise<Claim>;
  /** Commits a claimed turn with a state derived from the claim's parent. */
  readonly commit: (claim: Claim, write?: TurnWrite, scope?: Scope) => Promise<Committed>;
  /** A whole turn: claim, one message each of user and model, commit. */
  readonly turn: (sessionId: string, write?: TurnWrite & ClaimChange) => Promise<Committed>;
  /** The messages of a snapshot, without marks. */
  readonly textsOf: (lookup: Parameters<Store['getSnapshot']>[1]) => Promise<readonly string[]>;
}

/** Returns the kit of the running test. */
export type UseKit = () => Kit;

/** Options of a commit. */
export interface TurnWrite extends Partial<Omit<CommitWrite, 'state'>> {
  /** The text of the user's message; the model answers with the same in capitals. */
  readonly text?: string;
  /** The state to write, instead of the parent's with two more messages. */
  readonly state?: SessionState;
}

type ClaimChange = { readonly request?: Partial<ClaimRequest>; readonly scope?: Scope };

/** A message of one text. */
export function say(role: 'user' | 'model', text: string): Message {
  return toJson({ role, content: [{ text }] }, 'message') as unknown as Message;
}

/** A state of plain parts. */
export function stateOf(plain: State): SessionState {
  return fromPlainState(plain);
}

/** The state with an exchange appended. */
export function exchange(state: SessionState, text: string): SessionState {
  const messages = [say('user', text), say('model', text.toUpperCase())];
  return { ...state, history: state.history.append(messages) };
}

/** The texts of a plain state's messages. */
export function texts(state: State | undefined): string[] {
  return (state?.messages ?? []).map(({ content }) => {
    const [part] = content;
    return part !== undefined && 'text' in part ? part.text : '';
  });
}

/** The snapshot ids of the messages that were read, by position. */
export function marksIn(state: State | undefined): Record<number, unknown> {
  const marks: Record<number, unknown> = {};
  (state?.messages ?? []).forEach(({ metadata }, place) => {
    const mark = metadata?.snapshotId;
    if (mark !== undefined) marks[place] = mark;
  });
  return marks;
}

/** A state as it would be read, without marks. */
export function plain(state: SessionState): State {
  return toPlainState(state);
}

/** Expects a call to be rejected with a status. */
export async function refused(
  call: Promise<unknown>,
  status: Status,
  details?: object,
): Promise<void> {
  const error: unknown = await call.then(
    (value) => expect.fail(`expected ${status}, but it resolved to ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({ name: 'WaymarkError', status, ...(details && { details }) });
}

/** Counts the notifications of a listener; `next` waits for one and resets the counter. */
export function heard(listen: (listener: () => void) => () => void): {
  readonly next: () => Promise<void>;
  readonly count: () => number;
  readonly leave: () => void;
} {
  let count = 0;
  const leave = listen(() => {
    count++;
  });
  return {
    async next() {
      await vi.waitFor(() => expect(count).toBeGreaterThan(0), { timeout: 60_000, interval: 5 });
      count = 0;
    },
    count: () => count,
    leave,
  };
}

const id = createIds(systemClock);

const isClocked = (opened: OpenedStore): boolean => opened.advance !== undefined;

/** Creates the helpers of one test over its store. */
export function createKit(
  opened: OpenedStore,
  scope: Scope = { agent: `agent-${id()}` },
  store: Store = opened.store,
): Kit {
  const ttl = isClocked(opened) ? 1000 : 60;
  const pass = async (ms: number): Promise<void> =>
    opened.advance === undefined ? systemClock.sleep(ms) : opened.advance(ms);
  const runs = (): RunSupport => need(store.runs, 'runs');

  const claim: Kit['claim'] = (sessionId, request = {}, inScope = scope) =>
    runs().claim(inScope, {
      runId: id(),
      sessionId,
      from: 'head',
      mode: 'attached',
      inputs: [{ message: say('user', 'input') }],
      ttl: 60_000,
      worker: 'a worker',
      ...request,
    });

  const baseOf = async (held: Claim, inScope: Scope): Promise<StateBase | undefined> =>
    held.parent && (await runs().load(inScope, { snapshotId: held.parent.snapshotId }));

  const commit: Kit['commit'] = async (held, write = {}, inScope = scope) => {
    const { text = 'hello', ...rest } = write;
    const base = rest.base ?? (await baseOf(held, inScope));
    const state = rest.state ?? exchange(base?.state ?? emptyState, text);
    return runs().commit(held, {
      snapshotId: held.runId,
      ...(base === undefined ? {} : { base, parentId: base.snapshotId }),
      turnIndex: held.parent === undefined ? 0 : held.parent.turnIndex + 1,
      event: 'turnEnd',
      status: 'succeeded',
      finishReason: 'stop',
      end: true,
      stateHash: hashState(state),
      ...rest,
      state,
    });
  };

  return {
    store,
    get runs() {
      return runs();
    },
    get abort() {
      return need(store.abort, 'abort');
    },
    get events() {
      return need(store.events, 'events');
    },
    get timeline() {
      return need(store.timeline, 'timeline');
    },
    get maintenance() {
      return need(store.maintenance, 'maintenance');
    },
    get spend() {
      return need(store.spend, 'spend');
    },
    get files() {
      return need(store.files, 'files');
    },
    get memory() {
      return need(store.memory, 'memory');
    },
    get effects() {
      return need(store.effects, 'effects');
    },
    opened,
    reopen: async () => createKit(opened, scope, await need(opened.reopen, 'way to reopen')()),
    scope,
    id,
    ttl,
    expire: () => pass(ttl * 2),
    pass,
    tick: () => pass(5),
    claim,
    commit,
    turn: async (sessionId, { request, scope: inScope = scope, ...write } = {}) =>
      commit(await claim(sessionId, request, inScope), write, inScope),
    textsOf: async (lookup) => texts((await store.getSnapshot(scope, lookup))?.state),
  };
}

function need<Part>(part: Part | undefined, name: string): Part {
  return part ?? expect.fail(`the store has no ${name}`);
}
