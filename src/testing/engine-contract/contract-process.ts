import { fork } from 'node:child_process';
import type { App } from '../../app.ts';
import { asked, defineContractAgent, detached, type Wish } from './contract-agent.ts';

/** A process of a deployment that can crash. */
export interface ContractProcess {
  /** Starts a run there, in the background or as a turn that a server has accepted; resolves to its id once it is accepted. */
  run(wish: Wish, mode?: 'detached' | 'accepted'): Promise<string>;
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>;
  /** Kills the process, as a crash would. */
  kill(): void;
}

/** What executes the file of a contract process. @default the runtime of the tests */
export interface ContractRuntime {
  /** The program that runs the process. */
  readonly execPath?: string;
  /** Its arguments before the file. */
  readonly execArgv?: string[];
}

interface Order {
  readonly no: number;
  readonly wish: Wish;
  readonly mode: 'detached' | 'accepted';
}

type Answer = { readonly ready: true } | { readonly no: number; readonly runId: string };

/**
 * Starts a file that calls {@link serveContractProcess}. Resolves when the process is ready, or when a run has killed it.
 *
 * @example
 * const worker = await startContractProcess(new URL('./worker.ts', import.meta.url), [connectionString]);
 */
export async function startContractProcess(
  file: string | URL,
  args: readonly string[] = [],
  runtime: ContractRuntime = {},
): Promise<ContractProcess> {
  const child = fork(file, args, { ...runtime, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const waiting = new Map<number, (runId: string) => void>();
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  let count = 0;
  const isReady = new Promise<void>((resolve) => {
    child.on('message', (answer: Answer) => {
      if ('ready' in answer) resolve();
      else waiting.get(answer.no)?.(answer.runId);
    });
  });
  const failed = ended.then(() => {
    if (child.signalCode === 'SIGKILL') return;
    throw new Error(`The process of ${String(file)} ended before it was ready.`);
  });
  // From here on the process may end in any way.
  failed.catch(() => {});
  await Promise.race([isReady, failed]);
  return {
    run(wish, mode = 'detached') {
      const no = count++;
      const order: Order = { no, wish, mode };
      return new Promise((resolve) => {
        waiting.set(no, resolve);
        child.send(order);
      });
    },
    ended,
    kill: () => void child.kill('SIGKILL'),
  };
}

/**
 * Executes the commands of the contract in a process that {@link startContractProcess} has started.
 *
 * @example
 * serveContractProcess(waymark({ store, engine }));
 */
export async function serveContractProcess(app: App): Promise<void> {
  const agent = defineContractAgent(app);
  const tell = (answer: Answer): void => void process.send?.(answer);
  const start = async ({ wish, mode }: Order): Promise<string> => {
    if (mode === 'detached') return (await agent.run(detached(wish))).snapshotId ?? '';
    for await (const { turnStart } of agent.stream(asked(wish), { accept: true }).stream) {
      if (turnStart?.snapshotId !== undefined) return turnStart.snapshotId;
    }
    return '';
  };
  process.on('message', async (order: Order) => {
    tell({ no: order.no, runId: await start(order) });
  });
  // End with the parent process.
  process.once('disconnect', () => process.exit());
  await app.ready();
  tell({ ready: true });
}
