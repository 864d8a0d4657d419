import { contentHash, formerContentHash, sha256 } from '../core/json/hash.ts';
import { Branded, type Json, toJson } from '../core/json/json.ts';
import { withoutTree } from '../protocol/artifacts.ts';
import type { Message } from '../protocol/message.ts';
import type { Artifact, State } from '../protocol/state.ts';
import { History } from './history.ts';

/** A session's state in memory: immutable, shared between versions, deeply frozen. */
export interface SessionState {
  /** The messages. */
  readonly history: History;
  /** The custom state. */
  readonly custom: Json | undefined;
  /** The artifacts, after the tree of the workspace if there is one: see `withTree`. */
  readonly artifacts: readonly Artifact[];
}

const noArtifacts: readonly Artifact[] = toJson([], 'artifacts') as readonly never[];

/** The state of a session in which nothing has happened. */
export const emptyState: SessionState = {
  history: History.empty,
  custom: undefined,
  artifacts: noArtifacts,
};

/** The hash of a state, on the state itself: there are as many states as sessions. */
class Hashed extends Branded {
  readonly #hash: string;

  constructor(state: SessionState, hash: string) {
    super(state);
    this.#hash = hash;
  }

  static of(state: SessionState): string | undefined {
    return #hash in state ? state.#hash : undefined;
  }
}

/**
 * The content address of a state: SHA-256 over the message chain, the hash of the custom state and the hash of the
 * artifacts, joined by line feeds, each empty when there is nothing. Computed once per state, from what is new in it.
 */
export function hashState(state: SessionState): string {
  const known = Hashed.of(state);
  if (known !== undefined) return known;
  const hash = hashWith(state, contentHash);
  // A store may have frozen it.
  if (Object.isExtensible(state)) new Hashed(state, hash);
  return hash;
}

/** Whether two states have the same content. Most states are compared without their hashes, and so is a state with itself. */
export function isSameState(a: SessionState, b: SessionState): boolean {
  return a === b || (a.history.length === b.history.length && hashState(a) === hashState(b));
}

/** The parts of a state that its hash is computed from. */
interface HashedState extends Omit<SessionState, 'history'> {
  /** The messages. */
  readonly history: Pick<History, 'chain'>;
}

/** Whether a hash is that of a state, by the present definition of content hashes or by the one before it. */
export function isStateHash(state: HashedState, hash: string): boolean {
  return hashWith(state, contentHash) === hash || hashWith(state, formerContentHash) === hash;
}

/** The content address of a state by the first definition of content hashes. Costs the whole state. */
export function formerHashState(state: SessionState): string {
  return hashWith(state, formerContentHash);
}

function hashWith(state: HashedState, hashOf: (value: Json) => string): string {
  const custom = state.custom === undefined ? '' : hashOf(state.custom);
  const artifacts = state.artifacts.length === 0 ? '' : hashOf(state.artifacts as unknown as Json);
  return sha256(`${state.history.chain()}\n${custom}\n${artifacts}`);
}

/** A message without the mark that reading put on it, so that what was read can be put back unchanged. */
export function withoutMark(message: Message): Message {
  if (message.metadata === undefined) return message;
  const { snapshotId, ...rest } = message.metadata;
  if (snapshotId === undefined && Object.keys(rest).length > 0) return message;
  const { metadata: __, ...bare } = message;
  return Object.keys(rest).length === 0 ? bare : { ...bare, metadata: rest };
}

/** The last message of a turn with the id of the turn's snapshot, as in a state that was read. */
export function markedAs(message: Message, snapshotId: string | undefined): Message {
  if (snapshotId === undefined) return message;
  return { ...message, metadata: { ...message.metadata, snapshotId } };
}

/** The in-memory form of a plain state that has been parsed. */
export function fromPlainState(plain: State): SessionState {
  return {
    history: historyFrom(plain.messages ?? []),
    custom: plain.custom === undefined ? undefined : toJson(plain.custom, 'custom'),
    artifacts:
      plain.artifacts === undefined || plain.artifacts.length === 0
        ? noArtifacts
        : (toJson(plain.artifacts, 'artifacts') as unknown as readonly Artifact[]),
  };
}

