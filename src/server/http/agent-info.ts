import { internalsOf } from '../../agent/define/create-agent.ts';
import type { Agent } from '../../agent/spec/agent.ts';
import type { Json } from '../../core/json/json.ts';
import type { JsonSchema } from '../../core/schema/schema.ts';
import { findJson } from '../../generate/output/find-json.ts';
import type { Message } from '../../protocol/message.ts';
import { textOf } from '../../protocol/messages.ts';
import type { AgentInfo, ToolInfo } from '../../protocol/requests.ts';

/** The content of an agent, as far as it is known outside of a call: a prompt may need values that only a call has. */
export async function contentOf(
  agent: Agent,
): Promise<Partial<Pick<AgentInfo, 'model' | 'tools' | 'outputSchema'>>> {
  try {
    return (await internalsOf(agent).spec.describe?.()) ?? {};
  } catch {
    return {};
  }
}

/** The tools that the agent itself has. */
export async function toolsOf(agent: Agent): Promise<readonly ToolInfo[]> {
  return (await contentOf(agent)).tools ?? [];
}

/** The schema of an agent's structured output, where it has one. */
export async function structuredOutput(agent: Agent): Promise<JsonSchema | undefined> {
  try {
    return await internalsOf(agent).spec.outputSchema?.();
  } catch {
    return undefined;
  }
}

/** The structured output in an answer, of which a snapshot has the text only. */
export async function outputIn(
  agent: Agent,
  answer: Message | undefined,
): Promise<Json | undefined> {
  return (await structuredOutput(agent)) ? findJson(textOf(answer)) : undefined;
}
