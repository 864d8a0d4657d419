import { type ChildProcess, fork } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Asked, type ServerOptions, servers } from '../servers/server.ts';

/** A server under test in a process of its own. */
export interface ServerProcess {
  readonly child: ChildProcess;
  readonly port: number;
  readonly asked: Asked;
}

/** Starts a server; its data is in a folder of its own. */
export async function startServer(name: string, options: ServerOptions): Promise<ServerProcess> {
  const asked = servers[name];
  if (asked === undefined) throw new Error(`No server "${name}".`);
  const directory = join(options.directory, `${name}-${options.pieces}`);
  mkdirSync(directory, { recursive: true });
  const program = join(import.meta.dirname, '../server-child.ts');
  const child = fork(program, [name, JSON.stringify({ ...options, directory })], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const port = await new Promise<number>((resolve, reject) => {
    child.once('message', (message: { port: number }) => resolve(message.port));
    child.once('exit', (code) => reject(new Error(`The server ended with ${code}.`)));
  });
  return { child, port, asked };
}

/** Microseconds of the processor that a server has used so far. */
export function cpuOf({ child }: Pick<ServerProcess, 'child'>): Promise<number> {
  return new Promise((resolve) => {
    child.once('message', ({ cpu }: { readonly cpu: number }) => resolve(cpu));
    child.send('cpu');
  });
}