function historyFrom(messages: readonly Message[]): History {
  const frozen = (message: Message): Message =>
    toJson(withoutMark(message), 'message') as unknown as Message;
  return historyOf(messages) ?? History.of(messages.map(frozen));
}

/** The plain form of a state: what leaves. `marks` has the snapshot that a turn ended with, by the place of the
 * turn's last message, which gets it as `metadata.snapshotId`. */
export function toPlainState(
  state: SessionState,
  options: { readonly sessionId?: string; readonly marks?: ReadonlyMap<number, string> } = {},
): State {
  const { marks } = options;
  const messages = marks?.size ? state.history.toArray() : toKnownMessages(state.history);
  mark(messages, marks);
  return {
    ...(options.sessionId === undefined ? {} : { sessionId: options.sessionId }),
    messages,
    ...documentsOf(state),
  };
}

/** A page of the messages of a state, which are the caller's own, together with the rest of it. */
export function toPlainPage(
  state: Omit<SessionState, 'history'>,
  messages: Message[],
  {
    from,
    total,
    marks,
  }: { readonly from: number; readonly total: number; readonly marks: ReadonlyMap<number, string> },
): {
  readonly state: State;
  readonly messageRange: { readonly from: number; readonly total: number };
} {
  mark(messages, marks, from);
  return { state: { messages, ...documentsOf(state) }, messageRange: { from, total } };
}

function mark(messages: Message[], marks: ReadonlyMap<number, string> | undefined, from = 0): void {
  for (const [place, snapshotId] of marks ?? []) {
    const message = messages[place - from];
    if (message !== undefined) messages[place - from] = markedAs(message, snapshotId);
  }
}

function documentsOf(state: Omit<SessionState, 'history'>): Pick<State, 'custom' | 'artifacts'> {
  const artifacts = withoutTree(state.artifacts);
  return {
    ...(state.custom === undefined ? {} : { custom: state.custom }),
    ...(artifacts.length === 0 ? {} : { artifacts: [...artifacts] }),
  };
}

/** The histories of the arrays that {@link toKnownMessages} returned. */
const knownHistories = new WeakMap<object, History>();

/**
 * Messages from which on a history is known again. Comparing fewer takes about a microsecond, and the mark holds 370 bytes:
 * a fifth of what an idle session of a few turns is, and there may be thousands.
 */
const minKnownLength = 16;

/** The messages of a history as the caller's own array, by which {@link historyOf} knows it again when it is long. */
export function toKnownMessages(history: History): Message[] {
  const messages = history.toArray();
  if (messages.length >= minKnownLength) knownHistories.set(messages, history);
  return messages;
}

/**
 * The history that an array of messages was given out for, if the array still holds just these. A caller who keeps the
 * state of a conversation brings all of it back with each turn: what was checked and hashed before need not be again.
 */
export function historyOf(messages: object): History | undefined {
  if (!Array.isArray(messages)) return undefined;
  const history = knownHistories.get(messages);
  return history?.consistsOf(messages) ? history : undefined;
}

/** A snapshot on the path to a state: how many messages it had, and the chain over them. */
interface PathSnapshot {
  /** The id of the snapshot. */
  readonly snapshotId: string;
  /** 0: leaves no mark (it has no messages, is not listed, did not succeed, or lies within a turn). */
  readonly length: number;
  /** The hash of its messages. */
  readonly chain: () => string;
}

/**
 * Which message of a history was the last of which turn, by the snapshots on its path, root first. A snapshot whose
 * messages are no longer the beginning of this history, because it was trimmed or rewritten since, leaves no mark. Of two
 * that end at the same message the later one counts.
 */
export function pathSnapshotsOf(
  history: History,
  path: readonly PathSnapshot[],
): ReadonlyMap<number, string> {
  const marks = new Map<number, string>();
  for (const { snapshotId, length, chain } of path) {
    if (length === 0 || length > history.length) continue;
    if (history.chain(length) === chain()) marks.set(length - 1, snapshotId);
  }
  return marks;
}
