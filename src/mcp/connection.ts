import type { Client } from '@modelcontextprotocol/client';
import { Mutex } from '../core/async/promises.ts';
import { raceSignal } from '../core/async/signal.ts';
import { messageOf, WaymarkError } from '../core/error.ts';
import { afterThisTurn } from '../core/platform.ts';
import { backoff, type Clock, systemClock, withTimeout } from '../core/time.ts';
import type { SpanAttributes } from '../core/trace.ts';
import { mcpNames } from '../core/trace-names.ts';
import type { ToolSourceStatus } from '../generate/tool/tool-source.ts';
import { createClient } from './client.ts';
import { toMcpError } from './errors.ts';
import { filterIncoming, type ToolLimit } from './incoming.ts';
import type { McpServer } from './options.ts';
import { LegacyQuestions } from './questions.ts';
import { defaultMaxMessageBytes, type OpenTransport, openTransport } from './transport.ts';

export interface OpenClient {
  /** Asks the server something. Errors name what it was: `the call to "search"`. */
  ask<T>(
    doing: string,
    signal: AbortSignal | undefined,
    send: (client: Client) => Promise<T>,
  ): Promise<T>;
  /** Whether the server speaks a protocol from before 2026, in which it asks questions by requests to the client. */
  readonly isLegacy: boolean;
  /** The questions of a server of 2025 during calls. */
  readonly questions: LegacyQuestions;
  readonly toolLimit: ToolLimit;
  /** The connection, for the span of a request. */
  readonly traced: SpanAttributes;
}

const retryDelays = { baseMs: 500, maxMs: 30_000 };

/**
 * The connection to one server: opened when it is first needed, and again after it was lost. After a failed attempt,
 * callers get its error at once until the next attempt is due, so that a server that is down does not slow down turns.
 */
export class McpConnection {
  readonly #name: string;
  readonly #options: McpServer;
  readonly #user: string | undefined;
  readonly #clock: Clock;
  /** Called when the server says that its tools have changed, and when another process of it may have other tools. */
  readonly #onToolsChanged: () => void;
  #open: Promise<OpenClient> | undefined;
  #end: (() => Promise<void>) | undefined;
  #failures = 0;
  #retryAt = 0;
  #lastError: WaymarkError | undefined;
  #lastFailure: { readonly error: WaymarkError; readonly at: number } | undefined;
  #turns: Mutex | undefined;
  // To ask whether a server knows the newer protocol takes a second process. One that did not know it is not asked again.
  #wasLegacy = false;
  #uses = 0;
  #isReleased = false;

  constructor(
    name: string,
    { options, user }: { readonly options: McpServer; readonly user: string | undefined },
    onToolsChanged: () => void,
  ) {
    this.#name = name;
    this.#options = options;
    this.#user = user;
    this.#onToolsChanged = onToolsChanged;
    this.#clock = options.clock ?? systemClock;
  }

  get isInUse(): boolean {
    return this.#uses > 0;
  }

