import { InvocationSession } from '../agent/turn/invocation.ts';
import { contentHash } from '../core/json/hash.ts';
import { defined, isJsonObject, type Json, jsonEqual, toJson } from '../core/json/json.ts';
import { applyPatch, type JsonPatch } from '../core/json/patch.ts';
import type { ReplayedCall, ToolOutcome, ToolReplay } from '../generate/hooks.ts';
import type { ModelRef } from '../generate/model.ts';
import { respond } from '../generate/tool/resume.ts';
import { skillToolNames } from '../protocol/loaded-skills.ts';
import type { ToolRequestPart } from '../protocol/message.ts';
import type { Artifact } from '../protocol/state.ts';
import type { ArtifactRef, ToolRecord } from '../protocol/tool-record.ts';
import { type Session, sessionKey } from '../session/session.ts';
import type { RecordedTurn } from './recorded-session.ts';
import { outcomeOf, type ToolCall } from './tool-calls.ts';

/** The tools of a turn, answered from its recording. */
export interface RecordedTools extends ToolReplay {
  /** The effects that could not be repeated. */
  readonly missing: readonly string[];
  /** The models of the generate calls; `undefined` is the app's. */
  readonly models: readonly (ModelRef | undefined)[];
}

/** Answers the tool calls of one turn. Each recorded call answers once, in order. */
export function recordedTools(turn: RecordedTurn, modes: ToolModes): RecordedTools {
  const unused = [...turn.toolCalls];
  const missing: string[] = [];
  let round: { readonly call: ToolCall; readonly session: Session | undefined }[] = [];
  const takeFirst = (fits: (call: ToolCall) => boolean): ToolCall | undefined => {
    const at = unused.findIndex(fits);
    return at < 0 ? undefined : unused.splice(at, 1)[0];
  };
  const take = ({ toolRequest: { name, input = null } }: ToolRequestPart): ToolCall | undefined =>
    takeFirst((call) => call.name === name && jsonEqual(call.input, input));
  const stub = async (
    fn: (call: StubbedCall) => unknown,
    { request }: ReplayedCall,
  ): Promise<ToolOutcome> => {
    const { name, input = null } = request.toolRequest;
    const recorded = take(request) ?? takeFirst((call) => call.name === name);
    const output = await fn({ name, input, ...defined({ recorded }) });
    return {
      response: respond(request.toolRequest, toJson(output ?? null, `The answer to "${name}"`)),
    };
  };
  const models: (ModelRef | undefined)[] = [];
  return {
    missing,
    models,
    onGenerate: (model) => void models.push(model),
    answer(call) {
      // A call inside a sub-agent that runs is answered like any other: nothing of it was recorded.
      const mode = modeOf(modes, call.request);
      if (mode === 'live') {
        take(call.request);
        return undefined;
      }
      if (typeof mode === 'function') return stub(mode, call);
      const recorded = take(call.request);
      if (recorded === undefined) return notRecorded(call.request);
      round.push({ call: recorded, session: sessionKey.get() });
      return outcomeOf(recorded, call.request);
    },
    endRound() {
      const order = ({ call }: { readonly call: ToolCall }): number => call.record?.order ?? 0;
      for (const { call, session } of round.toSorted((a, b) => order(a) - order(b)))
        repeatEffects(session, call, turn, missing);
      round = [];
    },
  };
}

function notRecorded(request: ToolRequestPart): ToolOutcome {
  const text =
    'This call is not in the recording, so the replay did not execute it. Its result is unknown.';
  const metadata = { error: { status: 'FAILED_PRECONDITION', reason: 'notRecorded' } };
  return { response: respond(request.toolRequest, text, metadata) };
}

/** Changes the session as the recorded call did. */
function repeatEffects(
  session: Session | undefined,
  { name, record }: ToolCall,
  turn: RecordedTurn,
  missing: string[],
): void {
  if (record === undefined || session === undefined) return;
  if (record.messages) missing.push(`Tool "${name}" changed the messages, which is not recorded.`);
  try {
    repeatCustom(session, record);
  } catch {
    missing.push(`The change that tool "${name}" made does not fit the state of the replay.`);
  }
  const { artifacts } = record;
  if (artifacts === undefined) return;
  const found = artifacts.items.flatMap((ref) => {
    const artifact = resolve(ref, turn);
    if (artifact) return artifact;
    const missed = 'name' in ref ? (ref.name ?? '') : '';
    missing.push(`Artifact "${missed}" of tool "${name}" is in no stored state.`);
    return [];
  });
  if (artifacts.set) session.setArtifacts(found);
  else session.addArtifacts(...found);
}

function repeatCustom(session: Session, { custom }: ToolRecord): void {
  if (custom === undefined) return;
  const changed = applyPatch(toJson(session.custom ?? null, 'custom'), custom as JsonPatch);
  // The state is checked at the end of the turn, as it was when the tool changed it.
  const { working } = InvocationSession.stateOf(session) ?? {};
  if (working === undefined) session.setCustom(changed);
  else working.setCustom(changed);
}

function resolve(ref: ArtifactRef, turn: RecordedTurn): Artifact | undefined {
  if ('artifact' in ref) return ref.artifact;
  return [...turn.artifacts, ...turn.before.artifacts].find(
    (artifact) =>
      artifact.name === ref.name && contentHash(toJson(artifact, 'artifact')) === ref.hash,
  );
}

/** A tool call of a replay that a function of yours answers. */
interface StubbedCall {
  /** The name of the tool. */
  readonly name: string;
  /** The input of the call. */
  readonly input: Json;
  /** The recorded call of the same tool that has not been used yet, the one with the same input first. */
  readonly recorded?: ToolCall;
}

/**
 * How a tool is answered. `recorded`: as in the recording; a call that is not in it is not executed and gets an error. `live`: the
 * tool runs. A function answers in the place of the tool.
 */
type ToolMode = 'recorded' | 'live' | ((call: StubbedCall) => unknown);

/**
 * One mode for all tools, or one for each; `*` is the mode of those that are not named. The agent's own skills are loaded as they are
 * now, like its prompt, unless their tools are named. @default 'recorded'
 */
export type ToolModes = 'recorded' | 'live' | Readonly<Record<string, ToolMode>>;

function modeOf(modes: ToolModes, { toolRequest }: ToolRequestPart): ToolMode {
  const { name } = toolRequest;
  if (typeof modes === 'object' && Object.hasOwn(modes, name)) return modes[name] ?? 'recorded';
  if (isOwnSkill(toolRequest)) return 'live';
  return typeof modes === 'string' ? modes : (modes['*'] ?? 'recorded');
}

// Skills of other systems, which a replay does not ask, have the name of their source before theirs.
function isOwnSkill({ name, input }: ToolRequestPart['toolRequest']): boolean {
  if (name !== skillToolNames.load && name !== skillToolNames.read) return false;
  return isJsonObject(input) && !String(input.name).includes('/');
}
