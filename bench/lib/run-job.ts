import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { Job } from '../job.ts';
import type { Noise } from './machine.ts';

/** What came of a job: what was measured, or why it was not. */
export type Outcome<Result> = { readonly noise?: Noise } & (
  | { readonly result: Result }
  | { readonly error: string }
);

// Nobody's telemetry or logs, and no key that a constructor might miss.
const environment = {
  GENKIT_TELEMETRY_SERVER: '',
  LANGSMITH_TRACING: 'false',
  LANGCHAIN_TRACING_V2: 'false',
  MASTRA_TELEMETRY_DISABLED: '1',
  OPENAI_AGENTS_DISABLE_TRACING: '1',
  OPENAI_AGENTS_DONT_LOG_MODEL_DATA: '1',
  OPENAI_AGENTS_DONT_LOG_TOOL_DATA: '1',
  OPENAI_API_KEY: 'none',
  OTEL_SDK_DISABLED: 'true',
};

/**
 * Measures in a process of its own, so that no job sees another's heap, caches or compiled code, and none can take
 * the others down. One that takes longer than it may is ended; its own children end with it.
 */
export function runJob<Result>(job: Job, limitMs: number): Promise<Outcome<Result>> {
  return new Promise((resolve) => {
    const child = fork(join(import.meta.dirname, '../child.ts'), {
      execArgv: ['--expose-gc'],
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    const limit = setTimeout(() => {
      child.kill('SIGKILL');
      resolve({ error: `took longer than ${Math.round(limitMs / 1000)} s` });
    }, limitMs);
    let said = '';
    child.stderr?.on('data', (text) => {
      said = (said + String(text)).slice(-2000);
    });
    let outcome: Outcome<Result> | undefined;
    child.once('message', (sent: Outcome<Result>) => {
      outcome = sent;
    });
    // The next one starts when this one is gone.
    child.once('exit', (code, signal) => {
      clearTimeout(limit);
      const reason = `the process ended (${signal ?? code}) before it had measured. ${said}`;
      resolve(outcome ?? { error: reason });
    });
    child.once('error', ({ message }) => resolve({ error: message }));
    child.send(job, (error) => {
      if (error) resolve({ error: error.message });
    });
  });
}
