import type { SessionInfo } from '../../protocol/session.ts';
import type { State } from '../../protocol/state.ts';
import { didYouMean } from '../parse-arguments.ts';
import { readTimeline } from '../source/find.ts';
import type { Terminal } from '../terminal.ts';
import { oneLine, table, when } from '../text/format.ts';
import { messageSummary, partText } from '../text/message-text.ts';
import { snapshotTexts, timelineTree } from '../text/session-text.ts';
import type { Conversation } from './conversation.ts';

/** The context of a slash command. */
export interface SlashCall {
  readonly conversation: Conversation;
  readonly terminal: Terminal;
  /** The text after the command. */
  readonly rest: string;
}

interface SlashCommand {
  readonly usage: string;
  readonly about: string;
  run(call: SlashCall): Promise<void>;
}

/** Commands of a chat that run between turns. `/detach`, `/stop` and `/quit` belong to the loop. */
const commands: Readonly<Record<string, SlashCommand>> = {
  back: {
    usage: '/back [n]',
    about: 'restore the session as it was n turns ago (1); later turns stay as a branch',
    async run({ conversation, terminal, rest }) {
      const turns = Number(rest || 1);
      if (!Number.isInteger(turns) || turns < 1)
        return terminal.note('/back takes a number of turns.');
      const { state, snapshotId } = await conversation.back(turns);
      terminal.note(`Restored ${snapshotId}. Your next message starts a new branch.`);
      showLast(state, terminal);
    },
  },
  branch: {
    usage: '/branch',
    about: 'continue in a new session; this one does not change',
    async run({ conversation, terminal }) {
      const { sessionId } = await conversation.branch();
      terminal.note(`Forked into session ${sessionId}.`);
    },
  },
  sessions: {
    usage: '/sessions [id]',
    about: 'list the sessions of this agent, or open one',
    async run({ conversation, terminal, rest }) {
      if (rest === '') return await listSessions(conversation, terminal);
      await conversation.open(rest);
      terminal.note(`Session ${oneLine(conversation.sessionId ?? rest, 80)}.`);
      showLast(await conversation.state(), terminal);
    },
  },
  new: {
    usage: '/new',
    about: 'start a new session',
    async run({ conversation, terminal }) {
      conversation.restart();
      terminal.note('Started a new session.');
    },
  },
  tree: {
    usage: '/tree',
    about: 'show the snapshots of this session',
    async run({ conversation: { agent, sessionId }, terminal }) {
      if (sessionId === undefined) return terminal.note('This session has no turns yet.');
      const snapshots = await readTimeline(agent, sessionId);
      const texts = await snapshotTexts(agent, snapshots);
      const session = await agent.getSession(sessionId);
      terminal.print(timelineTree({ snapshots, headId: session?.headId, texts }, terminal.style));
    },
  },
  help: {
    usage: '/help',
    about: 'show this help',
    async run({ terminal }) {
      terminal.note(helpText());
    },
  },
};

/** Runs a slash command. */
export async function runSlash(line: string, call: Omit<SlashCall, 'rest'>): Promise<void> {
  const [, name = '', rest = ''] = /^\/(\S*)\s*(.*)$/s.exec(line.trim()) ?? [];
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command) return await command.run({ ...call, rest });
  const known = [...Object.keys(commands), 'detach', 'stop', 'quit'];
  const hint = didYouMean(name, known, (near) => `/${near}`);
  call.terminal.note(`There is no /${oneLine(name, 40)}.${hint} /help lists the commands.`);
}

function helpText(): string {
  const rows = [
    ...Object.values(commands).map(({ usage, about }) => [usage, about]),
    ['/detach [message]', 'run the message, or the running turn, in the background'],
    ['/stop', 'stop the running turn, as Ctrl-C does; the partial answer is kept'],
    ['/quit', 'leave when the running turn has ended (or press Ctrl-C twice, or end the input)'],
  ];
  return table(rows);
}

async function listSessions({ agent }: Conversation, terminal: Terminal): Promise<void> {
  const { items } = await agent.listSessions({ limit: 20 });
  if (items.length === 0) return terminal.note('No sessions yet.');
  terminal.print(
    table(
      items.map(({ sessionId, turnCount, updatedAt, title }: SessionInfo) => [
        oneLine(sessionId, 64),
        `${turnCount} ${turnCount === 1 ? 'turn' : 'turns'}`,
        when(updatedAt),
        oneLine(title ?? ''),
      ]),
    ),
  );
}

/** Prints the last turn of a conversation. */
export function showLast(state: State | undefined, terminal: Terminal): void {
  const messages = state?.messages ?? [];
  const start = messages.findLastIndex(({ role }) => role === 'user');
  for (const message of messages.slice(Math.max(0, start))) {
    if (message.role === 'user') {
      terminal.print(`${terminal.style.dim('›')} ${messageSummary(message, 200)}`);
    } else for (const part of message.content) terminal.print(partText(part, terminal.style));
  }
}
