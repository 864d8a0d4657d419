import type {
  AgentContext,
  ClientCapabilities,
  ContentBlock,
  McpServer,
  SessionConfigOption,
  SessionModeState,
  SessionUpdate,
  StopReason,
} from '@agentclientprotocol/sdk';
import type { Agent, CallOptions } from '../../agent/contract/agent.ts';
import { throughEditor } from '../../agent/workspace/tool-folder.ts';
import type { Interrupt, InterruptAnswer } from '../../api/interrupts.ts';
import { interruptsAtEnd } from '../../api/interrupts.ts';
import type { OutputOf, WireTypes } from '../../api/types.ts';
import { failedPrecondition, invalid, messageOf } from '../../core/error.ts';
import { defined, type JsonObject } from '../../core/json/json.ts';
import { systemClock } from '../../core/time.ts';
import { estimateTokens } from '../../generate/answer/history.ts';
import { isExecutedByCaller } from '../../generate/tool/caller-tools.ts';
import { textOf } from '../../protocol/messages.ts';
import type { FinishReason, Input } from '../../protocol/turn.ts';
import { isBusy } from '../../store/rules/errors.ts';
import { type Asker, answerByText, askAbout } from './ask.ts';
import { ClientTools } from './client-tools.ts';
import { availableCommands, runCommand } from './commands.ts';
import { type Editor, editedFolder } from './editor.ts';
import { toMessage, Updates } from './updates.ts';

export interface Connection {
  readonly client: AgentContext;
  readonly capabilities: ClientCapabilities;
  readonly agent: Agent;
  readonly owner: string | undefined;
  /** The names of the models that the client can choose. */
  readonly models: readonly string[];
  /** The tokens that the agent's model can read. */
  readonly contextWindow: number | undefined;
}

export interface OpenedWith {
  readonly cwd: string;
  readonly mcpServers?: readonly McpServer[] | undefined;
}

type TurnOutcome = OutputOf<WireTypes>;

/** How long a prompt waits for the lock of a process that was killed, in attempts of `retryMs`. */
const maxRetries = 40;
const retryMs = 500;

/** A session that a client has open. */
export class AcpSession {
  readonly id: string;
  readonly agent: Agent;
  readonly updates: Updates;
  /** The snapshot that the next message continues from, if it is not the head. */
  from: string | undefined;
  readonly #connection: Connection;
  readonly #cwd: string;
  readonly #tools: ClientTools;
  readonly #allowed = new Set<string>();
  readonly #editor: Editor;
  #allowsAll = false;
  #model: string | undefined;
  #running: AbortController | undefined;
  #ended: Promise<unknown> = Promise.resolve();
  /** The user has cancelled the questions of the last turn; the next message declines them. */
  #hasCancelled = false;
  /** Whether the client's folder is stored with the session. */
  #isRemembered = false;

  constructor(connection: Connection, id: string, { cwd, mcpServers = [] }: OpenedWith) {
    const { agent, client, capabilities } = connection;
    this.#connection = connection;
    this.id = id;
    this.agent = agent;
    this.#cwd = cwd;
    this.updates = new Updates(cwd, (update) => this.#send(update));
    this.#tools = new ClientTools(mcpServers, cwd, (text) => this.#note(text));
    this.#editor = {
      client,
      capabilities,
      sessionId: id,
      unsaved: new Set(),
      onFolder: (path) => {
        this.updates.root = path;
      },
      onChange: (path, before, after) => this.updates.changed(path, before, after),
      onTerminal: (command, terminalId) => this.updates.terminal(command, terminalId),
    };
  }

