import * as v from 'valibot';
import type { UsageQuery } from '../../api/agent-api.ts';
import type { AgentOperations } from '../../api/calls.ts';
import { failedPrecondition, invalid, type WaymarkError } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { checkId, checkLookup, fitsLookup, type Lookup, scopeOf } from '../../protocol/ids.ts';
import { checkMessagePage, reachesEnd, withPage } from '../../protocol/message-page.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { RetryResult, UsageReport } from '../../protocol/requests.ts';
import { type DeadRun, deadRun, type RunInfo } from '../../protocol/run.ts';
import type { Page } from '../../protocol/session.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import { input as inputShape } from '../../protocol/turn.ts';
import { addUsage } from '../../protocol/usage.ts';
import { fromPlainState } from '../../session/session-state.ts';
import type {
  DeadRunRecord,
  ListOptions,
  RunRecord,
  RunSupport,
  Scope,
  SpendSupport,
  Store,
} from '../../store/contract/store.ts';
import { pageOf } from '../../store/rules/page.ts';
import { parseDay } from '../../store/rules/spend.ts';
import type { Agent, CallOptions, InvokeOptions } from '../contract/agent.ts';
import { noDeadRun } from '../contract/dispatcher.ts';
import type { AgentSpec } from '../contract/spec.ts';
import type { AgentHost } from '../persistence/host.ts';
import { createChunkTransform, transformSnapshot } from '../persistence/transform.ts';
import { waitForRun, watchRun } from '../persistence/watch.ts';
import { checkRequestId, underRequest, withoutOptions } from '../turn/inputs.ts';
import { steerRun } from '../turn/steer.ts';

/** The calls of an agent that read and control its runs. */
export type RunOperations = Pick<
  AgentOperations<CallOptions, InvokeOptions>,
  | 'getSnapshot'
  | 'wait'
  | 'watch'
  | 'steer'
  | 'abort'
  | 'listRuns'
  | 'getUsage'
  | 'listDeadRuns'
  | 'retryRun'
>;

export function runOperations(spec: AgentSpec, host: AgentHost, self: () => Agent): RunOperations {
  const runs = spec.store?.runs;
  const watching = (runId: string, { owner, signal }: CallOptions) => {
    checkId(runId, 'a snapshot id');
    return { spec, host, scope: scopeOf(spec, owner), runId, signal };
  };
  return {
    async getSnapshot(given, { owner, messages } = {}) {
      const lookup = checkLookup(given);
      checkMessagePage(messages);
      if (spec.store === undefined) throw noStore(spec);
      const scope = scopeOf(spec, owner);
      const { store } = spec;
      const read = async (at: Lookup): Promise<Snapshot | undefined> => {
        const found = await store.getSnapshot(scope, at, messages && { messages });
        return found && withPage(found, messages);
      };
      const found = await read(lookup);
      if (found === undefined || !fitsLookup(lookup, found.sessionId)) return undefined;
      const again = () => read({ snapshotId: found.snapshotId });
      return transformSnapshot(spec.transform, await withPendingInput(spec, scope, found, again));
    },
    async wait(snapshotId, options = {}) {
      const run = watching(snapshotId, options);
      supportOf(spec, 'runs');
      return await waitForRun(run);
    },
    async *watch(snapshotId, options = {}) {
      const run = watching(snapshotId, options);
      supportOf(spec, 'runs');
      yield* watchRun(run, options.after);
    },
    async steer(runId, given, { owner, requestId, remote } = {}) {
      checkId(runId, 'a snapshot id');
      const input = underRequest(parseShape(inputShape, given, 'input'), {
        ...(requestId !== undefined && { requestId }),
      });
      checkRequestId(spec, input);
      const { message } = input;
      const clean =
        remote === true && message ? { ...input, message: withoutOptions(message) } : input;
      return await steerRun({ spec, host, scope: scopeOf(spec, owner) }, runId, clean);
    },
    async abort(snapshotId, { owner } = {}) {
      checkId(snapshotId, 'a snapshot id');
      return await supportOf(spec, 'abort').abortSnapshot(scopeOf(spec, owner), snapshotId);
    },
    async listRuns({ owner, ...page } = {}) {
      const open = await supportOf(spec, 'runs').listRuns(scopeOf(spec, owner));
      const infos = open.map((run) => toRunInfo(run, spec, host));
      return runPage(infos, ({ createdAt }) => createdAt, page);
    },
    getUsage: async ({ owner, ...query } = {}) =>
      await readUsage(supportOf(spec, 'spend'), scopeOf(spec, owner), query),
    async listDeadRuns({ owner, ...page } = {}) {
      const scope = scopeOf(spec, owner);
      const known = await host.dispatcher?.deadRuns?.(scope);
      const dead = known ?? ((await runs?.listDeadRuns?.(scope)) ?? []).map(toDeadRun);
      return runPage(dead, ({ since }) => since, page);
    },
    async retryRun(snapshotId, { owner } = {}) {
      checkId(snapshotId, 'a snapshot id');
      const scope = scopeOf(spec, owner);
      const begun = await host.dispatcher?.retry?.(scope, snapshotId);
      return begun ?? (await retryDeadRun(self(), runs, scope, snapshotId));
    },
  };
}

