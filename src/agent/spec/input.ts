import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import { type Json, toJson } from '../../core/json/json.ts';
import { parse } from '../../core/schema/schema.ts';
import { checkId } from '../../protocol/ids.ts';
import type { Message } from '../../protocol/message.ts';
import { isParsedMessage, parseShape } from '../../protocol/parse.ts';
import { type Init, type Input, init as initShape } from '../../protocol/turn.ts';
import { emptyState, giveOut, historyOf, type SessionState } from '../../session/session-state.ts';
import type { Scope } from '../../store/contract/store.ts';
import type { AgentSpec } from './spec.ts';

/** The scope of a session's ids. */
export function scopeOf(spec: Pick<AgentSpec, 'name'>, owner: string | undefined): Scope {
  if (owner === undefined) return { agent: spec.name };
  checkId(owner, 'an owner');
  return { agent: spec.name, owner };
}

/** Where a caller wants to start; nothing in it has been checked. */
interface GivenInit {
  readonly snapshotId: unknown;
  readonly sessionId: unknown;
  readonly state: { readonly messages?: unknown } | undefined;
  readonly from: null | undefined;
  readonly ifHead: unknown;
}

/** Parses where to start, and refuses what this agent cannot start from. */
export function parseInit(spec: AgentSpec, value: GivenInit): Init {
  const init = parseShapeOf(value);
  const { snapshotId, sessionId, from, ifHead } = init;
  const named = [snapshotId, sessionId, from, ifHead].some((each) => each !== undefined);
  if (init.state !== undefined && named) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      'Give either a state or an id to start from, not both.',
    );
  }
  if (spec.store !== undefined && init.state !== undefined) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `Agent "${spec.name}" keeps its sessions in a store. Start it with { sessionId } or { snapshotId } instead of a state.`,
    );
  }
  if (spec.store === undefined && named) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `Agent "${spec.name}" has no store, so it keeps no sessions. Pass \`store\` to waymark(), or start from { state }, the state of an earlier output.`,
    );
  }
  if (from === null && (sessionId === undefined || snapshotId !== undefined)) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      '`from: null` starts at the beginning of a session: pass it with its `sessionId`, and without a snapshot.',
    );
  }
  return init;
}

// A state that an earlier turn of this process gave out holds messages that were checked then and cannot have changed:
// checking them all in each turn would make a turn slower the longer the conversation is.
function parseShapeOf(value: GivenInit): Init {
  if (value.state === undefined) return parseShape(initShape, value, 'init');
  const { messages, ...state } = value.state;
  const known = knownMessages(messages);
  if (known === undefined) return parseShape(initShape, value, 'init');
  const init = parseShape(initShape, { ...value, state }, 'init');
  return { ...init, state: { ...init.state, messages: known } };
}

/** A copy of messages that need not be checked again; the caller may change the array afterwards. */
function knownMessages(messages: unknown): Message[] | undefined {
  if (!Array.isArray(messages)) return undefined;
  const history = historyOf(messages);
  if (history !== undefined) return giveOut(history);
  return messages.every(isParsedMessage) ? [...messages] : undefined;
}

/** The state of a fresh session. */
export function freshState(spec: AgentSpec): SessionState {
  return spec.initialState === undefined
    ? emptyState
    : { ...emptyState, custom: spec.initialState };
}

/** A custom state that is set as a whole, checked as far as that can be done at once. */
export function checkCustom({ stateSchema }: AgentSpec, custom: unknown): unknown {
  if (stateSchema === undefined || custom === undefined) return custom;
  const checked = parse(stateSchema, custom, 'The custom state');
  if (!(checked instanceof Promise)) return checked;
  // An asynchronous schema is asked when the state is loaded.
  checked.catch(() => {});
  return custom;
}

type StateRules = Pick<AgentSpec, 'name' | 'stateSchema' | 'initialState' | 'upgradeState'>;

/** A state whose custom part is the agent's initial one, if it has none yet. */
export function withInitial({ initialState }: StateRules, state: SessionState): SessionState {
  if (state.custom !== undefined || initialState === undefined) return state;
  return { ...state, custom: initialState };
}

/** A stored state, brought up to the agent's present schema. */
export async function storedState(spec: StateRules, stored: SessionState): Promise<SessionState> {
  const { stateSchema, upgradeState } = spec;
  const state = withInitial(spec, stored);
  if (stateSchema === undefined || state.custom === undefined) return state;
  const fault = await faultOf(spec, state.custom);
  if (fault === undefined) return state;
  if (upgradeState === undefined) throw misfit(spec, fault);
  const upgraded = toJson(await upgradeState(state.custom), 'upgraded state');
  const left = await faultOf(spec, upgraded);
  if (left !== undefined) throw misfit(spec, left);
  return { ...state, custom: upgraded };
}

async function faultOf({ stateSchema }: StateRules, custom: Json): Promise<unknown> {
  if (stateSchema === undefined) return undefined;
  try {
    await parse(stateSchema, custom, 'The stored custom state');
    return undefined;
  } catch (error) {
    return error;
  }
}

function misfit(spec: StateRules, cause: unknown): WaymarkError {
  const why = cause instanceof Error ? cause.message : '';
  return new WaymarkError(
    'FAILED_PRECONDITION',
    `A stored state no longer fits the schema of agent "${spec.name}". ${why} Give the agent an \`upgradeState\`.`,
    { cause },
  );
}

/**
 * Refuses input that an agent over a prompt does not take. It takes a user's message, answers to interrupts, or a message behind answers that need no tool to
 * run.
 */
export function checkPromptInput({ message, resume, detach }: Input): void {
  if (message !== undefined && resume?.restart !== undefined) {
    throw refused(
      'A message can follow answers of `resume.respond` only. Send it after the tools of `resume.restart` have run.',
    );
  }
  if (resume !== undefined && message === undefined) return;
  if (message === undefined) {
    // A bare detach sends nothing: it leaves what is queued to the background.
    if (detach === true) return;
    throw refused('The input has neither `message` nor `resume`. Pass one of them.');
  }
  if (message.role !== 'user') {
    throw refused(
      `A message of role "${message.role}" cannot start a turn. Expected a user message.`,
    );
  }
  if (message.content.length === 0) throw refused('The message is empty.');
  if (message.content.some((part) => 'toolRequest' in part || 'toolResponse' in part)) {
    throw refused('A message cannot carry tool parts. Answer an interrupt with `resume`.');
  }
}

/** A custom agent decides for itself, but takes no empty input. */
export function checkCustomInput({ message, resume, detach }: Input): void {
  if (message === undefined && resume === undefined && detach !== true) {
    throw refused('The input has neither `message` nor `resume`. Pass one of them.');
  }
}

/** Whether an input was refused for what it says, and another one may be taken. */
export function isInputError(error: unknown): boolean {
  return (
    isWaymarkError(error) &&
    ['INVALID_ARGUMENT', 'FAILED_PRECONDITION', 'NOT_FOUND'].includes(error.status)
  );
}

function refused(message: string): WaymarkError {
  return new WaymarkError('INVALID_ARGUMENT', message);
}
