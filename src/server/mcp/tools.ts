import * as v from 'valibot';
import type { Agent } from '../../agent/contract/agent.ts';
import { internalsOf } from '../../agent/define/create-agent.ts';
import type { JsonSchema } from '../../core/schema/schema.ts';
import { finishReason } from '../../protocol/turn.ts';
import type { McpServerOptions } from '../http/handler-options.ts';
import type { Fields } from '../http/json-rpc.ts';
import { hasStore, type ServedApp, structuredOutput } from '../http/served-app.ts';
import type { Era } from './era.ts';

/** The longest name that the common providers of models accept for a tool. */
const maxNameLength = 64;

/** The agents that are offered, by the name of their tool. */
export function offeredAgents(
  app: ServedApp,
  { agents }: McpServerOptions,
): ReadonlyMap<string, Agent> {
  const offered = new Map<string, Agent>();
  for (const agent of app.agents()) {
    const isOffered = agents ? agents.includes(agent.name) : hasStore(agent);
    if (isOffered) offered.set(toolName(agent.name, offered), agent);
  }
  return offered;
}

// Other characters are refused by the providers of the models that call the tool.
function toolName(name: string, taken: ReadonlyMap<string, Agent>): string {
  const plain = name.replace(/[^\w-]/g, '_').slice(0, maxNameLength);
  if (!taken.has(plain)) return plain;
  for (let count = 2; ; count++) {
    const suffix = `_${count}`;
    const other = `${plain.slice(0, maxNameLength - suffix.length)}${suffix}`;
    if (!taken.has(other)) return other;
  }
}

export const toolArguments = v.object({
  message: v.string(),
  sessionId: v.optional(v.string()),
  snapshotId: v.optional(v.string()),
});

const inputSchema = {
  type: 'object',
  properties: {
    message: { type: 'string', description: 'What to tell the agent.' },
    sessionId: {
      type: 'string',
      description:
        'Continues a conversation: the sessionId of an earlier result. Leave it out to start a new one.',
    },
    snapshotId: {
      type: 'string',
      description:
        'Continues from an earlier point: the snapshotId of an earlier result. What came after it is kept as another branch.',
    },
  },
  required: ['message'],
  additionalProperties: false,
};

/** An agent as a tool, as `tools/list` shows it. */
export async function describeTool(name: string, agent: Agent, { kind }: Era): Promise<Fields> {
  return {
    name,
    title: agent.name,
    description: agent.description ?? `Talks to the agent "${agent.name}".`,
    inputSchema,
    outputSchema: outputSchemaOf(isTransformed(agent) ? {} : await structuredOutput(agent)),
    annotations: { title: agent.name, openWorldHint: true },
    // Since 2026-07-28 the server decides which calls are tasks.
    execution:
      kind === 'legacy' && agent.metadata.detachable ? { taskSupport: 'optional' } : undefined,
  };
}

/** Whether an output may leave in another form than its schema says. */
function isTransformed(agent: Agent): boolean {
  const { state, output } = internalsOf(agent).spec.transform;
  return state !== undefined || output !== undefined;
}

function outputSchemaOf(output: JsonSchema | undefined): Fields {
  const { inner, definitions } = nested(output ?? { type: 'string' });
  return {
    type: 'object',
    properties: {
      sessionId: { type: 'string' },
      snapshotId: { type: 'string' },
      finishReason: { type: 'string', enum: finishReason.options },
      output: inner,
    },
    required: ['sessionId'],
    ...definitions,
  };
}

/** A schema as a part of another one: references lead from the root of the whole, so definitions move there. */
function nested(schema: JsonSchema): { readonly inner: Fields; readonly definitions: Fields } {
  const { $schema: _, $id, $defs, definitions, ...inner } = schema;
  // Its references lead to itself, which is no longer the root.
  if ($id !== undefined || JSON.stringify(schema).includes('"$ref":"#"')) {
    return { inner: {}, definitions: {} };
  }
  return { inner, definitions: { $defs, definitions } };
}
