import { isWaymarkError, messageOf } from '../../core/error.ts';
import type { Input, Output } from '../../protocol/turn.ts';
import { exitCode, exitCodeOf } from '../exit-code.ts';
import type { Terminal } from '../terminal.ts';
import { oneLine, safe } from '../text/format.ts';
import { ChunkPrinter } from '../text/message-text.ts';
import { askInterrupts } from './ask.ts';
import type { Conversation } from './conversation.ts';
import { Lines } from './lines.ts';
import { runSlash, showLast } from './slash-commands.ts';

export interface ChatOptions {
  readonly conversation: Conversation;
  readonly terminal: Terminal;
  /** The options that reach the same agents. */
  readonly sourceArguments: string;
  /** The app prints failures with their stacks. */
  readonly isDebug: boolean;
}

/** Reads lines and runs turns until the user leaves; resolves to the exit code. */
export class ChatLoop {
  readonly #options: ChatOptions;
  readonly #conversation: Conversation;
  readonly #terminal: Terminal;
  readonly #lines: Lines;
  readonly #left = Promise.withResolvers<undefined>();
  readonly #forget: () => void;
  #isLeaving = false;
  #isStopping = false;
  /** `/quit` was typed during the running turn. */
  #hasQuit = false;

  constructor(options: ChatOptions) {
    const { conversation, terminal } = options;
    this.#options = options;
    this.#conversation = conversation;
    this.#terminal = terminal;
    this.#lines = new Lines(terminal, () => this.#interrupt());
    this.#forget = terminal.onInterrupt(() => this.#interrupt());
  }

  async talk(): Promise<number> {
    showLast(await this.#conversation.state(), this.#terminal);
    await this.#orLeft(this.#answerInterrupts());
    while (!this.#isLeaving) {
      const line = await this.#orLeft(this.#lines.next('› '));
      if (line === undefined || isQuit(line)) break;
      if (line.trim() !== '') await this.#orLeft(this.#act(line));
    }
    return this.#isLeaving ? exitCode.interrupted : exitCode.ok;
  }

  /** Runs one message. In a terminal, asks about its interrupts. */
  async say(text: string, json: boolean): Promise<number> {
    let output = await this.#orLeft(this.#turn(textInput(text), json));
    if (!json && output?.finishReason === 'interrupted' && this.#terminal.interactive) {
      output = (await this.#orLeft(this.#answerInterrupts())) ?? output;
    }
    if (json) this.#terminal.print(JSON.stringify(output ? withMessage(output) : null, null, 2));
    if (this.#isLeaving || output === undefined) return exitCode.interrupted;
    if (output.error) return exitCode.failed;
    if (output.finishReason === 'aborted') return exitCode.interrupted;
    if (output.finishReason !== 'interrupted') return exitCode.ok;
    this.#terminal.note(
      'A tool waits for an answer. To answer, continue the chat without a message.',
    );
    return exitCode.waiting;
  }

  /** Releases the terminal, and prints how to continue. */
  end(): void {
    this.#forget();
    this.#lines.close();
    const { agent, isKept, place } = this.#conversation;
    const { snapshotId } = place;
    if (!isKept || snapshotId === undefined) return;
    const command = `waymark chat ${agent.name} --snapshot ${snapshotId}${this.#options.sourceArguments}`;
    this.#terminal.note(`Continue with: ${command}`);
  }

  async #act(line: string): Promise<void> {
    const text = line.trim();
    const [, message = ''] = /^\/detach\s*(.*)$/s.exec(text) ?? [];
    try {
      if (message !== '') await this.#turn({ ...textInput(message), detach: true });
      else if (text === '/detach' || text === '/stop') this.#terminal.note('No turn is running.');
      else {
        if (text.startsWith('/')) await runSlash(text, this.#conversation, this.#terminal);
        else await this.#turn(textInput(line));
        await this.#answerInterrupts();
      }
    } catch (error) {
      if (!isWaymarkError(error)) throw error;
      this.#report(error);
    }
  }

  async #turn(input: Input, quiet = false): Promise<Output> {
    const printer = new ChunkPrinter(this.#terminal);
    this.#isStopping = false;
    this.#hasQuit = false;
    // In a terminal, a line typed during a turn is added to it. Piped lines wait for their turn, except for commands about the turn.
    this.#lines.onEarly = () => this.#early();
    const turn = this.#conversation.turn(input, (chunk) => quiet || printer.print(chunk));
    this.#early();
    try {
      const output = await turn;
      printer.end();
      if (!quiet) this.#close(output);
      return output;
    } finally {
      printer.end();
      this.#lines.onEarly = undefined;
    }
  }

  #early(): void {
    const isTyped = this.#terminal.interactive;
    const line = this.#lines.takeIf(
      (text) =>
        /^\/(detach|stop)\s*$/.test(text) ||
        /^\/steer\s+\S/.test(text) ||
        (isTyped && !text.startsWith('/') && text.trim() !== ''),
    );
    const report = (error: unknown): void => this.#report(error);
    if (line === undefined) this.#announceQuit();
    else if (line.startsWith('/stop')) this.#conversation.stop();
    else if (line.startsWith('/detach')) this.#conversation.detach().catch(report);
    else this.#steer(line.replace(/^\/steer\s+/, '')).catch(report);
  }