  status(): Omit<ToolSourceStatus, 'tools'> {
    const lastError = this.#lastFailure && { lastError: this.#lastFailure };
    if (this.#end) return { state: 'connected', ...lastError };
    if (this.#open) return { state: 'connecting', ...lastError };
    if (this.#lastError === undefined) return { state: 'idle', ...lastError };
    return { state: 'failed', ...lastError, retryAt: this.#retryAt };
  }

  /** Ends the connection now, and from now on after each use. */
  release(): void {
    this.#isReleased = true;
    this.#endIfReleased();
  }

  /** Remembers a failure for {@link McpConnection.status}. */
  note(error: WaymarkError): void {
    this.#lastFailure = { error, at: this.#clock.now() };
  }

  /** Asks the server something, at the same time as others. */
  async withClient<T>(
    signal: AbortSignal | undefined,
    fn: (open: OpenClient) => Promise<T>,
  ): Promise<T> {
    this.#uses += 1;
    try {
      return await fn(await this.#client(signal));
    } finally {
      this.#uses -= 1;
      this.#endIfReleased();
    }
  }

  #endIfReleased(): void {
    if (!this.#isReleased || this.#uses > 0) return;
    if (this.#end) this.#retire(this.#end);
    // It still connects, for a call that was stopped.
    else void this.#open?.then(() => this.#endIfReleased()).catch(() => {});
  }

  async #client(signal?: AbortSignal): Promise<OpenClient> {
    if (this.#open === undefined) {
      const wait = this.#retryAt - this.#clock.now();
      if (this.#lastError !== undefined && wait > 0) throw notYet(this.#lastError, wait);
      this.#open = this.#connect();
    }
    return raceSignal(this.#open, signal);
  }

  /** Calls the server, after the calls before it if it is one that asks questions during calls. */
  async use<T>(signal: AbortSignal, fn: (open: OpenClient) => Promise<T>): Promise<T> {
    const run = (): Promise<T> => this.withClient(signal, fn);
    return this.#turns ? raceSignal(this.#turns.run(run), signal) : run();
  }

  /** Takes a connection out of use; the next call opens another one. */
  #retire(end: () => Promise<void>): void {
    if (this.#end === end) {
      this.#open = undefined;
      this.#end = undefined;
    }
    // First the server gets its answer: one that still waits for it may outlive its input.
    afterThisTurn(() => void end());
  }

  /** Ends the connection and the server's process. It is opened again when it is used again. */
  async close(): Promise<void> {
    await this.#open?.catch(() => {});
    const end = this.#end;
    // Taken out of use first, so that its end is not taken for a failure.
    this.#open = undefined;
    this.#end = undefined;
    await end?.();
    this.#lastError = undefined;
    this.#failures = 0;
  }

  async #connect(): Promise<OpenClient> {
    const life = new Life(this.#name, this.#options.maxMessageBytes ?? defaultMaxMessageBytes);
    let opened: OpenTransport | undefined;
    try {
      opened = await openTransport(this.#options, this.#user, () => life.tooLong());
      const client = await this.#handshake(opened, life);
      this.#failures = 0;
      this.#lastError = undefined;
      return client;
    } catch (error) {
      this.#open = undefined;
      this.#wasLegacy = false;
      this.#failures += 1;
      this.#retryAt = this.#clock.now() + backoff(this.#failures, retryDelays);
      this.#lastError = this.#explain(life.endedBy ?? error, opened?.lastOutput() ?? '');
      this.note(this.#lastError);
      throw this.#lastError;
    }
  }

  async #handshake(opened: OpenTransport, life: Life): Promise<OpenClient> {
    const { transport } = opened;
    const ms = this.#options.connectTimeout ?? 30_000;
    const questions = new LegacyQuestions({
      onAsked: () => {
        this.#turns ??= new Mutex();
      },
      retire: () => this.#retire(life.end),
    });
    const { tasks = false } = this.#options;
    const client = await createClient(
      { connectTimeout: ms, tasks },
      {
        onToolsChanged: this.#onToolsChanged,
        onQuestion: (params) => questions.ask(params),
      },
    );
    life.end = async () => {
      await client.close().catch(() => {});
      await transport.close().catch(() => {});
    };
    life.kill = () => opened.kill();
    client.onclose = () => {
      opened.onClosed();
      if (this.#end !== life.end) return;
      this.#open = undefined;
      this.#end = undefined;
      this.note(life.endedBy ?? this.#explain(hasClosed(this.#name), opened.lastOutput()));
      this.#onToolsChanged();
    };
    client.onerror = (error) => life.note(error);
    try {
      const prior = this.#wasLegacy ? { prior: { kind: 'legacy' } as const } : {};
      const connecting = client.connect(transport, { timeout: ms, ...prior });
      await withTimeout(connecting, { clock: systemClock, ms, error: () => this.#late(ms) });
    } catch (error) {
      // Not awaited: a process that does not listen takes seconds to end.
      void life.end();
      throw error;
    }
    this.#end = life.end;
    opened.onConnected();
    const toolLimit = filterIncoming(transport, this.#name, (reason) => life.fail(reason));
    const isLegacy = client.getProtocolEra() === 'legacy';
    this.#wasLegacy = isLegacy;
    const ask: OpenClient['ask'] = async (doing, signal, send) => {
      try {
        return await send(client);
      } catch (error) {
        throw toMcpError(life.endedBy ?? error, { server: this.#name, doing, signal });
      }
    };
    const url = 'url' in this.#options ? new URL(this.#options.url) : undefined;
    const traced = {
      [mcpNames.protocolVersion]: client.getNegotiatedProtocolVersion(),
      [mcpNames.sessionId]: transport.sessionId,
      [mcpNames.transport]: url ? 'tcp' : 'pipe',
      [mcpNames.serverAddress]: url?.hostname,
      [mcpNames.serverPort]: url && Number(url.port || (url.protocol === 'http:' ? 80 : 443)),
    };
    return { ask, isLegacy, questions, toolLimit, traced };
  }

  #late(ms: number): WaymarkError {
    return new WaymarkError(
      'DEADLINE_EXCEEDED',
      `MCP server "${this.#name}" did not answer within ${ms} ms. Check that it starts, or raise \`connectTimeout\`.`,
    );
  }

  #explain(error: unknown, output: string): WaymarkError {
    const call = { server: this.#name, doing: 'the connection attempt' };
    const { status, message, publicMessage } = toMcpError(error, call);
    const said = output === '' ? message : `${message} Its last output: ${output}`;
    return new WaymarkError(status === 'INVALID_ARGUMENT' ? 'UNAVAILABLE' : status, said, {
      cause: error,
      publicMessage: publicMessage ?? message,
    });
  }
}

/** The end of one connection, and its cause. */
class Life {
  readonly #server: string;
  readonly #maxBytes: number;
  endedBy: WaymarkError | undefined;
  end: () => Promise<void> = async () => {};
  kill: () => void = () => {};

  constructor(server: string, maxBytes: number) {
    this.#server = server;
    this.#maxBytes = maxBytes;
  }

  /** Ends the connection of a server that misbehaves. */
  fail(reason: string): WaymarkError {
    this.endedBy ??= new WaymarkError(
      'RESOURCE_EXHAUSTED',
      `MCP server "${this.#server}" ${reason}. It was disconnected.`,
    );
    void this.end();
    this.kill();
    return this.endedBy;
  }

  tooLong(): WaymarkError {
    return this.fail(
      `sent a message of more than ${this.#maxBytes} bytes (\`maxMessageBytes\`), so ask it for less`,
    );
  }

  /** Looks for the error with which the transport of a process ends by itself. */
  note(error: Error): void {
    if (/exceeded maximum size/.test(error.message)) this.tooLong();
  }
}

function hasClosed(name: string): WaymarkError {
  return new WaymarkError('UNAVAILABLE', `MCP server "${name}" closed the connection.`);
}

// A new error each time: each one is reported where it is thrown.
function notYet(last: WaymarkError, wait: number): WaymarkError {
  const next = `The next attempt is in ${Math.ceil(wait / 1_000)} s.`;
  return new WaymarkError(last.status, `${messageOf(last)} ${next}`, {
    cause: last.cause,
    publicMessage: `${last.publicMessage ?? last.message} ${next}`,
  });
}
