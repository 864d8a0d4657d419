import type { AgentHandler, AgentSession, TurnInfo } from '../agent/contract/handler.ts';
import type { AgentOptionsBase } from '../agent/contract/options.ts';
import { failedPrecondition } from '../core/error.ts';
import { isJsonObject, type Json } from '../core/json/json.ts';
import type { Message } from '../protocol/message.ts';
import { Link } from './link.ts';
import { maxProof, plainText, textBlocks, toBlocks, toldSoFar } from './messages.ts';
import { type AcpAgentOptions, type AcpSettings, resolveOptions } from './options.ts';
import { type AcpState, AcpTurn } from './turn.ts';

type Custom = Json | undefined;

/** Programs that wait for the next turn, by session, and the id of the program's session: two programs may use one id. */
type Links = Map<string, Link>;

/**
 * A coding agent of another vendor that speaks the Agent Client Protocol, as the arguments of `defineCustomAgent`. Each prompt is a turn with
 * snapshot, events, usage and workspace; its permission requests are interrupts. After a restore, the program loads its session if that is still
 * in the restored state, and otherwise gets a new one with the conversation so far; `custom.connection` says which.
 *
 * @example
 * const claude = app.defineCustomAgent(
 *   ...acpAgent({ name: 'claude', command: ['claude-agent-acp'], workspace: directory('./project') }),
 * );
 */
export function acpAgent(
  options: AcpAgentOptions,
): [AgentOptionsBase<undefined, undefined, undefined>, AgentHandler<Custom, Custom>] {
  const { agent, settings } = resolveOptions(options);
  const links: Links = new Map();
  return [
    agent,
    async (session, { respond }) => {
      await session.run(async (input, info) => {
        const reached = await reach(session, info, settings, links);
        const { link, connection, before } = reached;
        links.delete(keyOf(session, link));
        link.wake();
        try {
          const turn = new AcpTurn(session, respond, link, info);
          const tip = crypto.randomUUID();
          const isAnswer = input.resume !== undefined && input.message === undefined;
          const isOpen = connection === 'kept' && link.open.size > 0;
          if (!(isAnswer && isOpen)) await link.cancel();
          if (!link.isAlive) throw link.failure;
          const { asked: _, ...state }: Partial<AcpState> = stateOf(session.custom) ?? {};
          const blocks = isAnswer
            ? textBlocks(turn.decisions(input))
            : toBlocks(input.message, link.capabilities.promptCapabilities);
          const isNew = connection === 'new' || connection === 'retold';
          const told = connection === 'retold' ? toldSoFar(before) : [];
          const isPrompt = !(isAnswer && isOpen);
          if (isPrompt && blocks.length === 0) {
            throw failedPrecondition(`Agent "${settings.name}" has got a message without content.`);
          }
          link.tip = tip;
          session.setCustom({
            ...(isNew ? {} : state),
            agent: link.agent,
            sessionId: link.sessionId,
            createdIn: session.id,
            connection,
            tip,
            prompts: (isNew ? 0 : (state.prompts ?? 0)) + (isPrompt ? 1 : 0),
            last: isPrompt
              ? plainText([...told, ...blocks]).slice(0, maxProof)
              : (state.last ?? ''),
          });
          // An answer counts for the turn that it was given for, and no later question.
          link.decided.length = 0;
          if (isAnswer) turn.answer(input);
          if (isPrompt) link.prompt([...told, ...blocks]);
          const result = await turn.run();
          keep(links, keyOf(session, link), link);
          return result;
        } catch (error) {
          // A program that stops on request can be kept.
          if (info.signal.aborted && link.isAlive) await link.cancel();
          if (!info.signal.aborted || !link.isAlive) {
            link.fail(error);
            throw link.failure ?? error;
          }
          keep(links, keyOf(session, link), link);
          return;
        }
      });
    },
  ];
}

function keyOf(
  { id }: Pick<AgentSession<Custom>, 'id'>,
  { sessionId }: Pick<AcpState, 'sessionId'>,
): string {
  return `${id} ${sessionId}`;
}

/** Programs that are kept at once. */
const maxKept = 16;

function keep(links: Links, key: string, link: Link): void {
  link.rest();
  links.set(key, link);
  const [oldest] = links.values();
  if (links.size > maxKept) oldest?.end();
  for (const [id, each] of links) if (!each.isAlive) links.delete(id);
}

interface Reached {
  readonly link: Link;
  readonly connection: AcpState['connection'];
  /** The conversation before this turn. */
  readonly before: readonly Message[];
}

/** A program whose session is in the state that the turn starts from. */
async function reach(
  session: AgentSession<Custom>,
  { workspace, signal }: TurnInfo,
  settings: AcpSettings,
  links: Links,
): Promise<Reached> {
  const cwd = workspace?.path ?? settings.cwd ?? process.cwd();
  if (workspace && workspace.path === undefined) {
    throw failedPrecondition(
      `The program of agent "${settings.name}" needs files on this machine. Use directory() as its workspace.`,
    );
  }
  const state = stateOf(session.custom);
  const { messages } = session;
  const own = messages.at(-1)?.role === 'user' ? -1 : undefined;
  const before = messages.slice(0, own);
  // Another session has a copy of the state, and the program's session belongs to the one that began it.
  const isOurs = state !== undefined && state.createdIn === session.id;
  const kept = isOurs ? links.get(keyOf(session, state)) : undefined;
  if (kept?.isAlive) {
    if (kept.tip === state?.tip) return { link: kept, connection: 'kept', before };
    links.delete(keyOf(session, kept));
    kept.end();
  }
  let link = await Link.start(settings, cwd, signal);
  if (isOurs && link.capabilities.loadSession === true) {
    const isReached = await loads(link, state, cwd);
    if (isReached) return { link, connection: 'loaded', before };
    // Its session is in another state now, or was not found, or could not be loaded after all.
    link.end();
    link = await Link.start(settings, cwd, signal);
  }
  try {
    await link.newSession(cwd);
  } catch (error) {
    link.fail(error);
    throw link.failure ?? error;
  }
  return { link, connection: before.length === 0 ? 'new' : 'retold', before };
}

async function loads(link: Link, state: AcpState, cwd: string): Promise<boolean> {
  try {
    const { prompts, last, said } = await link.load(state.sessionId, cwd);
    // The program may have got an answer since, and gone on.
    if (state.asked !== undefined && said.slice(-maxProof) !== state.asked) return false;
    return prompts === state.prompts && last.slice(0, maxProof) === state.last;
  } catch {
    return false;
  }
}

function stateOf(custom: unknown): AcpState | undefined {
  const state = custom as Json | undefined;
  if (!isJsonObject(state) || typeof state.sessionId !== 'string') return undefined;
  return state as unknown as AcpState;
}