/** A capability of the agent's store. `FAILED_PRECONDITION` if the store lacks it. */
export function supportOf<Name extends 'runs' | 'abort' | 'timeline' | 'events' | 'spend'>(
  spec: AgentSpec,
  name: Name,
): NonNullable<Store[Name]> {
  const found = spec.store?.[name] as Store[Name] | undefined;
  if (found !== undefined) return found;
  if (spec.store === undefined) throw noStore(spec);
  throw failedPrecondition(
    `The store of agent "${spec.name}" has no ${name}. Use one that has, such as sqliteStore.`,
  );
}

function noStore(spec: AgentSpec): WaymarkError {
  return failedPrecondition(
    `Agent "${spec.name}" has no store: the client holds its state. To use this call, pass \`store\` to waymark() or to the agent.`,
  );
}

/** One page of a list of runs, oldest first. Stores list all of them: there are never many at once. */
function runPage<Run extends { readonly snapshotId: string }>(
  runs: readonly Run[],
  timeOf: (run: Run) => string,
  { limit = Math.max(runs.length, 1), cursor }: ListOptions,
): Page<Run> {
  const keyOf = (run: Run) => [Date.parse(timeOf(run)), run.snapshotId] as const;
  const sorted = runs
    .map((run) => ({ run, key: keyOf(run) }))
    .sort(({ key: [a, idA] }, { key: [b, idB] }) => a - b || (idA < idB ? -1 : 1))
    .map(({ run }) => run);
  return pageOf(sorted, keyOf, { limit, ...(cursor !== undefined && { cursor }) });
}

const groups: readonly unknown[] = ['agent', 'model', 'day'];

async function readUsage(
  spend: SpendSupport,
  { owner, agent }: Scope,
  { sessionId, by, since }: UsageQuery,
): Promise<UsageReport> {
  if (sessionId !== undefined) checkId(sessionId, 'a session id');
  if (by !== undefined && !groups.includes(by)) {
    throw invalid('Usage is summed up by "agent", "model" or "day".');
  }
  const items = await spend.sums(
    by ?? 'model',
    defined({
      owner: owner ?? null,
      agent,
      sessionId,
      sinceDay: since === undefined ? undefined : parseDay(since),
    }),
  );
  return {
    calls: items.reduce((sum, { calls }) => sum + calls, 0),
    usage: items.reduce((sum, { usage }) => addUsage(sum, usage), {}),
    ...(by !== undefined && { items: [...items] }),
  };
}

