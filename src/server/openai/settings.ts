import type { Agent } from '../../agent/contract/agent.ts';
import { internalsOf } from '../../agent/define/create-agent.ts';
import { messageOf } from '../../core/error.ts';
import { defined, type JsonObject, jsonEqual, toJson } from '../../core/json/json.ts';
import { untrustedSchema } from '../../core/schema/untrusted-schema.ts';
import type { TurnSettings } from '../../protocol/turn.ts';
import { short } from '../http/answer.ts';
import type { OpenAiServerOptions } from '../http/handler-options.ts';
import { structuredOutput } from '../http/served-app.ts';
import { badRequest } from './errors.ts';
import type { ReadInput } from './input.ts';
import { type CreateRequest, createRequest, type ToolChoiceField } from './shapes.ts';

/** The longest schema of an answer, as JSON: preparing one takes time in proportion to it. */
const maxSchemaLength = 65_536;

/** Allowed settings of a request that differ from the agent's definition. */
export async function settingsOf(
  agent: Agent,
  body: CreateRequest,
  { instructions: asked, sampling }: Pick<ReadInput, 'instructions' | 'sampling'>,
): Promise<TurnSettings | undefined> {
  const { temperature, top_p: topP, max_output_tokens: maxOutputTokens, reasoning } = body;
  const instructions = [body.instructions ?? '', ...asked]
    .filter((text) => text !== '')
    .join('\n\n');
  const config = defined({
    temperature: temperature ?? undefined,
    topP: topP ?? undefined,
    maxOutputTokens: maxOutputTokens ?? undefined,
    reasoning: reasoning?.effort ?? undefined,
    ...sampling,
  });
  const settings = defined({
    instructions: instructions || undefined,
    config: Object.keys(config).length > 0 ? config : undefined,
    output: await outputOf(agent, body),
    toolChoice: toolChoiceOf(body.tool_choice),
  });
  if (Object.keys(settings).length === 0) return undefined;
  // The use of the model in a custom agent is not known.
  if (internalsOf(agent).spec.describe) return settings;
  throw badRequest(
    `The model ${short(agent.name)} takes no instructions, sampling parameters, formats or tool_choice: its own code calls the model.`,
    { code: 'unsupported_parameter' },
  );
}

function toolChoiceOf(
  choice: ToolChoiceField | null | undefined,
): TurnSettings['toolChoice'] | undefined {
  if (choice === undefined || choice === null || choice === 'auto') return undefined;
  return typeof choice === 'string' ? choice : { tool: choice.name };
}

async function outputOf(
  agent: Agent,
  { text }: CreateRequest,
): Promise<TurnSettings['output'] | undefined> {
  const { format } = text ?? {};
  if (format === undefined || format.type === 'text') return undefined;
  if (format.type !== 'json_schema' && format.type !== 'json_object') {
    throw badRequest(`Unsupported format ${short(format.type)}.`, {
      param: 'text.format.type',
      code: 'unsupported_value',
    });
  }
  const own = await structuredOutput(agent);
  if (format.type === 'json_object') return own ? undefined : {};
  if (format.schema === undefined) {
    throw badRequest('A json_schema format needs a schema.', {
      param: 'text.format.schema',
      code: 'missing_parameter',
    });
  }
  const size = JSON.stringify(format.schema).length;
  if (size > maxSchemaLength) {
    throw badRequest(
      `The schema has ${size} characters as JSON, of at most ${maxSchemaLength}. Describe less of the answer.`,
      { param: 'text.format.schema', code: 'schema_too_large' },
    );
  }
  const schema = toJson(format.schema, 'schema') as JsonObject;
  checkSchema(schema);
  if (own === undefined) return { schema };
  if (jsonEqual(own as JsonObject, schema)) return undefined;
  throw badRequest(
    `The model ${short(agent.name)} has its own output schema. Leave out the format; GET /agents/${agent.name} shows the schema.`,
    { param: 'text.format', code: 'unsupported_value' },
  );
}

// Refused here, an invalid schema leaves no run behind.
function checkSchema(schema: JsonObject): void {
  try {
    untrustedSchema(schema);
  } catch (error) {
    throw badRequest(messageOf(error), {
      param: 'text.format.schema',
      code: 'invalid_json_schema',
    });
  }
}

/** Parameters that change nothing about what the agent does, so that they can be passed over. */
const passedOver: ReadonlySet<string> = new Set([
  'include',
  'parallel_tool_calls',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'safety_identifier',
  'service_tier',
  'stream_options',
  'truncation',
  'user',
]);

/** Parameters that callers may use only if the options allow them. */
type Allowance = NonNullable<OpenAiServerOptions['allow']>[number];

const restricted: Readonly<Record<string, Allowance>> = {
  instructions: 'instructions',
  temperature: 'sampling',
  top_p: 'sampling',
  max_output_tokens: 'sampling',
  max_completion_tokens: 'sampling',
  max_tokens: 'sampling',
  presence_penalty: 'sampling',
  frequency_penalty: 'sampling',
  seed: 'sampling',
  stop: 'sampling',
  reasoning_effort: 'sampling',
};

/** Refuses what this server does not do, and what its callers may not decide: passing over it would be a wrong answer. */
export function checkParameters(
  body: Readonly<Record<string, unknown>> & Pick<CreateRequest, 'reasoning'>,
  options: OpenAiServerOptions,
  known: object = createRequest.entries,
): void {
  for (const [name, value] of Object.entries(body)) {
    if (value === undefined || value === null || passedOver.has(name)) continue;
    if (!Object.hasOwn(known, name)) {
      throw badRequest(`Unsupported parameter: ${short(name)}.`, {
        param: name.slice(0, 64),
        code: 'unsupported_parameter',
      });
    }
    const needed = Object.hasOwn(restricted, name) ? restricted[name] : undefined;
    if (needed !== undefined) checkAllowed(options, needed, name);
  }
  const { tool_choice: choice, reasoning } = body;
  if (typeof reasoning?.effort === 'string') checkAllowed(options, 'sampling', 'reasoning.effort');
  if (choice !== undefined && choice !== null && choice !== 'auto') {
    checkAllowed(options, 'tools', 'tool_choice');
  }
}

export function checkAllowed(
  { allow = [] }: OpenAiServerOptions,
  needed: Allowance,
  param: string,
): void {
  if (allow.includes(needed)) return;
  throw badRequest(
    `${reasons[needed](param)} The server can allow it with openai: { allow: ['${needed}'] }.`,
    { param, code: 'unsupported_parameter' },
  );
}

const reasons: Readonly<Record<Allowance, (param: string) => string>> = {
  instructions: (param) => `Callers may not give instructions (${param}): the agent has its own.`,
  sampling: (param) => `Callers may not set ${param}: the agent's definition decides.`,
  tools: (param) => `Callers may not set ${param}: the agent decides which tools it uses.`,
  history: (param) =>
    `The ${param} field has earlier messages that this server does not know. ${
      param === 'messages'
        ? 'Name the conversation with metadata.session_id or user, so that the server has them.'
        : 'Continue with previous_response_id or conversation, or send back the items of the last response with their ids.'
    }`,
};
