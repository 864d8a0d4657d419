import { failedPrecondition, invalid, type WaymarkError } from '../../core/error.ts';
import { getOrMake } from '../../core/get-or-make.ts';
import { type JsonSchema, toJsonSchema } from '../../core/schema/schema.ts';
import type { Tool } from '../../generate/tool/tool.ts';
import { type Session, sessionKey } from '../../session/session.ts';
import type { AgentSpec } from '../contract/spec.ts';
import { InvocationSession } from '../turn/invocation.ts';

/** An agent, as far as its state is concerned. */
export type StateOwner = Pick<AgentSpec, 'name' | 'stateSchema' | 'initialState'>;

/** The agents that a tool is known to fit. */
const fitting = new WeakMap<Tool, WeakSet<StateOwner>>();

/** Refuses a tool whose `state` is another one than the agent's, as far as the schemas and the initial state tell. */
export function checkToolState(tool: Tool, agent: StateOwner): void {
  if (tool.state === undefined || fitting.get(tool)?.has(agent)) return;
  const misfit = misfitOf(tool, agent);
  if (misfit !== undefined) {
    throw invalid(
      `Agent "${agent.name}" cannot use tool "${tool.name}", which works on another state: ${misfit}.`,
    );
  }
  getOrMake(fitting, tool, () => new WeakSet()).add(agent);
}

function misfitOf({ state }: Tool, { stateSchema, initialState }: StateOwner): string | undefined {
  if (state === undefined) return undefined;
  if (stateSchema === undefined) return 'the agent declares no `state`';
  return (
    startMisfit(state, initialState) ??
    schemaMisfit(toJsonSchema(state.schema), toJsonSchema(stateSchema))
  );
}

/** Refuses a tool that works on a state where the call has no session, or the session of an agent with another state. */
export function checkToolHere(tool: Tool): void {
  if (tool.state === undefined) return;
  const session = sessionKey.get();
  if (session === undefined) throw outsideAgent(tool.name);
  const invocation = InvocationSession.stateOf(session);
  if (invocation !== undefined) checkToolState(tool, invocation.spec);
}

/** Stands in for the session of a tool that is called outside an agent: any use of it says so. */
export function absentSession(toolName: string): Session {
  const refuse = (): never => {
    throw outsideAgent(toolName);
  };
  return new Proxy({} as Session, { get: refuse, set: refuse });
}

function outsideAgent(tool: string): WaymarkError {
  return failedPrecondition(
    `Tool "${tool}" uses its session, and there is none outside an agent. Give the tool to an agent, or call it inside a turn.`,
  );
}

function startMisfit(state: NonNullable<Tool['state']>, initial: unknown): string | undefined {
  try {
    state.check(initial);
    return undefined;
  } catch (error) {
    if (initial === undefined) {
      return 'its sessions start without a state. Give the agent an `initialState`, or make the `state` of the tool optional';
    }
    const reason = error instanceof Error ? error.message : String(error);
    return `its \`initialState\` does not fit. ${reason.replace(/\.$/, '')}`;
  }
}

/** The first field of the tool's state that the agent's state lacks, or has with another type. */
function schemaMisfit(wanted: JsonSchema, given: JsonSchema): string | undefined {
  const fields = fieldsOf(given);
  if (fields === undefined) return undefined;
  for (const [name, schema] of Object.entries(fieldsOf(wanted) ?? {})) {
    const field = fields[name];
    if (field === undefined) return `the agent's state has no field "${name}"`;
    const [has, wants] = [typeOf(field), typeOf(schema)];
    if (has !== undefined && wants !== undefined && has !== wants)
      return `field "${name}" is ${has} in the agent's state and ${wants} in the tool's`;
  }
  return undefined;
}

function fieldsOf({ properties }: JsonSchema): Readonly<Record<string, unknown>> | undefined {
  return typeof properties === 'object' && properties !== null
    ? (properties as Readonly<Record<string, unknown>>)
    : undefined;
}

function typeOf(schema: unknown): string | undefined {
  const type = typeof schema === 'object' && schema !== null && 'type' in schema && schema.type;
  return typeof type === 'string' ? type : undefined;
}
