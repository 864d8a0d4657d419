import { isName } from '../../../protocol/ids.ts';
import type { Scope } from '../../contract/store.ts';

/**
 * A scope as its columns. A name that cannot be one owns nothing: it becomes an agent that does not exist, because a
 * database may refuse it, and an empty owner must not be taken for no owner.
 */
export function scopeKey({ owner, agent }: Scope): readonly [owner: string, agent: string] {
  const isPossible = isName(agent) && (owner === undefined || isName(owner));
  return isPossible ? [owner ?? '', agent] : ['', ''];
}

/** The condition that a session `z` is in the scope whose {@link scopeValues} are the first two parameters. */
export const inScope = '(CAST($1 AS text) IS NULL OR (z.owner = $1 AND z.agent = $2))';

/** A scope as parameters; without one, every session is in it. */
export function scopeValues(scope: Scope | undefined): readonly [string | null, string | null] {
  return scope === undefined ? [null, null] : scopeKey(scope);
}

/** A session id as its column; an invalid one matches no session. */
export function sessionKey(sessionId: string): string {
  return isName(sessionId) ? sessionId : '';
}

export function toScope(owner: string, agent: string): Scope {
  return owner === '' ? { agent } : { agent, owner };
}
