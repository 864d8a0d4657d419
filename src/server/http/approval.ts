import type { Interrupt, InterruptAnswer } from '../../api/interrupts.ts';
import { isJsonObject, type Json } from '../../core/json/json.ts';
import type { ToolRequestPart } from '../../protocol/message.ts';

/**
 * The answer to a tool that waits for approval, from `{ approved, reason }`; `undefined` for anything that is neither a clear yes
 * nor a clear no.
 */
export function decideApproval(interrupt: Interrupt, value: Json): InterruptAnswer | undefined {
  const { approved, reason } = isJsonObject(value) ? value : {};
  if (approved === false) {
    return interrupt.decline(typeof reason === 'string' && reason !== '' ? reason : undefined);
  }
  if (approved !== true) return undefined;
  const inside = innerRequests(interrupt.metadata);
  if (inside.length === 0) return interrupt.approve();
  const restart = inside.map(({ toolRequest }) => ({ toolRequest, metadata: { resumed: true } }));
  return interrupt.approve({ resumed: { restart } as unknown as Json });
}

/** The requests of an interrupted sub-agent, which are approved together. */
export function innerRequests(data: Json): readonly ToolRequestPart[] {
  if (!isJsonObject(data) || !Array.isArray(data.requests) || !('agent' in data)) return [];
  return data.requests.filter(
    (each: unknown): each is ToolRequestPart =>
      typeof each === 'object' && each !== null && 'toolRequest' in each,
  );
}
