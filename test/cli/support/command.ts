import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { builtCommand, withBuiltPackage } from './built-package.ts';

/** The agents that the tests talk to. */
export const agentsFile = fileURLToPath(new URL('../fixture/agents.ts', import.meta.url));

/** A folder that is gone after the tests. */
export function tempFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'waymark-cli-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** How a command ended. */
export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that is running. */
export class Running {
  readonly child: ChildProcess;
  readonly #finished: Promise<Finished>;
  readonly #waiting = new Set<() => void>();
  stdout = '';
  stderr = '';

  constructor(args: readonly string[], cwd: string, env: Record<string, string> = {}) {
    const found = withBuiltPackage();
    this.child = spawn(process.execPath, [...found.options, builtCommand(), ...args], {
      cwd,
      env: { ...process.env, ...found.env, NO_COLOR: '1', ...env },
    });
    this.child.stdout?.on('data', (text: Buffer) => this.#hear('stdout', text));
    this.child.stderr?.on('data', (text: Buffer) => this.#hear('stderr', text));
    this.#finished = new Promise((done) => {
      this.child.on('close', (code) => {
        this.#wake();
        done({ code, stdout: this.stdout, stderr: this.stderr });
      });
    });
  }

  /** Resolves once the output so far, of both kinds, fits. */
  async see(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.stdout + this.stderr)) {
      if (this.child.exitCode !== null) {
        throw new Error(`It ended without ${pattern}:\n${this.stdout}\n${this.stderr}`);
      }
      await new Promise<void>((wake) => this.#waiting.add(wake));
    }
  }

  type(line: string): void {
    this.child.stdin?.write(`${line}\n`);
  }

  interrupt(): void {
    this.child.kill('SIGINT');
  }

  /** No more input, and the end. */
  async end(): Promise<Finished> {
    this.child.stdin?.end();
    return await this.#finished;
  }

  get finished(): Promise<Finished> {
    return this.#finished;
  }

  #hear(which: 'stdout' | 'stderr', text: Buffer): void {
    this[which] += text.toString();
    this.#wake();
  }

  #wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }
}

/** Runs a command to its end. */
export async function command(
  cwd: string,
  args: readonly string[],
  { input = '' }: { readonly input?: string } = {},
): Promise<Finished> {
  const running = new Running(args, cwd);
  if (input !== '') running.child.stdin?.write(input);
  return await running.end();
}
