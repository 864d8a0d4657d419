import type { Tool as McpTool } from '@modelcontextprotocol/client';
import type { JsonObject } from '../core/json/json.ts';
import type { UntrustedSchema } from '../core/schema/untrusted-schema.ts';
import type { Clock } from '../core/time/clock.ts';
import type { McpConnection } from './connection.ts';

/** What calling the tools of a server needs. */
export interface ToolServer {
  readonly server: string;
  readonly connection: McpConnection;
  readonly timeout: number;
  /** Whether the server is asked to run calls as tasks. */
  readonly tasks: boolean;
  readonly clock: Clock;
  /** Called when the server does not know a tool that it has listed. */
  onUnknownTool(): void;
}

/** One call of a tool of a server. */
export interface ServerToolCall {
  readonly definition: McpTool;
  /** The schema of its structured content. */
  readonly outputSchema: UntrustedSchema | undefined;
  readonly about: ToolServer;
  readonly input: JsonObject;
}

/** Whether the server may answer a call with a task. A server of 2025 says which of its tools must be called so. */
export function mayBeTask({ definition, about }: ServerToolCall): boolean {
  return about.tasks || taskSupportOf(definition) === 'required';
}

/** Whether a server of 2025 is asked to run the call as a task. */
export function isLegacyTask({ definition, about }: ServerToolCall): boolean {
  const support = taskSupportOf(definition);
  return support === 'required' || (support === 'optional' && about.tasks);
}

function taskSupportOf(definition: McpTool): unknown {
  return (definition as { execution?: { taskSupport?: unknown } }).execution?.taskSupport;
}