  /** Options of each call: the owner, and the client's folder for a `workspace` that is a function. */
  get call(): CallOptions & { readonly context: JsonObject } {
    const { owner } = this.#connection;
    return { ...defined({ owner }), context: { cwd: this.#cwd } };
  }

  get asking(): Pick<Asker, 'client' | 'sessionId'> {
    return { client: this.#connection.client, sessionId: this.id };
  }

  get modes(): SessionModeState {
    return {
      currentModeId: this.#allowsAll ? 'allow' : 'ask',
      availableModes: [
        { id: 'ask', name: 'Ask', description: 'Ask before each tool call that needs approval.' },
        {
          id: 'allow',
          name: 'Allow all',
          description: 'Approve all tool calls until the session is closed.',
        },
      ],
    };
  }

  get configOptions(): SessionConfigOption[] {
    const { currentModeId, availableModes } = this.modes;
    const { models } = this.#connection;
    const mode: SessionConfigOption = {
      type: 'select',
      id: 'mode',
      name: 'Approvals',
      category: 'mode',
      currentValue: currentModeId,
      options: availableModes.map(({ id, name, description }) => ({
        value: id,
        name,
        ...defined({ description }),
      })),
    };
    if (models.length === 0) return [mode];
    const names = ['default', ...models];
    return [
      mode,
      {
        type: 'select',
        id: 'model',
        name: 'Model',
        category: 'model',
        currentValue: this.#model ?? 'default',
        options: names.map((name) => ({ value: name, name })),
      },
    ];
  }

  async configure(option: string, value: unknown): Promise<void> {
    const found = this.configOptions.find(({ id }) => id === option);
    const values = found?.type === 'select' ? found.options.map((each) => Object(each).value) : [];
    if (!values.includes(value)) {
      const names = values.length > 0 ? ` Expected ${values.join(', ')}.` : '';
      throw invalid(`${JSON.stringify(value)} is no value of "${option}".${names}`);
    }
    if (option === 'model') this.#model = value === 'default' ? undefined : String(value);
    else this.#allowsAll = value === 'allow';
    await this.#send({ sessionUpdate: 'config_option_update', configOptions: this.configOptions });
    if (option === 'model') return;
    await this.#send({
      sessionUpdate: 'current_mode_update',
      currentModeId: this.modes.currentModeId,
    });
  }

  /** Tells the client what a new session, or one that it has opened again, can do. */
  async announce(): Promise<void> {
    await this.#send({ sessionUpdate: 'available_commands_update', availableCommands });
    const call = { ...this.call, messages: { last: 1 } };
    const session = await this.agent.getSession(this.id, call);
    if (session) await this.#tellInfo(session);
  }

  /** Sends the whole conversation. */
  async replay(): Promise<void> {
    const session = await this.agent.getSession(this.id, this.call);
    for (const message of session?.state?.messages ?? []) await this.updates.message(message);
  }

  async prompt(blocks: readonly ContentBlock[], signal: AbortSignal): Promise<StopReason> {
    if (this.#running) {
      throw failedPrecondition(
        'A prompt of this session is still running. Wait for its end, or cancel it.',
      );
    }
    const running = new AbortController();
    this.#running = running;
    const stop = (): void => running.abort();
    signal.addEventListener('abort', stop, { once: true });
    const leave = throughEditor(this.id, (folder) => editedFolder(folder, this.#editor));
    const work = this.#prompt(blocks, running.signal);
    this.#ended = work.catch(() => {});
    try {
      return await work;
    } catch (error) {
      if (running.signal.aborted) return 'cancelled';
      throw error;
    } finally {
      leave();
      signal.removeEventListener('abort', stop);
      this.#running = undefined;
    }
  }

  /** Stops the running prompt; the partial answer is kept. Does nothing if none is running. */
  cancel(): void {
    this.#running?.abort();
  }

  async close(): Promise<void> {
    this.cancel();
    await this.#ended;
    await this.#tools.close();
  }

  async #prompt(blocks: readonly ContentBlock[], signal: AbortSignal): Promise<StopReason> {
    const message = toMessage(blocks);
    const text = textOf(message);
    const answer = await runCommand(this, text, signal);
    if (answer !== undefined) {
      await this.updates.text(answer);
      await this.#tellEnd();
      return signal.aborted ? 'cancelled' : 'end_turn';
    }
    const open = await this.#openInterrupts();
    if (open.length > 0 && this.from === undefined && !this.#hasCancelled) {
      const answers = await this.#answersTo(open, signal, text);
      if (answers === undefined) return 'cancelled';
      const outcome = await this.#turns({ resume: answers.answers }, signal);
      // A text that was the answer is no message as well.
      if (answers.usedText || outcome !== 'end_turn') return outcome;
    }
    this.#hasCancelled = false;
    return await this.#turns({ message }, signal);
  }

  async #openInterrupts(): Promise<readonly Interrupt[]> {
    const session = await this.agent.getSession(this.id, this.call);
    return interruptsAtEnd(session?.state?.messages ?? []);
  }

  /** Runs a turn, and the turns that continue it when the user has answered. */
  async #turns(
    first: Input | { readonly resume: readonly InterruptAnswer[] },
    signal: AbortSignal,
  ): Promise<StopReason> {
    let output = await this.#turn(first, signal);
    while (output.finishReason === 'interrupted' && !signal.aborted) {
      const answers = await this.#answersTo(output.interrupts, signal);
      if (answers === undefined) break;
      if (answers.answers.length === 0) {
        await this.#tellEnd();
        return 'end_turn';
      }
      output = await this.#turn({ resume: answers.answers }, signal);
    }
    await this.#tellEnd();
    if (output.error) throw output.error;
    return signal.aborted || output.finishReason === 'interrupted'
      ? 'cancelled'
      : stopReasonOf(output.finishReason);
  }