/** A run as it may be shown, with the last status it sent where this process knows it. */
function toRunInfo(
  run: RunRecord,
  { transform }: Pick<AgentSpec, 'transform'>,
  { logs }: Pick<AgentHost, 'logs'>,
): RunInfo {
  const sent = logs.get(run.runId, run.scope)?.status;
  const status =
    sent === undefined ? undefined : createChunkTransform(transform)({ status: sent })?.status;
  return defined({
    snapshotId: run.runId,
    sessionId: run.sessionId,
    agent: run.scope.agent,
    version: run.version,
    mode: run.mode,
    attempt: run.attempt,
    inputs: run.inputs.length,
    inputsDone: run.inputsDone,
    createdAt: run.createdAt,
    heartbeatAt: run.heartbeatAt,
    expired: run.expired,
    stopping: run.stopping,
    status,
  });
}

/**
 * A pending snapshot together with the messages of its input. The store has the state of the last checkpoint only, and a page
 * that is opened before the first one has to show the user's message.
 */
async function withPendingInput(
  spec: Pick<AgentSpec, 'store' | 'receive'>,
  scope: Scope,
  snapshot: Snapshot,
  readAgain: () => Promise<Snapshot | undefined>,
): Promise<Snapshot> {
  const { status, state, snapshotId, messageRange } = snapshot;
  if (state === undefined || (status !== 'pending' && status !== 'expired')) return snapshot;
  if (!reachesEnd(snapshot)) return snapshot;
  const run = await spec.store?.runs?.getRun(scope, snapshotId);
  // Its first checkpoint or its end, which have the input, may have been written after the snapshot was read.
  if (run === undefined || run.midTurn) return (await readAgain()) ?? snapshot;
  const input = run.inputs[run.inputsDone];
  if (input === undefined) return snapshot;
  const { messages = [] } = state;
  // An input that does not fit the state fails its turn, not this read.
  const given = await spec.receive(fromPlainState(state), input, run.context ?? {}).catch(() => []);
  return {
    ...snapshot,
    state: { ...state, messages: [...messages, ...given] },
    ...(messageRange && {
      messageRange: { ...messageRange, total: messageRange.total + given.length },
    }),
  };
}

const details = v.object({ attempts: deadRun.entries.attempts });

/** A run of the dead-letter queue as its owner sees it. */
export function toDeadRun({ runId, sessionId, scope, since, error }: DeadRunRecord): DeadRun {
  const found = v.safeParse(details, error?.details);
  const attempts = found.success ? found.output.attempts : [];
  return { snapshotId: runId, sessionId, agent: scope.agent, attempts, since };
}

/**
 * Starts a run of the dead-letter queue again, with the inputs that it had not done, as a new run of its session. It stays in the
 * list until the new one is accepted.
 */
export async function retryDeadRun(
  agent: Agent,
  runs: RunSupport | undefined,
  scope: Scope,
  runId: string,
): Promise<RetryResult> {
  const found = (await runs?.listDeadRuns?.(scope))?.find((each) => each.runId === runId);
  if (found === undefined) throw noDeadRun(runId);
  const { sessionId, inputs, inputsDone, context, undo } = found;
  if (undo !== undefined) {
    throw failedPrecondition(
      `The run "${runId}" undid effects, and some may be undone by now. Make a new plan (planUndo of snapshot "${undo.to}"), and restore with it.`,
    );
  }
  const connection = agent.streamBidi(defined({ sessionId, owner: scope.owner, context }));
  // The request ids stay with the dead run: a repeated request gets its failure.
  const left = inputs.slice(inputsDone).map(({ requestId: _, ...input }) => input);
  for (const each of left.slice(0, -1)) await connection.send(each);
  const { snapshotId } = await connection.detach(left.at(-1));
  if (snapshotId === undefined) {
    throw failedPrecondition(`The run "${runId}" has nothing left to do.`);
  }
  await runs?.dropDeadRun?.(scope, runId);
  return { snapshotId, sessionId };
}
