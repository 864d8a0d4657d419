import { WaymarkError } from '../core/error.ts';
import { hmacSha256, timingSafeEqual } from '../core/platform.ts';
import type { State } from '../protocol/state.ts';
import { fromPlainState, hashState } from '../session/session-state.ts';

/** The seal of a client-held state: a MAC over its content, its session and the agent it was made for. */
export function sealOf(secret: string, agent: string, state: State): string {
  const content = hashState(fromPlainState(state));
  return hmacSha256(
    secret,
    JSON.stringify(['waymark.state', agent, state.sessionId ?? '', content]),
  );
}

/** Refuses a state that was changed since it was sealed, or that was sealed for another agent. */
export function checkSeal(secret: string, agent: string, state: State): void {
  const { seal, ...rest } = state;
  if (seal !== undefined && timingSafeEqual(seal, sealOf(secret, agent, rest))) return;
  throw new WaymarkError(
    'PERMISSION_DENIED',
    `The state is not as agent "${agent}" sealed it. Send back the state of an output unchanged.`,
  );
}
