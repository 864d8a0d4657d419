import { bundleChild } from '../../support/bundle-child.ts';
import { startProcess, type TestProcess } from '../../support/child-process.ts';
import type { ChildOptions } from './child.ts';

/** A process of the tests' own. */
export interface Child extends TestProcess {
  /** The name under which Postgres knows its connections. */
  readonly name: string;
  /** Where it serves; empty for a worker. */
  readonly url: string;
}

const script = new URL('./child.ts', import.meta.url);
let children = 0;

/** Starts a process, and resolves when it is ready. `mayDie`: the test makes it die. */
export async function startChild(
  { connectionString, ...options }: ChildOptions,
  { mayDie = false }: { readonly mayDie?: boolean } = {},
): Promise<Child> {
  const name = `child-${++children}`;
  const mark = connectionString.includes('?') ? '&' : '?';
  const named = `${connectionString}${mark}application_name=${name}`;
  const child = startProcess(
    [bundleChild(script), JSON.stringify({ ...options, connectionString: named })],
    {
      mayDie,
    },
  );
  const url = await child.take((line) => /^ready (.*)$/.exec(line)?.[1], '"ready"');
  // Keeps the getters of the process.
  return Object.create(child, { name: { value: name }, url: { value: url } }) as Child;
}
