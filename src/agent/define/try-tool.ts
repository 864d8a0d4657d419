import { closest } from '../../core/closest.ts';
import { WaymarkError } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import {
  runToolOnce,
  type ToolAttempt,
  type ToolOnceOptions,
} from '../../generate/tool/run-tool-once.ts';
import { sessionKey } from '../../session/session.ts';
import { SessionFace, WorkingState } from '../../session/working-state.ts';
import type { Agent } from '../contract/agent.ts';
import { checkCustom } from '../contract/stored-state.ts';
import { internalsOf } from './create-agent.ts';

/** A call of a tool for a person who tries it, and what it did to the state. */
export type TriedTool = ToolAttempt & {
  /** The custom state after the call, if the tool changed it. */
  readonly custom?: Json;
};

/**
 * Calls a tool of an agent outside of a conversation. Its session is an empty one with the agent's initial state, and is not
 * saved.
 */
export async function tryTool(
  agent: Agent,
  { name, input }: { readonly name: string; readonly input: Json },
  options: Omit<ToolOnceOptions, 'extras'>,
): Promise<TriedTool> {
  const { spec } = internalsOf(agent);
  const tools = (await spec.tools?.()) ?? new Map();
  const tool = tools.get(name);
  if (tool === undefined) {
    const names = closest(name, [...tools.keys()])
      .slice(0, 10)
      .join(', ');
    throw new WaymarkError(
      'NOT_FOUND',
      `Agent "${agent.name}" has no tool "${name.slice(0, 64)}". It has ${names || 'none'}.`,
    );
  }
  const { initialState: custom } = spec;
  const working = new WorkingState(spec.freshState);
  const session = new SessionFace({
    id: () => options.ref,
    working,
    snapshotIds: [],
    checkCustom: (value) => checkCustom(spec, value),
  });
  const attempt = await sessionKey.run(session, () =>
    runToolOnce(tool, input, { ...options, extras: { session } }),
  );
  const { custom: after } = working.state;
  return { ...attempt, ...(after !== custom && after !== undefined && { custom: after }) };
}
