import { failedPrecondition, type WaymarkError } from '../../core/error.ts';
import { type Json, toJson } from '../../core/json/json.ts';
import { parse } from '../../core/schema/schema.ts';
import type { SessionState } from '../../session/session-state.ts';
import type { AgentSpec } from './spec.ts';

/** A custom state that is set as a whole, checked as far as that can be done at once. */
export function checkCustom({ stateSchema }: AgentSpec, custom: unknown): unknown {
  if (stateSchema === undefined || custom === undefined) return custom;
  const checked = parse(stateSchema, custom, 'The custom state');
  if (!(checked instanceof Promise)) return checked;
  // An asynchronous schema is asked when the state is loaded.
  checked.catch(() => {});
  return custom;
}

type StateRules = Pick<AgentSpec, 'name' | 'stateSchema' | 'initialState' | 'upgradeState'>;

/** A state whose custom part is the agent's initial one, if it has none yet. */
export function withInitial({ initialState }: StateRules, state: SessionState): SessionState {
  if (state.custom !== undefined || initialState === undefined) return state;
  return { ...state, custom: initialState };
}

/** A stored state, brought up to the agent's present schema. */
export async function storedState(spec: StateRules, stored: SessionState): Promise<SessionState> {
  const { stateSchema, upgradeState } = spec;
  const state = withInitial(spec, stored);
  if (stateSchema === undefined || state.custom === undefined) return state;
  const fault = await faultOf(spec, state.custom);
  if (fault === undefined) return state;
  if (upgradeState === undefined) throw misfit(spec, fault);
  const upgraded = toJson(await upgradeState(state.custom), 'upgraded state');
  const left = await faultOf(spec, upgraded);
  if (left !== undefined) throw misfit(spec, left);
  return { ...state, custom: upgraded };
}

async function faultOf({ stateSchema }: StateRules, custom: Json): Promise<unknown> {
  if (stateSchema === undefined) return undefined;
  try {
    await parse(stateSchema, custom, 'The stored custom state');
    return undefined;
  } catch (error) {
    return error;
  }
}

function misfit(spec: StateRules, cause: unknown): WaymarkError {
  const why = cause instanceof Error ? cause.message : '';
  return failedPrecondition(
    `A stored state no longer fits the schema of agent "${spec.name}". ${why} Give the agent an \`upgradeState\`.`,
    { cause },
  );
}
