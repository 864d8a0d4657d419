import {
  type ErrorBody,
  isWaymarkError,
  messageOf,
  publicMessageOf,
  toPublicError,
  WaymarkError,
} from '../../core/error.ts';
import { diffJson } from '../../core/json/diff.ts';
import { defined, type Json, jsonEqual, toJson } from '../../core/json/json.ts';
import { applyPatch, type JsonPatch } from '../../core/json/patch.ts';
import { findJson } from '../../generate/output/find-json.ts';
import type { Message } from '../../protocol/message.ts';
import { textOf } from '../../protocol/messages.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Artifact, State } from '../../protocol/state.ts';
import { withoutRecords } from '../../protocol/tool-record.ts';
import type { Chunk, Output } from '../../protocol/turn.ts';
import { markedAs } from '../../session/session-state.ts';
import { markReported } from '../contract/error-reports.ts';
import type { Transform } from '../contract/spec.ts';

/**
 * The exit of an agent: the hooks of its definition and, beside a `state` hook, those that it lacks, so that nothing passes that
 * was not transformed. Their errors go to `report` and are marked as reported.
 */
export function completeTransform(
  transform: Transform,
  report: (error: unknown) => void,
  /** The custom state that a state hook gets where none is known. */
  custom: Json | undefined,
): Transform {
  const { state, chunk, output, title, error } = transform;
  if (!(state ?? chunk ?? output ?? title ?? error)) return transform;
  const guard =
    <Value>(what: string, fn: (value: Value) => Value | undefined) =>
    (value: Value): Value | undefined => {
      try {
        return fn(value);
      } catch (cause) {
        report(cause);
        throw transformFailed(what, cause);
      }
    };
  const guarded = state && guard('state', state);
  return {
    ...(guarded && { state: guarded, title: () => undefined, error: textsBy(guarded, custom) }),
    ...(chunk && { chunk: guard('chunk', chunk) }),
    ...(output && { output: guard('output', output) }),
    ...(title && { title: guard('title', title) }),
    ...(error && { error: guard('error', error) }),
  };
}

/** Passes the texts of an error through the state hook, as the text of a message. */
function textsBy(
  state: NonNullable<Transform['state']>,
  custom: Json | undefined,
): NonNullable<Transform['error']> {
  const shown = (text: string): string => {
    const messages = [{ role: 'model' as const, content: [{ text }] }];
    const given = { ...noState, messages, ...(custom !== undefined && { custom }) };
    return textOf(state(structuredClone(given))?.messages?.at(-1));
  };
  return ({ status, message, details }) => {
    const said = shown(message);
    // A text with an escape may look like another one to the hook.
    const json = details === undefined ? '' : JSON.stringify(details);
    const facts = json === '' || json.includes('\\') ? undefined : findJson(shown(json));
    if (said === '') return undefined;
    return { status, message: said, ...(facts !== undefined && { details: facts }) };
  };
}

/** Whether the states or titles of sessions leave as they are, and with them what a search finds. */
export function showsSessions({ state, title }: Transform): boolean {
  return state === undefined && title === undefined;
}

/**
 * A state as it may leave. A transform that throws lets nothing out. The session id always leaves, as in the output: without
 * it the next turn of a client-held state would begin another session.
 */
export function transformState(transform: Transform, state: State): State | undefined {
  if (transform.state === undefined) return state;
  const changed = transform.state(structuredClone(withoutEffects(state)));
  const { sessionId } = state;
  return changed === undefined || sessionId === undefined ? changed : { ...changed, sessionId };
}

// The record of a tool call repeats parts of the custom state and of artifacts, which the transform may remove.
function withoutEffects(state: State): State {
  return state.messages === undefined
    ? state
    : { ...state, messages: withoutRecords(state.messages) };
}

export function transformSnapshot(transform: Transform, snapshot: Snapshot): Snapshot {
  if (transform.state === undefined && transform.error === undefined) return snapshot;
  const { state, error, ...rest } = snapshot;
  const shown = state && transformState(transform, state);
  return defined({ ...rest, error: error && transformError(transform, error), state: shown });
}

export function transformSession(transform: Transform, session: SessionInfo): SessionInfo {
  if (showsSessions(transform)) return session;
  const { state, title, ...rest } = session;
  const shown = state && transformState(transform, state);
  const named = transformTitle(transform, title);
  return defined({ ...rest, title: named, state: shown });
}

export function transformTitle(
  transform: Transform,
  title: string | undefined,
): string | undefined {
  return title === undefined || transform.title === undefined ? title : transform.title(title);
}

interface Answer {
  readonly message?: Message | undefined;
  readonly artifacts?: readonly Artifact[] | undefined;
  readonly output?: Json | undefined;
  /** The snapshot of the turn, by which its message is marked. */
  readonly snapshotId?: string | undefined;
}

/** The answer of a turn as it may leave; `whole` reads the state that it belongs to. */
export function transformAnswer(
  transform: Transform,
  whole: () => State,
  answer: Answer,
): Pick<Output, 'message' | 'artifacts' | 'output'> {
  if (transform.state === undefined && transform.output === undefined) return asFields(answer);
  const { message, artifacts = [], output, snapshotId } = answer;
  const shown = transformState(transform, {
    ...whole(),
    messages: message === undefined ? [] : [message],
    artifacts: [...artifacts],
  });
  const last = shown?.messages?.at(-1);
  const hasHook = output === undefined || transform.output !== undefined;
  // Without a hook of its own, an output is what the transformed message says.
  const isSaid = !hasHook && jsonEqual(findJson(textOf(message)), output);
  const value = isSaid ? findJson(textOf(last)) : transformOutput(transform, output);
  return asFields({ message: last, artifacts: shown?.artifacts, output: value, snapshotId });
}

