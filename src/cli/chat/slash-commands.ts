import type { State } from '../../protocol/state.ts';
import { didYouMean } from '../parse-arguments.ts';
import { readTimeline } from '../source/find.ts';
import type { Terminal } from '../terminal.ts';
import { count, oneLine, table, when } from '../text/format.ts';
import { messageSummary, partText } from '../text/message-text.ts';
import { snapshotTexts, timelineTree } from '../text/session-text.ts';
import type { Conversation } from './conversation.ts';

/** A slash command of a chat. Those without `run` belong to the loop. */
interface SlashCommand {
  readonly usage: string;
  readonly about: string;
  run?(conversation: Conversation, terminal: Terminal, rest: string): Promise<void> | void;
}

const commands: readonly SlashCommand[] = [
  {
    usage: '/back [n]',
    about: 'restore the session as it was n turns ago (1); later turns stay as a branch',
    async run(conversation, terminal, rest) {
      const turns = Number(rest || 1);
      if (!Number.isInteger(turns) || turns < 1)
        return terminal.note('/back takes a number of turns.');
      const { state, snapshotId } = await conversation.back(turns);
      terminal.note(`Restored ${snapshotId}. Your next message starts a new branch.`);
      showLast(state, terminal);
    },
  },
  {
    usage: '/branch',
    about: 'continue in a new session; this one does not change',
    async run(conversation, { note }) {
      note(`Forked into session ${await conversation.branch()}.`);
    },
  },
  {
    usage: '/sessions [id]',
    about: 'list the sessions of this agent, or open one',
    async run(conversation, terminal, rest) {
      if (rest === '') return await listSessions(conversation, terminal);
      await conversation.open(rest);
      terminal.note(`Session ${oneLine(conversation.place.sessionId ?? rest, 80)}.`);
      showLast(await conversation.state(), terminal);
    },
  },
  {
    usage: '/new',
    about: 'start a new session',
    run(conversation, { note }) {
      conversation.place = {};
      note('Started a new session.');
    },
  },
  {
    usage: '/tree',
    about: 'show the snapshots of this session',
    async run({ agent, place: { sessionId } }, { note, print, style }) {
      if (sessionId === undefined) return note('This session has no turns yet.');
      const snapshots = await readTimeline(agent, sessionId);
      const texts = await snapshotTexts(agent, snapshots);
      const session = await agent.getSession(sessionId);
      print(timelineTree({ snapshots, headId: session?.headId, texts }, style));
    },
  },
  {
    usage: '/help',
    about: 'show this help',
    run: (_, { note }) => note(table(commands.map(({ usage, about }) => [usage, about]))),
  },
  {
    usage: '/detach [message]',
    about: 'run the message, or the running turn, in the background',
  },
  {
    usage: '/stop',
    about: 'stop the running turn, as Ctrl-C does; the partial answer is kept',
  },
  {
    usage: '/quit',
    about: 'leave when the running turn has ended (or press Ctrl-C twice, or end the input)',
  },
];

export async function runSlash(
  line: string,
  conversation: Conversation,
  terminal: Terminal,
): Promise<void> {
  const [, name = '', rest = ''] = /^\/(\S*)\s*(.*)$/s.exec(line.trim()) ?? [];
  const names = commands.map(({ usage }) => usage.slice(1).split(' ', 1).join());
  const command = commands[names.indexOf(name)];
  if (command?.run) return await command.run(conversation, terminal, rest);
  const hint = didYouMean(name, names, (near) => `/${near}`);
  terminal.note(`There is no /${oneLine(name, 40)}.${hint} /help lists the commands.`);
}

async function listSessions({ agent }: Conversation, terminal: Terminal): Promise<void> {
  const { items } = await agent.listSessions({ limit: 20 });
  if (items.length === 0) return terminal.note('No sessions yet.');
  terminal.print(
    table(
      items.map(({ sessionId, turnCount, updatedAt, title = '' }) => [
        oneLine(sessionId, 64),
        count(turnCount, 'turn'),
        when(updatedAt),
        oneLine(title),
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
