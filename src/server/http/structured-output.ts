import { internalsOf } from '../../agent/define/create-agent.ts';
import type { Agent } from '../../agent/spec/agent.ts';
import type { JsonSchema } from '../../core/schema/schema.ts';

/** The schema of an agent's structured output, where it has one. */
export async function structuredOutput(agent: Agent): Promise<JsonSchema | undefined> {
  try {
    return await internalsOf(agent).spec.outputSchema?.();
  } catch {
    // What a prompt renders may need what only a call has.
    return undefined;
  }
}
