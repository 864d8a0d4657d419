import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { Job } from '../job.ts';
import type { Noise } from './machine.ts';

/** What came of a job: what was measured, or why it was not. */
export type Outcome<Result> = { readonly noise?: Noise } & (
  | { readonly result: Result }
  | { readonly error: string }
);

// Nobody's telemetry, and no key that a constructor might miss.
const environment = {
  GENKIT_TELEMETRY_SERVER: '',
  LANGSMITH_TRACING: 'false',
  LANGCHAIN_TRACING_V2: 'false',
  MASTRA_TELEMETRY_DISABLED: '1',
  OPENAI_AGENTS_DISABLE_TRACING: '1',
  OPENAI_API_KEY: 'none',
  OTEL_SDK_DISABLED: 'true',
};

/** Measures in a process of its own, so that no job sees another's heap, caches or compiled code. */
export function runJob<Result>(job: Job): Promise<Outcome<Result>> {
  return new Promise((resolve) => {
    const child = fork(join(import.meta.dirname, '../child.ts'), {
      execArgv: ['--expose-gc'],
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    let said = '';
    child.stderr?.on('data', (text) => {
      said = (said + String(text)).slice(-2000);
    });
    child.once('message', (outcome: Outcome<Result>) => resolve(outcome));
    child.once('exit', (code, signal) => {
      resolve({ error: `The process ended (${signal ?? code}) before it had measured. ${said}` });
    });
    child.send(job);
  });
}
