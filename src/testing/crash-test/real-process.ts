import type { AgentStore } from '../../agent/contract/spec.ts';
import { internalsOf } from '../../agent/define/create-agent.ts';
import type { App } from '../../app.ts';
import { failedPrecondition } from '../../core/error.ts';
import { systemClock } from '../../core/time.ts';
import type { Store } from '../../store/contract/store.ts';
import { ModelAnswers, type StoredAnswers } from './model-answers.ts';
import type { CrashTestOptions } from './options.ts';
import { ProcessProbe, type RunLog } from './probe.ts';
import { type Outcome, outcomeIn } from './run-once.ts';
import { simulateProcess } from './simulated-process.ts';

/** The work of a real process of a crash test, as JSON. */
export interface ProcessJob {
  readonly agent: string;
  readonly input: NonNullable<CrashTestOptions['input']>;
  readonly model?: string;
  /** The owner of the sessions of the test, which nothing else uses. */
  readonly owner: string;
  readonly sessionId: string;
  readonly requestId: string;
  readonly answers: StoredAnswers | undefined;
  readonly killAt?: number;
  /** It continues the turn of a process that died. */
  readonly isLast: boolean;
}

/** The result of a process, as JSON; `outcome` is absent if it died. */
export interface ProcessResult {
  readonly log: RunLog;
  readonly outcome?: Outcome;
  readonly answers: StoredAnswers;
}

/** Milliseconds after which the claim of a dead process expires. */
const ttl = 1_000;
const pollMs = 100;

/** Runs a turn over the store of the app, in this process. `die` is called at the crash point, and must end the process. */
export async function runInProcess(
  app: App,
  job: ProcessJob,
  die: (result: ProcessResult) => void,
): Promise<ProcessResult> {
  const { agent, input, model, owner, sessionId, requestId, killAt, isLast } = job;
  const log: RunLog = { points: [], begun: [], effects: [] };
  const answers = new ModelAnswers();
  if (job.answers) answers.load(job.answers);
  const result = (): ProcessResult => ({ log, answers: answers.toJSON() });
  const probe = new ProcessProbe({
    log,
    answers,
    effects: undefined,
    killAt,
    isLast,
    onDeath: () => die(result()),
  });
  const store = storeOf(app, agent);
  const process = simulateProcess({
    app,
    store,
    clock: systemClock,
    probe,
    ttl,
    agent,
    model,
    owner,
  });
  const call = { sessionId, requestId, owner, accept: true, throwOnError: false } as const;
  // As its client, it sends the turn again when the claim of the dead process has expired and its run has ended.
  while (isLast && (await process.openRuns()).length > 0) {
    if ((await process.inside(() => process.recover())) === 0) await systemClock.sleep(pollMs);
  }
  const outcome = await outcomeIn(process, input, call);
  return { ...result(), outcome };
}

/** The store of an agent, which must keep claims. */
export function storeOf(app: App, agent: string): Store {
  const store: AgentStore | undefined = internalsOf(app.agent(agent)).spec.store;
  if (store?.runs !== undefined && store.name !== undefined) return store as Store;
  throw failedPrecondition(
    `The store of agent "${agent}" does not record runs, so no other process could continue a turn.`,
  );
}
