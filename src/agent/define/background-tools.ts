import type { AgentTypes } from '../../api/types.ts';
import { WaymarkError } from '../../core/error.ts';
import { defined, type Json } from '../../core/json/json.ts';
import { type Tool, tool } from '../../generate/tool/tool.ts';
import type { ToolContext } from '../../generate/tool/tool-context.ts';
import { textOf } from '../../protocol/messages.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import { Connection, TurnStream, textInput } from '../connection/connection.ts';
import type { Agent } from '../spec/agent.ts';
import { invocationOf } from '../turn/invocation.ts';
import { type AgentToolOptions, callOf, messageInput, textField } from './agent-tool.ts';
import { internalsOf, replicas, requestOf } from './create-agent.ts';

const runInput = {
  type: 'object',
  properties: { runId: { type: 'string', description: 'What the start tool returned.' } },
  required: ['runId'],
} as const;

/**
 * Offers an agent to another one as four tools for background runs: `{name}_start` returns a run id, `{name}_check`,
 * `{name}_wait` and `{name}_abort` take it. The runs outlive the parent's turn and its process.
 *
 * @example
 * app.defineAgent({ name: 'lead', system: 'Plan.', tools: [...backgroundAgentTools(researcher)] });
 */
export function backgroundAgentTools<Types extends AgentTypes>(
  typed: Agent<Types>,
  options: AgentToolOptions = {},
): readonly Tool[] {
  const agent = typed as unknown as Agent;
  const { spec, host } = internalsOf(agent);
  if (!agent.metadata.detachable) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `Agent "${spec.name}" cannot work in the background: give it a store that can abort runs.`,
    );
  }
  const { name = spec.name, description = spec.description ?? `the agent ${spec.name}` } = options;
  const start = tool(
    {
      name: `${name}_start`,
      description: `Starts in the background: ${description}`,
      input: messageInput,
    },
    async (input, context) => {
      if (replicas.get() !== undefined) throw notInReplay(name);
      const call = callOf(invocationOf(context));
      const connection = new Connection(spec, host, () => requestOf(spec, call));
      const { snapshotId = '' } = await new TurnStream(connection, {
        ...textInput(textField(input, 'message')),
        detach: true,
      }).output;
      return { runId: snapshotId };
    },
  );
  const check = tool(
    { name: `${name}_check`, description: 'Says how a background run stands.', input: runInput },
    async (input, context) => {
      const snapshotId = runIdOf(input);
      return report(await agent.getSnapshot({ snapshotId }, ownerOf(context)), snapshotId);
    },
  );
  const wait = tool(
    { name: `${name}_wait`, description: 'Waits for a background run to end.', input: runInput },
    async (input, context) => {
      const snapshotId = runIdOf(input);
      const options = { ...ownerOf(context), signal: context.signal };
      return report(await agent.wait(snapshotId, options), snapshotId);
    },
  );
  const abort = tool(
    { name: `${name}_abort`, description: 'Stops a background run.', input: runInput },
    async (input, context) => {
      const status = await agent.abort(runIdOf(input), ownerOf(context));
      return report(status === undefined ? undefined : { status }, runIdOf(input));
    },
  );
  return [start, check, wait, abort];
}

function ownerOf(context: ToolContext): { readonly owner?: string } {
  const { owner } = invocationOf(context)?.scope ?? {};
  return owner === undefined ? {} : { owner };
}

const runIdOf = (input: Json): string => textField(input, 'runId');

function report(
  snapshot: Pick<Snapshot, 'status' | 'error' | 'state'> | { readonly status: string } | undefined,
  runId: string,
): Json {
  if (snapshot === undefined) {
    throw new WaymarkError(
      'NOT_FOUND',
      `No run "${runId.slice(0, 64)}". Use an id that the start tool returned.`,
    );
  }
  const state = 'state' in snapshot ? snapshot.state : undefined;
  const error = 'error' in snapshot ? snapshot.error : undefined;
  const last = state?.messages?.at(-1);
  return defined({
    status: snapshot.status,
    text: last?.role === 'model' ? textOf(last) : undefined,
    error: error?.message,
  });
}

function notInReplay(name: string): WaymarkError {
  return new WaymarkError(
    'FAILED_PRECONDITION',
    `A replay starts no background runs. Answer the tools of "${name}" from the record.`,
  );
}