  /** `/quit` stays queued until the turn has ended, so that the message or answer before it is not lost. */
  #announceQuit(): void {
    if (this.#hasQuit || !this.#terminal.interactive || !isQuit(this.#lines.first)) return;
    this.#hasQuit = true;
    this.#terminal.note('Leaving when this turn has ended. To stop it, press Ctrl-C.');
  }

  async #steer(text: string): Promise<void> {
    const { note, style } = this.#terminal;
    if (await this.#conversation.steer(text)) note(style.dim('Will be added to the running turn.'));
    // It came too late: it is the next turn.
    else this.#lines.unread(text);
  }

  #report(error: unknown): void {
    const { note, style } = this.#terminal;
    note(`${style.bad('✗')} ${safe(messageOf(error))}`);
  }

  #close({ finishReason, error, snapshotId, sessionId }: Output): void {
    const { agent, isKept, isLastSaved } = this.#conversation;
    const { sourceArguments, isDebug } = this.#options;
    const { note, style } = this.#terminal;
    const where = `--agent ${agent.name}${sourceArguments}`;
    if (error) {
      // An error from a server is plain data.
      const isLocal = isWaymarkError(error);
      // With --debug, the app has already printed it with its stack.
      if (!(isDebug && isLocal)) {
        note(`${style.bad('✗')} ${oneLine(error.message, 400)} (${error.status})`);
        if (isLocal) note(style.dim('To see the stack, use --debug.'));
      }
      if (isKept) note(style.dim(`To inspect the failed turn: waymark show ${sessionId} ${where}`));
    } else if (finishReason === 'detached') {
      note(`Running in the background. To follow it: waymark watch ${snapshotId} ${where}`);
    } else if (finishReason === 'aborted') {
      note(
        isLastSaved
          ? 'Stopped. The partial answer is kept.'
          : 'Stopped before the turn started. Your input was not saved.',
      );
    } else if (finishReason === 'length')
      note('The answer was cut off: it reached the token limit.');
    else if (finishReason === 'blocked') note('The model refused to answer.');
  }

  /** Asks about interrupts until none is left; asks again when an answer is invalid. */
  async #answerInterrupts(): Promise<Output | undefined> {
    let output: Output | undefined;
    while (!this.#isLeaving) {
      const requests = await this.#conversation.interrupts();
      if (requests.length === 0) break;
      let isCommand = false;
      const ask = async (prompt: string): Promise<string | undefined> => {
        const line = await this.#lines.next(prompt);
        isCommand = line?.startsWith('/') === true;
        if (line === undefined || !isCommand) return line;
        this.#lines.unread(line);
        return undefined;
      };
      const input = await askInterrupts(requests, ask, this.#terminal);
      if (isCommand) break;
      if (input === undefined || this.#isLeaving) {
        this.#terminal.note('The tool still waits for an answer.');
        break;
      }
      try {
        output = await this.#turn(input);
      } catch (error) {
        if (exitCodeOf(error) !== exitCode.usage) throw error;
        this.#report(error);
      }
    }
    return output;
  }

  #interrupt(): void {
    if (this.#conversation.isRunning && !this.#isStopping) {
      this.#isStopping = true;
      this.#terminal.note('\nStopping. Press Ctrl-C again to leave.');
      this.#conversation.stop();
      return;
    }
    if (this.#isLeaving) process.exit(exitCode.interrupted);
    this.#isLeaving = true;
    this.#conversation.stop();
    this.#left.resolve(undefined);
  }

  /** Waits for some work, or until the user leaves. */
  async #orLeft<Value>(work: Promise<Value>): Promise<Value | undefined> {
    // Abandoned work may fail later.
    work.catch(() => {});
    return await Promise.race([work, this.#left.promise]);
  }
}

/** An output with the original message of its error. */
function withMessage(output: Output): object {
  const { error } = output;
  return error ? { ...output, error: { ...error, message: error.message } } : output;
}

function isQuit(line: string | undefined): boolean {
  return line?.trim() === '/quit';
}

function textInput(text: string): Input {
  return { message: { role: 'user', content: [{ text }] } };
}
