import { fork } from 'node:child_process';
import { type ErrorBody, messageOf, toErrorBody, WaymarkError } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import {
  type ProcessJob,
  type ProcessResult,
  runInProcess,
} from '../../testing/crash-test/real-process.ts';
import type { RunTurn } from '../../testing/crash-test/run-once.ts';
import { watchNetwork } from '../../testing/crash-test/watch-network.ts';
import { closeApp, loadApp } from '../source/load-app.ts';

/** Set in the environment of a process that is to be killed. */
export const crashChildMark = 'WAYMARK_CRASH_CHILD';

type ChildMessage = ProcessResult | { readonly failed: ErrorBody };

/** Runs turns in real processes over the real store, which kill themselves by `SIGKILL` at the crash point. */
export function killRunner(
  path: string,
  {
    owner,
    timeout,
    cwd,
  }: { readonly owner: string; readonly timeout: number; readonly cwd: string },
): RunTurn {
  return async ({ agent, input, model, answers }, killAt) => {
    const isFirst = answers.isFirstRun;
    const job: ProcessJob = {
      agent,
      input,
      ...(typeof model === 'string' && { model }),
      owner,
      sessionId: crypto.randomUUID(),
      requestId: crypto.randomUUID(),
      answers: isFirst ? undefined : answers.toJSON(),
      ...defined({ killAt }),
      isLast: false,
    };
    const first = await runChild(path, job, { timeout, cwd });
    if (isFirst && first) answers.load(first.answers);
    if (killAt === undefined || first === undefined || first.outcome !== undefined) {
      const log = first?.log ?? { points: [], begun: [], effects: [] };
      return { ...log, ...defined({ outcome: first?.outcome }), hasCrashed: false };
    }
    const second = await runChild(
      path,
      { ...job, answers: first.answers, isLast: true },
      { timeout, cwd },
    );
    return {
      points: first.log.points,
      begun: [...first.log.begun, ...(second?.log.begun ?? [])],
      effects: [...first.log.effects, ...(second?.log.effects ?? [])],
      ...defined({ outcome: second?.outcome }),
      hasCrashed: true,
    };
  };
}

/** The result of a process; `undefined` if it was not done in time. */
async function runChild(
  path: string,
  job: ProcessJob,
  { timeout, cwd }: { readonly timeout: number; readonly cwd: string },
): Promise<ProcessResult | undefined> {
  const child = fork(process.argv[1] ?? '', ['crash-test', path], {
    cwd,
    env: { ...process.env, [crashChildMark]: '1' },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  let message: ChildMessage | undefined;
  child.on('message', (sent: ChildMessage) => {
    message = sent;
  });
  child.send(job);
  const late = setTimeout(() => child.kill('SIGKILL'), timeout);
  await new Promise((resolve, reject) => child.once('exit', resolve).once('error', reject));
  clearTimeout(late);
  if (message === undefined || !('failed' in message)) return message;
  const { status, message: reason } = message.failed;
  throw new WaymarkError(status, reason);
}

/** What a process that is to be killed does: one turn, as its parent says. */
export async function crashChild(path: string, cwd: string): Promise<void> {
  const tell = (message: ChildMessage): Promise<void> =>
    new Promise((resolve) => process.send?.(message, () => resolve()));
  const job = await new Promise<ProcessJob>((resolve) => process.once('message', resolve));
  try {
    const { app } = await loadApp(path, cwd, 'reading');
    const stopWatching = watchNetwork();
    // Once its parent has what it did, it dies without another word.
    const die = (result: ProcessResult): void =>
      void tell(result).then(() => process.kill(process.pid, 'SIGKILL'));
    const result = await runInProcess(app, job, die);
    stopWatching();
    await tell(result);
    await closeApp(app, 0);
  } catch (error) {
    await tell({ failed: { ...toErrorBody(error), message: messageOf(error) } });
  }
  process.disconnect?.();
}
