import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk';
import { failedPrecondition, WaymarkError } from '../core/error.ts';
import { defined } from '../core/json/json.ts';
import { systemClock, waitAtMost } from '../core/time.ts';
import { endGroup, ownEnvironment } from '../workspace/execute.ts';
import type { AcpSettings } from './options.ts';

/** How much of the standard error is kept for errors. */
const maxStderr = 4_000;
/** How long a process that has closed its output may take to end. */
const closeMs = 1_000;

const running = new Set<ChildProcess>();
let isWatched = false;

/** A process that speaks ACP. Whatever it does wrong ends it, with an error that says what. */
export class Program {
  readonly stream: Stream;
  /** Rejects when the program fails or ends. */
  readonly failed: Promise<never>;
  readonly #child: ChildProcess;
  readonly #settings: AcpSettings;
  readonly #fail: (error: WaymarkError) => void;
  /** Resolves when another message may be read. */
  readonly #room: () => Promise<void>;
  #stderr = '';
  #bytes = 0;
  failure: WaymarkError | undefined;

  constructor(settings: AcpSettings, cwd: string, room: () => Promise<void>) {
    this.#settings = settings;
    this.#room = room;
    const [command = '', ...args] = settings.command;
    const child = spawn(command, args, {
      cwd,
      env: { ...ownEnvironment(), ...defined(settings.env ?? {}) },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: process.platform !== 'win32',
      windowsHide: true,
    });
    this.#child = child;
    running.add(child);
    if (!isWatched) process.once('exit', () => running.forEach(endGroup));
    isWatched = true;
    const { promise, reject } = Promise.withResolvers<never>();
    promise.catch(() => {});
    this.failed = promise;
    this.#fail = (error) => {
      this.failure ??= error;
      reject(this.failure);
    };
    child.stderr?.on('data', (piece: Buffer) => {
      this.#stderr = (this.#stderr + piece.toString()).slice(-maxStderr);
    });
    child.stdin?.on('error', () => {});
    child.once('error', (cause) => this.end(this.#notStarted(cause)));
    const ended = (code: number | null, signal: NodeJS.Signals | null): void => {
      running.delete(child);
      this.end(this.#gone(signal ?? `code ${code}`));
    };
    child.once('close', ended);
    // A process that it has started, and that has left its group, may keep the output open.
    child.once('exit', (code, signal) => {
      endGroup(child);
      setTimeout(() => ended(code, signal), closeMs).unref();
    });
    this.stream = {
      readable: new ReadableStream(this.#source(), { highWaterMark: 0 }),
      writable: new WritableStream({ write: (message) => this.#write(message) }),
    };
  }

  /** If the connection has closed, waits for the end of the process, which says why. */
  async whyClosed(error: unknown): Promise<void> {
    if (typeof Object(error).code === 'number') return;
    await waitAtMost(
      systemClock,
      closeMs,
      this.failed.catch(() => {}),
    );
  }

  /** Counts the bytes of the next turn from zero. */
  startTurn(): void {
    this.#bytes = 0;
  }

  /** Keeps this process alive while a turn runs, and only then. */
  hold(isHeld: boolean): void {
    const { stdin, stdout, stderr } = this.#child;
    for (const each of [this.#child, stdin, stdout, stderr]) {
      const held = each as { ref?(): void; unref?(): void } | null;
      if (isHeld) held?.ref?.();
      else held?.unref?.();
    }
  }

  /** Ends the process, with everything that it has started. */
  end(error: WaymarkError): void {
    this.#fail(error);
    endGroup(this.#child);
  }

  #source(): UnderlyingDefaultSource<AnyMessage> {
    const messages = this.#messages();
    return {
      pull: async (controller) => {
        try {
          await this.#room();
          const { value, done } = await messages.next();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          this.end(error as WaymarkError);
          controller.error(error);
        }
      },
    };
  }

  async *#messages(): AsyncGenerator<AnyMessage> {
    const { name, maxMessageBytes, maxTurnBytes } = this.#settings;
    let rest: Buffer[] = [];
    let size = 0;
    for await (const piece of this.#child.stdout ?? []) {
      let left = piece as Buffer;
      this.#bytes += left.length;
      if (this.#bytes > maxTurnBytes) {
        throw tooMuch(name, `more than ${maxTurnBytes} bytes in one turn`);
      }
      for (let end = left.indexOf(10); end >= 0; end = left.indexOf(10)) {
        const line = Buffer.concat([...rest, left.subarray(0, end)])
          .toString('utf8')
          .trim();
        rest = [];
        size = 0;
        left = left.subarray(end + 1);
        if (line !== '') yield parse(name, line);
      }
      size += left.length;
      if (size > maxMessageBytes) {
        throw tooMuch(name, `a message of more than ${maxMessageBytes} bytes`);
      }
      if (left.length > 0) rest.push(left);
    }
  }

  async #write(message: AnyMessage): Promise<void> {
    const { stdin } = this.#child;
    if (!stdin?.writable) throw this.failure ?? this.#gone('no standard input');
    // A program that does not read must not fill the memory of this process.
    if (!stdin.write(`${JSON.stringify(message)}\n`)) {
      await Promise.race([once(stdin, 'drain'), this.failed]);
    }
  }

  #notStarted(cause: Error): WaymarkError {
    const { name, command } = this.#settings;
    return failedPrecondition(
      `The program of agent "${name}" cannot be started: ${JSON.stringify(command[0])} (${cause.message}). Install it, or correct \`command\`.`,
      { cause, publicMessage: `The program of agent "${name}" cannot be started.` },
    );
  }

  #gone(how: string): WaymarkError {
    const said = this.#stderr.trim();
    const last = said === '' ? '' : ` It said last: ${said.slice(-600)}`;
    return new WaymarkError(
      'UNAVAILABLE',
      `The program of agent "${this.#settings.name}" ended with ${how}.${last}`,
      { publicMessage: `The program of agent "${this.#settings.name}" ended.` },
    );
  }
}

function parse(name: string, line: string): AnyMessage {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === 'object' && value !== null) return value as AnyMessage;
  } catch {
    // The error below says it.
  }
  throw new WaymarkError(
    'INTERNAL',
    `The program of agent "${name}" wrote a line to its standard output that is no JSON-RPC message: ${JSON.stringify(line.slice(0, 120))}`,
    { publicMessage: `The program of agent "${name}" wrote something else than ACP.` },
  );
}

function tooMuch(name: string, what: string): WaymarkError {
  return new WaymarkError('RESOURCE_EXHAUSTED', `The program of agent "${name}" sent ${what}.`);
}
