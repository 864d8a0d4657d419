import { failedPrecondition, invalid, WaymarkError } from '../../core/error.ts';
import { sha256 } from '../../core/json/hash.ts';
import { hmacSha256, timingSafeEqual } from '../../core/platform.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import {
  emptyState,
  formerHashState,
  fromPlainState,
  hashState,
  type SessionState,
} from '../../session/session-state.ts';
import type { Scope, SnapshotStore } from '../../store/contract/store.ts';
import type { ClientStateOptions } from '../contract/spec.ts';

export interface SignatureSubject {
  readonly agent: string;
  readonly owner: string | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
}

const minSecretBytes = 32;

/** Refuses secrets that protect nothing, at the definition of the agent. */
export function checkClientState(name: string, { secret, maxAge }: ClientStateOptions): void {
  const secrets: readonly unknown[] = Array.isArray(secret) ? secret : [secret];
  if (secrets.length === 0 || !secrets.every(isStrong)) {
    throw invalid(
      `The \`clientState.secret\` of agent "${name}" must be a text of at least ${minSecretBytes} bytes, or several. Is the environment variable it comes from set? \`openssl rand -base64 32\` makes one.`,
    );
  }
  if (maxAge !== undefined && !(maxAge > 0)) {
    throw invalid(
      `The \`clientState.maxAge\` of agent "${name}" must be a number of milliseconds above 0.`,
    );
  }
}

function isStrong(secret: unknown): secret is string {
  return typeof secret === 'string' && new TextEncoder().encode(secret).length >= minSecretBytes;
}

/** The signature of a client-held state: when it was made, and a MAC over its content and what it was made for. */
export function signState(
  { secret, bindOwner = false }: ClientStateOptions,
  { agent, owner, now }: SignatureSubject,
  state: State,
): string {
  const [first = ''] = secretsOf(secret);
  const time = now.toString(36);
  const subject = { agent, owner: bindOwner ? owner : undefined, time };
  const content = withMarks(hashState(fromPlainState(state)), state);
  return `${time}.${macOf(first, subject, { sessionId: state.sessionId, content })}`;
}

/** Refuses a state that was changed since it was signed, is too old, or was signed for another agent or owner. */
export function checkSignature(
  options: ClientStateOptions,
  { agent, owner, now }: SignatureSubject,
  state: State,
): void {
  const { secret, maxAge, bindOwner = false } = options;
  const { seal = '', ...rest } = state;
  const [time = '', mac] = seal.split('.', 2);
  // Version 0.1 signed neither a time nor an owner.
  const old = mac === undefined && maxAge === undefined && !bindOwner;
  const subject = { agent, owner: bindOwner ? owner : undefined, time };
  const isSigned = (content: string): boolean =>
    secretsOf(secret).some((each) => {
      const known = { ...rest, content };
      return timingSafeEqual(
        mac ?? seal,
        old ? firstMacOf(each, agent, known) : macOf(each, subject, known),
      );
    });
  const plain = fromPlainState(rest);
  // Versions up to 0.1 signed the former hash.
  const isGenuine =
    isSigned(withMarks(hashState(plain), rest)) ||
    isSigned(withMarks(formerHashState(plain), rest));
  if (!isGenuine) {
    throw new WaymarkError(
      'PERMISSION_DENIED',
      `The signature of the state does not match. Send back the state of an output of agent "${agent}" unchanged${bindOwner ? ', as the same user' : ''}.`,
    );
  }
  if (maxAge !== undefined && now - Number.parseInt(time, 36) > maxAge) {
    throw new WaymarkError(
      'PERMISSION_DENIED',
      `The state is older than agent "${agent}" accepts. Start a new conversation.`,
    );
  }
}

/** A hash together with what it leaves out: the snapshot ids that the messages name. Most states name none. */
function withMarks(hash: string, { messages = [] }: State): string {
  const marks = messages.flatMap(({ metadata }, place) =>
    metadata?.snapshotId === undefined ? [] : [[place, metadata.snapshotId]],
  );
  return marks.length === 0 ? hash : `${hash} ${JSON.stringify(marks)}`;
}

function secretsOf(secret: ClientStateOptions['secret']): readonly string[] {
  return typeof secret === 'string' ? [secret] : secret;
}

interface SignedContent {
  readonly sessionId?: string | undefined;
  readonly content: string;
}

function macOf(
  secret: string,
  { agent, owner, time }: Pick<SignatureSubject, 'agent' | 'owner'> & { readonly time: string },
  { sessionId, content }: SignedContent,
): string {
  const place = [agent, owner ?? null, sessionId ?? '', time];
  return hmacSha256(secret, JSON.stringify(['waymark.state.2', ...place, content]));
}

function firstMacOf(secret: string, agent: string, { sessionId, content }: SignedContent): string {
  const place = [agent, sessionId ?? ''];
  return hmacSha256(secret, JSON.stringify(['waymark.state', ...place, content]));
}

interface AnsweredState {
  readonly sessionId: string;
  readonly state: SessionState;
  readonly now: string;
}

/** Names an interrupted state: the same for every copy of it that a client sends back. */
export function answeredStateKey({
  sessionId,
  state,
}: Pick<AnsweredState, 'sessionId' | 'state'>): string {
  return sha256(JSON.stringify(['waymark.answered', sessionId, hashState(state)]));
}

/**
 * Records that an interrupted state was answered; `FAILED_PRECONDITION` when it was before. The record is a snapshot without
 * content in a separate scope, so that every store can keep it in one atomic step.
 */
export async function answerOnce(
  guard: SnapshotStore,
  { agent }: Scope,
  answered: AnsweredState,
): Promise<void> {
  const id = toUuid(answeredStateKey(answered));
  // Without the owner, so that a state that reached another owner cannot be answered a second time there.
  const scope = { agent: `${agent}.answered` };
  let isFirst = false;
  await guard.saveSnapshot(scope, id, (current) => {
    isFirst = current === undefined;
    return isFirst ? recordOf(id, answered.now) : undefined;
  });
  if (isFirst) return;
  throw failedPrecondition(
    'This interrupt has been answered already. Continue from the state of that answer.',
  );
}

function recordOf(id: string, now: string): Snapshot {
  return {
    snapshotId: id,
    sessionId: id,
    index: 0,
    turnIndex: 0,
    event: 'turnEnd',
    status: 'succeeded',
    createdAt: now,
    updatedAt: now,
    stateHash: hashState(emptyState),
    orphaned: false,
    state: {},
  };
}

// Version 8: an id of our own making (RFC 9562).
function toUuid(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
