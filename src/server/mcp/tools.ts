import * as v from 'valibot';
import { internalsOf } from '../../agent/define/create-agent.ts';
import type { Agent } from '../../agent/spec/agent.ts';
import type { JsonSchema } from '../../core/schema/schema.ts';
import { finishReason } from '../../protocol/turn.ts';
import { structuredOutput } from '../http/agent-info.ts';
import type { Fields } from '../http/json-rpc.ts';
import type { Era } from './era.ts';

/** The arguments of a tool. */
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
