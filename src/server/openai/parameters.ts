import { short } from '../http/errors.ts';
import type { OpenAiAllowance, OpenAiServerOptions } from '../http/handler-options.ts';
import { badRequest } from './errors.ts';
import { type CreateRequest, createRequest } from './shapes.ts';

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

/** Parameters that only callers may use whom the options allow it. */
const restricted: Readonly<Record<string, OpenAiAllowance>> = {
  instructions: 'instructions',
  temperature: 'sampling',
  top_p: 'sampling',
  max_output_tokens: 'sampling',
};

/** Refuses what this server does not do, and what its callers may not decide: passing over it would be a wrong answer. */
export function checkParameters(body: CreateRequest, options: OpenAiServerOptions): void {
  for (const [name, value] of Object.entries(body)) {
    if (value === undefined || value === null || passedOver.has(name)) continue;
    if (!Object.hasOwn(createRequest.entries, name)) {
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

/** Refuses what callers may not decide. */
export function checkAllowed(
  { allow = [] }: OpenAiServerOptions,
  needed: OpenAiAllowance,
  param: string,
): void {
  if (allow.includes(needed)) return;
  throw badRequest(
    `${reasons[needed](param)} The server can allow it with openai: { allow: ['${needed}'] }.`,
    { param, code: 'unsupported_parameter' },
  );
}

const reasons: Readonly<Record<OpenAiAllowance, (param: string) => string>> = {
  instructions: (param) => `Callers may not give instructions (${param}): the agent has its own.`,
  sampling: (param) => `Callers may not set ${param}: the agent's definition decides.`,
  tools: (param) => `Callers may not set ${param}: the agent decides which tools it uses.`,
  history: () =>
    'The input has earlier messages that this server does not know. Continue with previous_response_id or conversation, or send back the items of the last response with their ids.',
};
