import type { AgentOperations } from '../../api/calls.ts';
import { checkId, checkLookup, fitsLookup, type Lookup } from '../../protocol/ids.ts';
import { checkMessagePage, withPage } from '../../protocol/message-page.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import { input as inputShape } from '../../protocol/turn.ts';
import type { AgentHost } from '../persistence/host.ts';
import { toRunInfo } from '../persistence/run-info.ts';
import { transformSnapshot } from '../persistence/transform.ts';
import { waitForRun, watchRun } from '../persistence/watch.ts';
import type { Agent, CallOptions, InvokeOptions } from '../spec/agent.ts';
import { type AgentSpec, fullStore, scopeOf } from '../spec/spec.ts';
import { withPendingInput } from '../turn/pending-input.ts';
import { withoutOptions } from '../turn/remote-input.ts';
import { checkRequestId, underRequest } from '../turn/requests.ts';
import { steerRun } from '../turn/steer-run.ts';
import { retryDeadRun, toDeadRun } from './dead-runs.ts';
import { readUsage } from './read-usage.ts';
import { runPage } from './run-page.ts';
import { noStore, supportOf } from './store-support.ts';

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

/** Implements {@link RunOperations} over the agent's store. */
export function runOperations(spec: AgentSpec, host: AgentHost, self: () => Agent): RunOperations {
  const runs = fullStore(spec)?.runs;
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
