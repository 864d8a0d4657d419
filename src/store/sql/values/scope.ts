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

/** A session id as its column; an invalid one matches no session. */
export function sessionKey(sessionId: string): string {
  return isName(sessionId) ? sessionId : '';
}

export function toScope(owner: string, agent: string): Scope {
  return owner === '' ? { agent } : { agent, owner };
}
