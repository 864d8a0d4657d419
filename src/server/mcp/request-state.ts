import * as v from 'valibot';
import { WaymarkError } from '../../core/error.ts';
import { hmacSha256, timingSafeEqual } from '../../core/platform.ts';
import type { Clock } from '../../core/time/clock.ts';
import type { McpServerOptions } from '../http/handler-options.ts';
import { fromBase64Url, randomSecret, toBase64Url } from '../http/secret.ts';

/** What a question to the user is about. */
const asked = v.object({ agent: v.string(), sessionId: v.string(), snapshotId: v.string() });
export interface Asked extends v.InferOutput<typeof asked> {}

/**
 * The state that a client holds while its user answers. It names the interrupted snapshot, and is signed for one owner, so
 * that a client can only answer what it was asked.
 */
export interface RequestStates {
  sign(subject: Asked, owner: string | undefined): string;
  /** What was asked; INVALID_ARGUMENT for a state that this server did not give to this owner, or that is too old. */
  open(state: string, owner: string | undefined): Asked;
}

/** Milliseconds for which a question can be answered. */
const maxAge = 7 * 24 * 60 * 60 * 1000;

export function createRequestStates({ secret }: McpServerOptions, clock: Clock): RequestStates {
  const secrets = secret === undefined ? [randomSecret()] : [secret].flat();
  const macOf = (key: string, payload: string, owner: string | undefined): string =>
    hmacSha256(key, JSON.stringify(['waymark.mcp.1', owner ?? null, payload]), 'base64url');
  return {
    sign({ agent, sessionId, snapshotId }, owner) {
      const payload = toBase64Url(JSON.stringify([clock.now(), agent, sessionId, snapshotId]));
      return `${payload}.${macOf(secrets[0] ?? '', payload, owner)}`;
    },
    open(state, owner) {
      const [payload = '', mac = ''] = state.split('.', 2);
      if (!secrets.some((key) => timingSafeEqual(mac, macOf(key, payload, owner)))) throw invalid();
      const [time, agent, sessionId, snapshotId] = JSON.parse(fromBase64Url(payload));
      if (clock.now() - Number(time) > maxAge) throw invalid();
      return v.parse(asked, { agent, sessionId, snapshotId });
    },
  };
}

function invalid(): WaymarkError {
  return new WaymarkError(
    'INVALID_ARGUMENT',
    'This request state is not valid here, or too old. Call the tool again; with the sessionId it continues the conversation.',
  );
}
