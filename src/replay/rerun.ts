import type { Agent } from '../agent/contract/agent.ts';
import type { AgentSpec } from '../agent/contract/spec.ts';
import { createAgent, internalsOf } from '../agent/define/create-agent.ts';
import { failedPrecondition, WaymarkError } from '../core/error.ts';
import { defined, type JsonObject } from '../core/json/json.ts';
import { toolReplay } from '../generate/hooks.ts';
import {
  type RecordedSession,
  type RecordedTurn,
  recordedSession,
  turnsUpTo,
} from './recorded-session.ts';
import { recordedTools } from './recorded-tools.ts';
import { scratchWorkspaces } from './scratch-workspaces.ts';

interface RerunRequest {
  /** The snapshot of the turn, or of the last one of the conversation. */
  readonly snapshotId: string;
  /** This turn only, or the conversation from its first turn up to it, with the new answers carried forward. */
  readonly scope: 'turn' | 'conversation';
  /** `recorded`: tools do not run, and their calls get the recorded answers. */
  readonly tools: 'recorded' | 'live';
  readonly model?: string;
  /** Replaces the system prompt. */
  readonly system?: string;
  readonly config?: JsonObject;
}

interface RerunResult {
  /** A separate session: a fork of the state before the turn. */
  readonly sessionId: string;
  readonly snapshotId?: string;
  readonly turns: number;
  /** Why not all turns were run. */
  readonly stopped?: string;
}

interface RerunOptions {
  /** Stops the rerun and deletes its session; the call is then `CANCELLED`. */
  readonly signal?: AbortSignal;
  readonly owner?: string;
}

/** Marks the session of a rerun, until a person decides to keep it. */
export const rerunMark = 'waymark.rerunOf';

/** Runs stored turns again in a separate session, so that a person can compare them with the original. */
export async function rerun(
  agent: Agent,
  request: RerunRequest,
  { signal, ...whose }: RerunOptions = {},
): Promise<RerunResult> {
  const { spec, host } = internalsOf(agent);
  const session = await recordingOf(agent, spec, { snapshotId: request.snapshotId, ...whose });
  const turns = chosenTurns(session, request);
  await using workspaces = scratchWorkspaces();
  const workspace = workspaces.of(spec.workspace);
  const variant = createAgent({ ...changedSpec(spec, request), workspace }, host);
  const [first] = turns;
  if (signal?.aborted) throw cancelled();
  const forked =
    first?.parentId === undefined ? undefined : await agent.fork(first.parentId, whose);
  const sessionId = forked?.sessionId ?? host.newId();
  let snapshotId = forked?.snapshotId;
  let done = 0;
  let stopped: string | undefined;
  for (const turn of turns) {
    if (signal?.aborted) break;
    const { requestId: _, detach: __, ...input } = turn.input;
    const output = await toolReplay
      .run(recordedTools(turn, request.tools), () =>
        variant.run(input, {
          ...(snapshotId === undefined ? { sessionId } : { snapshotId }),
          ...defined({ model: request.model, signal }),
          ...whose,
          throwOnError: false,
        }),
      )
      .catch((error: Error) => ({ error, snapshotId: undefined }));
    done++;
    if (output.error) stopped = output.error.message;
    if (output.error || output.snapshotId === undefined) break;
    ({ snapshotId } = output);
  }
  if (signal?.aborted) {
    await agent.deleteSession(sessionId, whose);
    throw cancelled();
  }
  // A first turn that was refused left no session.
  if ((await agent.getSession(sessionId, { ...whose, messages: { last: 1 } })) === undefined) {
    throw failedPrecondition(stopped ?? 'The turn could not be run again.');
  }
  const title = `${session.session.title ?? 'Session'} (replay)`;
  const metadata = { [rerunMark]: request.snapshotId };
  await agent.updateSession(sessionId, { title, metadata }, whose);
  return { sessionId, turns: done, ...defined({ snapshotId, stopped }) };
}

function cancelled(): WaymarkError {
  return new WaymarkError('CANCELLED', 'The rerun was stopped, and its session was deleted.');
}

async function recordingOf(
  agent: Agent,
  spec: AgentSpec,
  { snapshotId, ...whose }: { readonly snapshotId: string; readonly owner?: string },
): Promise<RecordedSession> {
  const exporter = spec.store?.maintenance;
  if (exporter === undefined) {
    throw failedPrecondition('The store of this agent cannot export sessions.');
  }
  const found = await agent.getSnapshot(snapshotId, { ...whose, messages: { last: 1 } });
  const scope = { agent: agent.name, ...whose };
  const document = found && (await exporter.exportSession(scope, found.sessionId));
  if (document === undefined) {
    throw new WaymarkError('NOT_FOUND', `No snapshot "${snapshotId.slice(0, 64)}" of this agent.`);
  }
  return recordedSession(document, { initialMessages: spec.initialMessages ?? [] });
}

function chosenTurns(
  session: RecordedSession,
  { snapshotId, scope }: RerunRequest,
): readonly RecordedTurn[] {
  const last = session.turns.find((turn) => turn.snapshotId === snapshotId);
  if (last !== undefined) return scope === 'turn' ? [last] : turnsUpTo(session, snapshotId);
  const skipped = session.skipped.find((each) => each.snapshotId === snapshotId);
  throw failedPrecondition(
    skipped?.reason ?? 'This snapshot is not the end of a turn that is stored in this session.',
  );
}

/** The agent with what the request changes. It is used for these turns only, and no other process continues them. */
function changedSpec(spec: AgentSpec, { system, config, tools }: RerunRequest): AgentSpec {
  const isChanged = system !== undefined || config !== undefined;
  if (spec.withChanges === undefined && (isChanged || tools === 'recorded')) {
    throw failedPrecondition(
      `Agent "${spec.name}" is a custom agent: its code decides what it sends to models. Run it again with live tools and without changes.`,
    );
  }
  return { ...spec, ...(isChanged && spec.withChanges?.(defined({ system, config }))) };
}
