import { ChatLoop } from '../chat/chat-loop.ts';
import { Conversation } from '../chat/conversation.ts';
import { defineCommand, jsonOption, option } from '../command.ts';
import { UsageError } from '../parse-arguments.ts';
import type { AgentAccess } from '../source/agent-access.ts';
import { agentsOptions, type OpenAgents, openAgents, pickAgent } from '../source/open-agents.ts';
import type { Terminal } from '../terminal.ts';

export const chat = defineCommand({
  name: 'chat',
  summary: 'Chat with an agent in the terminal',
  usage: '[agent] [message]',
  about:
    'Without a message, starts a conversation; /help lists its commands, such as /back and /branch, and /quit leaves. With a\nmessage, prints the answer and exits: with 6 if a tool call needs an approval or an answer, with 1 if the turn failed.\nYou can leave out the agent if the app has only one: a single argument with spaces is the message. Ctrl-C stops the\nturn; press it again to leave.',
  examples: [
    'chat story',
    'chat story "Look around"',
    'chat story --snapshot 019b2f6e-…',
    'chat trip-planner --url http://127.0.0.1:3000',
  ],
  options: {
    session: option('id', 'Continue this session, or start a new one with this id'),
    snapshot: option('id', 'Continue from this snapshot'),
    ...jsonOption,
    ...agentsOptions,
  },
  async run({ args, options, terminal }) {
    const [given, said] = args;
    const isText = said === undefined && given !== undefined && /\s/.test(given);
    if (options.json && said === undefined && !isText) {
      throw new UsageError(
        '--json works with a single message only: waymark chat <agent> <message> --json.',
      );
    }
    const open = await openAgents(options, terminal, 'running');
    try {
      // The name of an agent may have spaces, too.
      const isMessage = isText && !open.agents.some(({ name }) => name === given);
      const message = isMessage ? given : said;
      const agent = pickAgent(open.agents, isMessage ? undefined : given);
      const conversation = await openConversation(agent, options);
      if (message === undefined) greet(conversation, open, terminal);
      const { sourceArguments } = open;
      const isDebug = options.debug === true;
      const loop = new ChatLoop({ conversation, terminal, sourceArguments, isDebug });
      try {
        if (message !== undefined) return await loop.say(message, options.json === true);
        return await loop.talk();
      } finally {
        loop.end();
      }
    } finally {
      await open.close();
    }
  },
});

async function openConversation(
  agent: AgentAccess,
  { session, snapshot }: { readonly session?: string; readonly snapshot?: string },
): Promise<Conversation> {
  const { metadata } = await agent.describe();
  const conversation = new Conversation(agent, metadata.stateManagement === 'server');
  if (snapshot !== undefined) await conversation.openSnapshot(snapshot, session);
  else if (session !== undefined) await conversation.open(session, true);
  return conversation;
}

function greet(
  { agent, place: { sessionId }, isKept }: Conversation,
  { modelNote }: OpenAgents,
  { note, style, interactive }: Terminal,
): void {
  if (!interactive) return;
  const where = sessionId === undefined ? 'a new session' : `session ${sessionId}`;
  const store = isKept ? '' : ', not stored';
  const model = modelNote === undefined ? '' : ` · ${modelNote}`;
  note(`${style.bold(agent.name)} · ${where}${store}${model}`);
  note(style.dim('/help lists the commands, Ctrl-C stops the turn, /quit leaves.'));
}