function asFields({
  message,
  artifacts = [],
  output,
  snapshotId,
}: Answer): Pick<Output, 'message' | 'artifacts' | 'output'> {
  return defined({
    message: message && markedAs(message, snapshotId),
    output,
    artifacts: artifacts.length > 0 ? [...artifacts] : undefined,
  });
}

/** A structured output as it may leave where its message is not known. */
function transformOutput(transform: Transform, output: Json | undefined): Json | undefined {
  if (output === undefined) return undefined;
  if (transform.output === undefined) return transform.state === undefined ? output : undefined;
  return transform.output(structuredClone(output));
}

/** The error of a turn as it may leave. In this process it keeps its message, its stack and its cause. */
export function transformError<Failure extends NonNullable<Output['error']>>(
  transform: Transform,
  error: Failure,
): Failure {
  if (transform.error === undefined) return error;
  const { status, ...body } = structuredClone(toPublicError(error)) as ErrorBody;
  const { message, details } = transform.error({ status, ...body }) ?? { message: hiddenReason };
  if (!isWaymarkError(error)) {
    return { status, message, ...(details !== undefined && { details }) } as unknown as Failure;
  }
  if (message === publicMessageOf(error) && jsonEqual(details, error.details)) return error;
  const { cause, stack } = error;
  const shown = new WaymarkError(status, error.message, {
    cause: cause ?? error,
    publicMessage: message,
    details,
  });
  if (stack !== undefined) shown.stack = stack;
  return shown as WaymarkError & Failure;
}

const hiddenReason = 'The turn failed. The transform of the agent hides the reason.';

/**
 * Chunks as they may leave, in the order of one stream. Patches of the custom state, and artifacts, are what the state
 * transform makes of them, so that a chunk tells no more than the state would. What a turn is made of always leaves.
 */
export function createChunkTransform(
  transform: Transform,
  /** The custom state, as far as it is known besides the chunks. */
  knownCustom: () => Json | undefined = () => undefined,
): (chunk: Chunk) => Chunk | undefined {
  const { state, chunk: hook, output } = transform;
  if (state === undefined && hook === undefined && output === undefined) return (chunk) => chunk;
  const filter = stateFilter(transform, knownCustom);
  return (chunk) => {
    // An edit would show more of an artifact than the transform does.
    const { turnStart, turnEnd: end, snapshotCreated, reset, artifactPatch, ...content } = chunk;
    const turnEnd = end && shownEnd(transform, end);
    const isBare = Object.keys(content).length === 0;
    if (isBare && turnEnd === end && artifactPatch === undefined) return chunk;
    const shown = isBare ? {} : filter(content);
    const changed = isBare || hook === undefined ? shown : hook(structuredClone(shown));
    const leaving = defined({ ...changed, turnStart, reset, snapshotCreated, turnEnd });
    return Object.keys(leaving).length === 0 ? undefined : leaving;
  };
}

function shownEnd(
  transform: Transform,
  turnEnd: NonNullable<Chunk['turnEnd']>,
): NonNullable<Chunk['turnEnd']> {
  const { output, ...rest } = turnEnd;
  if (output === undefined) return turnEnd;
  try {
    const shown = transformOutput(transform, output);
    return { ...rest, ...(shown !== undefined && { output: shown }) };
  } catch {
    // The turn is saved or about to be, and its end is always sent. The output of the call rejects.
    return rest;
  }
}

/** Passes the parts of a chunk that are state through the state transform. */
function stateFilter(
  transform: Transform,
  knownCustom: () => Json | undefined,
): (chunk: Chunk) => Chunk {
  if (transform.state === undefined) return (chunk) => chunk;
  let custom: Json | undefined;
  const patches = patchFilter((inside) => {
    custom = inside;
    return transformState(transform, { ...noState, custom })?.custom;
  });
  const shownArtifact = (artifact: Artifact): Artifact | undefined => {
    const known = custom ?? knownCustom();
    const state = defined({ ...noState, artifacts: [artifact], custom: known });
    return transformState(transform, state)?.artifacts?.[0];
  };
  return ({ customPatch, artifact, ...rest }) => {
    const patch = customPatch && patches(customPatch as JsonPatch);
    const shown = artifact && shownArtifact(artifact);
    return defined({ ...rest, customPatch: patch && [...patch], artifact: shown });
  };
}

// A transform is written for whole states: what a chunk does not have is empty there, not missing.
const noState = { messages: [], artifacts: [] };

/** Patches between the transformed versions of a document. */
function patchFilter(
  leave: (inside: Json) => Json | undefined,
): (patch: JsonPatch) => JsonPatch | undefined {
  let inside: Json = null;
  let outside: Json | undefined;
  return (patch) => {
    inside = applyPatch(inside, patch);
    const before = outside;
    const left = leave(inside);
    outside = left === undefined ? undefined : toJson(left, 'transformed state');
    if (outside === undefined) return undefined;
    if (before === undefined || patch[0]?.path === '') {
      return [{ op: 'replace', path: '', value: outside }];
    }
    const changes = diffJson(before, outside);
    return changes.length === 0 ? undefined : changes;
  };
}

function transformFailed(what: string, cause: unknown): WaymarkError {
  const error = new WaymarkError(
    'INTERNAL',
    `The agent's ${what} transform failed, so nothing was sent: ${messageOf(cause)}`,
    {
      cause,
      publicMessage: `The agent's ${what} transform failed, so nothing was sent. See its cause in the server's log.`,
    },
  );
  markReported(error);
  return error;
}