  async #turn(
    input: Input | { readonly resume: readonly InterruptAnswer[] },
    signal: AbortSignal,
  ): Promise<TurnOutcome> {
    const tools = await this.#tools.forTurn(signal);
    for (let tries = 0; ; tries++) {
      const { stream, output } = this.agent.stream(input as Input, {
        ...this.call,
        ...(this.from === undefined ? { sessionId: this.id } : { from: this.from }),
        ...(this.#model !== undefined && { model: this.#model }),
        ...(tools.length > 0 && { tools }),
        signal,
      });
      try {
        for await (const chunk of stream) {
          if (chunk.turnStart) await this.#rememberOnce();
          await this.updates.chunk(chunk);
        }
        const ended = await output;
        this.from = undefined;
        return ended;
      } catch (error) {
        output.catch(() => {});
        // The process that had the session was killed: its claim expires soon.
        if (!isBusy(error) || tries >= maxRetries || signal.aborted) throw error;
        await systemClock.sleep(retryMs, signal);
      }
    }
  }

  async #rememberOnce(): Promise<void> {
    if (this.#isRemembered) return;
    this.#isRemembered = await this.remember(this.id);
  }

  /** Stores the client's folder with a session, so that it is listed by it; `false` if there is no such session yet. */
  async remember(sessionId: string): Promise<boolean> {
    const call = { ...this.call, messages: { last: 1 } };
    const session = await this.agent.getSession(sessionId, call);
    if (session === undefined) return false;
    if (session.metadata?.cwd !== this.#cwd) {
      const metadata = { ...session.metadata, cwd: this.#cwd };
      await this.agent.updateSession(sessionId, { metadata }, this.call);
    }
    return true;
  }

  /** The answers to interrupts; `undefined` if the user cancels. None are left for a client that cannot ask. */
  async #answersTo(
    interrupts: readonly Interrupt[],
    signal: AbortSignal,
    text?: string,
  ): Promise<
    { readonly answers: readonly InterruptAnswer[]; readonly usedText: boolean } | undefined
  > {
    const { client, capabilities } = this.#connection;
    const asker: Asker = {
      client,
      capabilities,
      sessionId: this.id,
      agent: this.agent,
      updates: this.updates,
      allowed: this.#allowed,
      allowsAll: this.#allowsAll,
      signal,
    };
    const answers: InterruptAnswer[] = [];
    let usedText = false;
    for (const interrupt of interrupts) {
      const isOfClient = isExecutedByCaller(interrupt.metadata);
      const given = await askAbout(interrupt, asker);
      if (given === undefined) {
        this.#hasCancelled = true;
        return undefined;
      }
      if (given === 'text') {
        const answer =
          text === undefined ? undefined : await answerByText(interrupt, this.agent, text);
        if (answer === undefined) {
          await this.#tellQuestion(interrupt);
          if (text === undefined) return { answers: [], usedText };
          answers.push(interrupt.decline('The user sent another message instead.'));
        } else {
          answers.push(answer);
          usedText = true;
        }
      } else if (isOfClient && 'toolRequest' in given) {
        answers.push(await this.#tools.answer(interrupt, signal));
      } else answers.push(given);
    }
    return { answers, usedText };
  }

  async #tellQuestion({ toolName, input, metadata }: Interrupt): Promise<void> {
    const said = typeof metadata === 'object' && metadata !== null ? Object(metadata) : {};
    const question = said.question ?? said.message ?? `${toolName} ${JSON.stringify(input ?? {})}`;
    await this.updates.text(`\n\n${String(question)}\n\nAnswer with your next message.`);
  }

  /** Tells what a turn has changed about the session. */
  async #tellEnd(): Promise<void> {
    const { unsaved } = this.#editor;
    if (unsaved.size > 0) {
      const paths = [...unsaved].slice(0, 20).join(', ');
      unsaved.clear();
      await this.#note(
        `These files have unsaved changes in the editor. The snapshot has them as they are on the disk: ${paths}`,
      );
    }
    await this.#rememberOnce();
    const session = await this.agent.getSession(this.id, this.call);
    if (session === undefined) return;
    await this.#tellInfo(session);
    const { contextWindow } = this.#connection;
    if (contextWindow === undefined) return;
    const { usage } = await this.agent.getUsage({ ...this.call, sessionId: this.id });
    const [currency, amount] = Object.entries(usage.cost ?? {})[0] ?? [];
    const messages = session.state?.messages ?? [];
    await this.#send({
      sessionUpdate: 'usage_update',
      used: messages.reduce((sum, message) => sum + estimateTokens(message), 0),
      size: contextWindow,
      ...(currency !== undefined &&
        amount !== undefined && { cost: { amount: amount / 1_000_000, currency } }),
    });
  }

  async #tellInfo({
    title,
    updatedAt,
  }: {
    readonly title?: string | undefined;
    readonly updatedAt: string;
  }): Promise<void> {
    await this.#send({ sessionUpdate: 'session_info_update', title: title ?? null, updatedAt });
  }

  /** Says something that is no part of the conversation. */
  async #note(text: string): Promise<void> {
    if (this.#connection.capabilities.session?.notices) {
      await this.#send({ sessionUpdate: 'notice', severity: 'warning', title: text });
    } else await this.updates.text(`\n\n${text}\n\n`);
  }

  async #send(update: SessionUpdate): Promise<void> {
    try {
      await this.#connection.client.notify('session/update', { sessionId: this.id, update });
    } catch (error) {
      // The client has left; the turn is stopped, and what it said so far is kept.
      console.error(`The client cannot be reached: ${messageOf(error)}`);
      this.cancel();
    }
  }
}

function stopReasonOf(reason: FinishReason | undefined): StopReason {
  if (reason === 'length') return 'max_tokens';
  if (reason === 'blocked') return 'refusal';
  return reason === 'aborted' ? 'cancelled' : 'end_turn';
}
