import type { Agent } from '../agent/contract/agent.ts';
import type { AgentStore } from '../agent/contract/spec.ts';
import { internalsOf } from '../agent/define/create-agent.ts';
import type { AgentHost } from '../agent/persistence/host.ts';
import { deadlineAgent, deadlineWorker, type Expiry, expiryOf } from '../agent/turn/deadlines.ts';
import { hasStatus } from '../core/error.ts';
import type { LoadedState, RunRecord, RunSupport, Scope } from '../store/contract/store.ts';

/** Maximum number of deadlines per poll. */
const maxAtOnce = 16;

/**
 * Declines the interrupts of these agents whose deadline has passed: each is a run that waits in the store and expires then.
 * Resolves when they have been taken, to their number.
 */
export async function takeDeadlines(
  host: AgentHost,
  store: AgentStore,
  agents: readonly Agent[],
): Promise<number> {
  const { worker, ttl } = host;
  const names = new Map(agents.map((agent) => [deadlineAgent(agent.name), agent]));
  const request = { agents: [...names.keys()], worker, ttl, limit: maxAtOnce };
  const taken = (await store.runs?.takeOver(request)) ?? [];
  for (const { run } of taken) {
    const agent = names.get(run.scope.agent);
    if (agent === undefined) continue;
    const { sessionId } = run.init ?? {};
    const about = { phase: 'run', agent: agent.name, ...(sessionId && { sessionId }) } as const;
    const report = (error: unknown): void => {
      // Another turn was faster. Whether the session waits after it is looked up when the claim has expired.
      if (!hasStatus(error, 'ABORTED')) host.report(error, about);
    };
    host.background(decline(host, store, agent, run).catch(report));
  }
  return taken.length;
}

/**
 * Starts the turn that declines, if the session still waits and the deadline has passed. What is left open here is taken again
 * when its claim expires.
 */
async function decline(
  { clock }: AgentHost,
  { runs, timeline }: AgentStore,
  agent: Agent,
  run: RunRecord,
): Promise<void> {
  if (runs === undefined) return;
  const { sessionId, snapshotId } = run.init ?? {};
  let refusal: unknown;
  if (sessionId !== undefined && snapshotId !== undefined) {
    const owner = run.scope.owner === undefined ? {} : { owner: run.scope.owner };
    const scope = { agent: agent.name, ...owner };
    const session = await timeline?.getSession(scope, sessionId);
    // Its answer may still fail, and then it waits again.
    if (session?.running !== undefined) return;
    const expiry = await headExpiry(runs, scope, session?.headId, snapshotId);
    const left = (expiry?.at ?? 0) - clock.now();
    if (left > 0) return await waitAgain(runs, run, left);
    if (session?.headId !== undefined && expiry !== undefined) {
      const { spec } = internalsOf(agent);
      // A worker that is not set up leaves the deadline to the others.
      spec.checkSetup?.(undefined);
      const { context = {} } = run;
      const restored = spec.restoreContext?.(context) ?? context;
      const options = { sessionId, ifHead: session.headId, context: restored, ...owner };
      await agent.start(expiry.decline, options).catch((error: unknown) => {
        if (!isFinal(error)) throw error;
        refusal = error;
      });
    }
  }
  await runs.release(run);
  if (refusal !== undefined) throw refusal;
}

/** The expiry of the head, if it is the interrupted snapshot or an edit of it. */
async function headExpiry(
  runs: RunSupport,
  scope: Scope,
  headId: string | undefined,
  interruptedId: string,
): Promise<Expiry | undefined> {
  const load = async (id: string | undefined): Promise<LoadedState | undefined> =>
    id === undefined ? undefined : await runs.load(scope, { snapshotId: id });
  const head = await load(headId);
  let at = head?.snapshot;
  while (at?.event === 'edit' && at.snapshotId !== interruptedId) {
    at = (await load(at.parentId))?.snapshot;
  }
  if (head === undefined || at?.snapshotId !== interruptedId) return undefined;
  return expiryOf(head.state.history);
}

/**
 * Lets a run that was taken before its deadline wait for the rest of the time: a restored backup frees all runs, and a turn that
 * was taken over may have ended with a later deadline than its first attempt. Another worker may take it in between; it does the same.
 */
async function waitAgain(runs: RunSupport, run: RunRecord, ttl: number): Promise<void> {
  const { runId, scope } = run;
  await runs.handOver(run);
  await runs.takeOver({
    agents: [scope.agent],
    runIds: [runId],
    worker: deadlineWorker,
    ttl,
    limit: 1,
  });
}

/** Whether trying again would be refused for the same reason. */
function isFinal(error: unknown): boolean {
  return hasStatus(error, 'FAILED_PRECONDITION', 'INVALID_ARGUMENT', 'NOT_FOUND');
}
