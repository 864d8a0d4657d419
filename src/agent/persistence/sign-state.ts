import { WaymarkError } from '../../core/error.ts';
import { hmacSha256, timingSafeEqual } from '../../core/platform.ts';
import type { State } from '../../protocol/state.ts';
import { formerHashState, fromPlainState, hashState } from '../../session/session-state.ts';
import type { ClientStateOptions } from '../spec/client-state.ts';

/** What a signature is made for. */
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
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `The \`clientState.secret\` of agent "${name}" must be a text of at least ${minSecretBytes} bytes, or several. Is the environment variable it comes from set? \`openssl rand -base64 32\` makes one.`,
    );
  }
  if (maxAge !== undefined && !(maxAge > 0)) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
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

/** What is signed of a state: its session, and its hash. */
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
