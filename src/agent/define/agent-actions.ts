import { type Action, defineAction } from '../../core/action.ts';
import { WaymarkError } from '../../core/error.ts';
import { type JsonObject, toJson } from '../../core/json/json.ts';
import type { Input } from '../../protocol/turn.ts';
import type { Agent } from '../contract/agent.ts';

/** The context of an agent's action: the caller's own, where to start, and whose session it is. */
interface AgentCallContext {
  readonly init?: JsonObject;
  readonly owner?: string;
  readonly context?: JsonObject;
}

const one = { type: 'string' } as const;

/** The actions through which tools find and run an agent; of its companions only those that its store can serve. */
export function agentActions(agent: Agent): readonly Action[] {
  const { name, metadata } = agent;
  const actions: Action[] = [agentAction(agent)];
  const companion = (
    key: string,
    idName: 'snapshotId' | 'sessionId',
    run: (id: string, owner: { readonly owner?: string }) => Promise<unknown>,
  ): void => {
    actions.push(
      defineAction(
        {
          key,
          name: key.slice(1),
          input: { type: 'object', properties: { [idName]: one }, required: [idName] },
        },
        async (input, { context }) => {
          const id = (input as Record<string, string>)[idName] ?? '';
          const found = await run(id, ownerOf(context));
          if (found === undefined)
            throw new WaymarkError('NOT_FOUND', `No ${idName} "${id.slice(0, 64)}".`);
          return found;
        },
      ),
    );
  };
  if (metadata.stateManagement === 'client') return actions;
  // Tools look for both keys.
  for (const store of ['snapshot-store', 'session-store']) {
    companion(`/${store}/${name}/getSnapshot`, 'snapshotId', (snapshotId, owner) =>
      agent.getSnapshot({ snapshotId }, owner),
    );
    if (!metadata.timeline) continue;
    companion(`/${store}/${name}/listSnapshots`, 'sessionId', async (id, owner) => {
      const { items } = await agent.listSnapshots(id, {
        ...owner,
        includeOrphaned: true,
        limit: 1000,
      });
      return items;
    });
  }
  if (metadata.timeline) {
    companion(`/session-store/${name}/getSession`, 'sessionId', (id, owner) =>
      agent.getSession(id, owner),
    );
  }
  if (metadata.abortable) {
    companion(`/snapshot-store/${name}/abortSnapshot`, 'snapshotId', async (snapshotId, owner) => {
      const status = await agent.abort(snapshotId, owner);
      return status && { snapshotId, status };
    });
  }
  return actions;
}

/** An agent's own action: `run` and `stream` run one turn. For several turns on one connection use `agent.streamBidi`. */
function agentAction(agent: Agent): Action {
  const { name, description, metadata } = agent;
  const options = {
    key: `/agent/${name}`,
    name,
    description,
    metadata: { agent: toJson(metadata, 'metadata') },
  };
  return defineAction(options, async (input, { signal, context, send }) => {
    const { init, context: callerContext } = context as AgentCallContext;
    // The agent parses its input itself.
    const { stream, output } = agent.stream(input as Input, {
      ...init,
      signal,
      ...ownerOf(context),
      ...(callerContext && { context: callerContext }),
    });
    for await (const chunk of stream) await send(chunk);
    return await output;
  });
}

function ownerOf(context: object): { readonly owner?: string } {
  return 'owner' in context && typeof context.owner === 'string' ? { owner: context.owner } : {};
}
