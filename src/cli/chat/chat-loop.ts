import { isWaymarkError, messageOf } from '../../core/error.ts';
import type { Input, Output } from '../../protocol/turn.ts';
import { exitCode, exitCodeOf } from '../exit-code.ts';
import type { Terminal } from '../terminal.ts';
import { ChunkPrinter } from '../text/chunk-printer.ts';
import { oneLine, safe } from '../text/safe.ts';
import { askInterrupts } from './ask.ts';
import type { Conversation } from './conversation.ts';
import { Lines } from './lines.ts';
import { runSlash, showLast } from './slash-commands.ts';

/** How a chat goes. */
export interface ChatOptions {
  readonly conversation: Conversation;
  readonly terminal: Terminal;
  /** What a command line must say to reach the same agents. */
  readonly sourceArguments: string;
  /** Whether what fails in this process is shown with its stack. */
  readonly isDebug: boolean;
}

/** Talks until there is nothing more to say; resolves to the exit code. */
export class ChatLoop {
  readonly #conversation: Conversation;
  readonly #terminal: Terminal;
  readonly #sourceArguments: string;
  readonly #isDebug: boolean;
  readonly #lines: Lines;
  readonly #left = Promise.withResolvers<undefined>();
  readonly #forget: () => void;
  #isLeaving = false;
  #isStopping = false;

  constructor({ conversation, terminal, sourceArguments, isDebug }: ChatOptions) {
    this.#conversation = conversation;
    this.#terminal = terminal;
    this.#sourceArguments = sourceArguments;
    this.#isDebug = isDebug;
    this.#lines = new Lines(terminal, () => this.#interrupt());
    this.#forget = terminal.onInterrupt(() => this.#interrupt());
  }

  /** A conversation, line by line. */
  async talk(): Promise<number> {
    showLast(await this.#conversation.state(), this.#terminal);
    await this.#orLeft(this.#answerInterrupts());
    while (!this.#isLeaving) {
      const line = await this.#orLeft(this.#lines.next('› '));
      if (line === undefined || line.trim() === '/quit') break;
      if (line.trim() !== '') await this.#orLeft(this.#act(line));
    }
    return this.#isLeaving ? exitCode.interrupted : exitCode.ok;
  }

  /** One message and its answer; a question that comes back is asked where somebody can answer. */
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
    this.#terminal.note('A tool waits for an answer. Come back without a message to be asked.');
    return exitCode.waiting;
  }

  /** Gives the terminal back, and says where one can come back to. */
  end(): void {
    this.#forget();
    this.#lines.close();
    const { snapshotId, agent, isKept } = this.#conversation;
    if (!isKept || snapshotId === undefined) return;
    const command = `waymark chat ${agent.name} --snapshot ${snapshotId}${this.#sourceArguments}`;
    this.#terminal.note(`Come back with: ${command}`);
  }

  async #act(line: string): Promise<void> {
    const text = line.trim();
    const [, message = ''] = /^\/detach\s*(.*)$/s.exec(text) ?? [];
    try {
      if (message !== '') await this.#turn({ ...textInput(message), detach: true });
      else if (text === '/detach' || text === '/stop')
        this.#terminal.note('Nothing runs right now.');
      else if (text.startsWith('/')) await this.#slash(text);
      else {
        await this.#turn(textInput(line));
        await this.#answerInterrupts();
      }
    } catch (error) {
      if (!isWaymarkError(error)) throw error;
      this.#terminal.note(`${this.#terminal.style.bad('✗')} ${safe(error.message)}`);
    }
  }

  async #slash(text: string): Promise<void> {
    await runSlash(text, { conversation: this.#conversation, terminal: this.#terminal });
    await this.#answerInterrupts();
  }

  async #turn(input: Input, quiet = false): Promise<Output> {
    const printer = new ChunkPrinter(this.#terminal);
    this.#isStopping = false;
    // What is typed while a turn runs waits, but for what is about the turn.
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
    const line = this.#lines.takeIf((text) => /^\/(detach|stop|quit)\s*$/.test(text));
    if (line === undefined) return;
    if (line.startsWith('/quit')) this.#leave();
    else if (line.startsWith('/stop')) this.#conversation.stop();
    else {
      this.#conversation.detach().catch((error: unknown) => {
        this.#terminal.note(`${this.#terminal.style.bad('✗')} ${safe(messageOf(error))}`);
      });
    }
  }

  #close({ finishReason, error, snapshotId }: Output): void {
    const { name } = this.#conversation.agent;
    if (error) this.#fault(error);
    else if (finishReason === 'detached') {
      this.#terminal.note(
        `In the background. waymark watch ${snapshotId} --agent ${name}${this.#sourceArguments}`,
      );
    } else if (finishReason === 'aborted') this.#terminal.note('Stopped. What was said is kept.');
    else if (finishReason === 'length') this.#terminal.note('The answer was cut off at its limit.');
    else if (finishReason === 'blocked') this.#terminal.note('The model refused to answer.');
  }

  #fault(error: NonNullable<Output['error']>): void {
    const { style, note } = this.#terminal;
    // From a server it is plain data.
    const isLocal = isWaymarkError(error);
    // Shown with its stack already.
    if (this.#isDebug && isLocal) return;
    note(`${style.bad('✗')} ${oneLine(error.message, 400)} (${error.status})`);
    if (isLocal) note(style.dim('To see the stack, use --debug.'));
  }

  /** Asks about what waits until nothing does; an answer that does not fit is asked for again. */
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
        this.#terminal.note('It waits for an answer, and will when you come back.');
        break;
      }
      try {
        output = await this.#turn(input);
      } catch (error) {
        if (exitCodeOf(error) !== exitCode.usage || !isWaymarkError(error)) throw error;
        this.#terminal.note(`${this.#terminal.style.bad('✗')} ${safe(error.message)}`);
      }
    }
    return output;
  }

  #interrupt(): void {
    if (this.#conversation.isRunning && !this.#isStopping) {
      this.#isStopping = true;
      this.#terminal.note('\nStopping. Ctrl-C again leaves.');
      this.#conversation.stop();
    } else if (this.#isLeaving) process.exit(exitCode.interrupted);
    else this.#leave();
  }

  #leave(): void {
    this.#isLeaving = true;
    this.#conversation.stop();
    this.#left.resolve(undefined);
  }

  /** What comes first: the end of some work, or of the patience of the person waiting for it. */
  async #orLeft<Value>(work: Promise<Value>): Promise<Value | undefined> {
    // Work that is left behind may fail later; nobody waits for it then.
    work.catch(() => {});
    return await Promise.race([work, this.#left.promise]);
  }
}

/** An output with the message that its error has in this process. */
function withMessage(output: Output): object {
  const { error } = output;
  return error ? { ...output, error: { ...error, message: error.message } } : output;
}

function textInput(text: string): Input {
  return { message: { role: 'user', content: [{ text }] } };
}
