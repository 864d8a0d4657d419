import { errorText } from '../../core/error.ts';

/** The work in which an error happened. */
type ErrorPhase =
  /** The agent's own code, a limit, or a state that does not fit its schema. */
  | 'turn'
  /** The template of a prompt, or what it reads. */
  | 'prompt'
  /** A model call, after the attempts of retry and fallback middleware. */
  | 'model'
  /** A tool or a tool source; the turn continues, and the model reads the message. */
  | 'tool'
  /** The snapshot policy. */
  | 'policy'
  /** A hook of the transform. */
  | 'transform'
  /** A hook such as `onFinish`. */
  | 'hook'
  /** Saving a snapshot. */
  | 'store'
  /** The `auth` or `authorize` of a server. */
  | 'auth'
  /** A background run outside of its turns: it could not be dispatched, taken over, resumed or ended. */
  | 'run';

/** Where an error happened; fields that do not apply are absent. */
export interface ErrorInfo {
  /** The work that failed. */
  readonly phase: ErrorPhase;
  /** The name of the agent. */
  readonly agent?: string;
  /** The session. */
  readonly sessionId?: string;
  /** The run, which is also the id of the snapshot that the turn ends with. */
  readonly runId?: string;
  /** The index of the turn in its session. */
  readonly turnIndex?: number;
  /** The tool that failed. */
  readonly tool?: string;
  /** The tool source that failed. */
  readonly toolSource?: string;
  /** The model that failed. */
  readonly model?: string;
}

/** Called for each failure in an app. If it throws or rejects, the error is printed and has no other effect. */
export type ErrorListener = (error: unknown, info: ErrorInfo) => unknown;

/** Where the failures of one app go. */
export interface ErrorReports {
  report(error: unknown, info: ErrorInfo): void;
  /** Also tells this listener until the returned function is called; it then shows what the app would print. */
  subscribe(listener: ErrorListener): () => void;
}

/** Tells `onError` and the subscribers; without either, prints. */
export function createErrorReports(onError: ErrorListener | undefined): ErrorReports {
  const subscribers = new Set<ErrorListener>();
  return {
    report(error, info) {
      const listeners = [...(onError ? [onError] : []), ...subscribers];
      if (listeners.length === 0) print(reportText(error, info));
      for (const listener of listeners) tell(listener, error, info);
    },
    subscribe(listener) {
      subscribers.add(listener);
      return () => void subscribers.delete(listener);
    },
  };
}

/** A failure as text for the owner of the process: one line that says what failed, and the error with its stack. */
export function reportText(error: unknown, info: ErrorInfo): string {
  return `${reportHeadline(info)}\n${errorText(error)}`;
}

/** The line that says what failed. */
export function reportHeadline(info: ErrorInfo): string {
  const { agent, turnIndex, sessionId, runId } = info;
  const whose = agent === undefined ? '' : `Agent "${agent}"`;
  const turn = turnIndex === undefined ? '' : ` in turn ${turnIndex + 1}`;
  const ids = [sessionId && `session ${sessionId}`, runId && `run ${runId}`].filter(Boolean);
  const what =
    info.phase === 'turn' && agent !== undefined
      ? `${whose} failed`
      : [whose, failed(info)].filter(Boolean).join(': ');
  return `✗ ${what}${turn}${ids.length > 0 ? ` (${ids.join(', ')})` : ''}`;
}

const failures: Readonly<Record<ErrorPhase, string>> = {
  turn: 'the turn failed',
  prompt: 'the prompt could not be rendered',
  model: 'the model failed',
  tool: 'a tool failed',
  policy: 'the snapshot policy failed',
  transform: 'a transform failed',
  hook: 'a hook failed',
  store: 'a snapshot could not be saved',
  auth: '`auth` or `authorize` of the server failed',
  run: 'a background run failed',
};

function failed({ phase, tool, toolSource, model }: ErrorInfo): string {
  if (phase === 'model' && model !== undefined) return `model "${model}" failed`;
  if (phase === 'tool' && toolSource !== undefined) return `tool source "${toolSource}" failed`;
  if (phase === 'tool' && tool !== undefined) return `tool "${tool}" failed`;
  return failures[phase];
}

function tell(listener: ErrorListener, error: unknown, info: ErrorInfo): void {
  const failedToo = (own: unknown): void =>
    print(
      `✗ onError failed: ${errorText(own)}\nIt was called for this error:\n${reportText(error, info)}`,
    );
  try {
    const result = listener(error, info);
    if (result instanceof Promise) result.catch(failedToo);
  } catch (own) {
    failedToo(own);
  }
}

// `console.error` writes to the standard error, also where there is no `process`.
function print(text: string): void {
  try {
    console.error(text);
  } catch {
    // There is no console to print to.
  }
}

/** How many causes are followed; a chain may be circular. */
const maxCauses = 8;

// Each was created for one failure that was reported, so it is not reported again when it is rethrown.
const reportedOnce = new WeakSet<object>();

/** Marks an error as reported; only for errors that are created for one failure. */
export function markReported(error: object): void {
  reportedOnce.add(error);
}

/** Whether an error, or one of its causes, was reported. */
export function isReported(error: unknown): boolean {
  return causesOf(error).some((each) => each instanceof Object && reportedOnce.has(each));
}

export function causesOf(error: unknown): readonly unknown[] {
  const chain = [error];
  for (let last = error; last instanceof Error && chain.length < maxCauses; ) {
    if (last.cause === undefined) break;
    last = last.cause;
    chain.push(last);
  }
  return chain;
}
