import { uuidv7 } from '../../core/id.ts';
import { headerOf } from '../http/connection.ts';
import type { RequestContext, ServerContext } from '../http/server-context.ts';
import type { Peer } from './dialogs.ts';
import { codes, type Fields, McpError } from './errors.ts';

/**
 * Clients of the 2025 revisions declare their capabilities once, with `initialize`. The id of their session carries what the
 * server needs of them, so that no process has to remember it: a call may come to another process, or after a restart. The
 * id gives no access to anything.
 */
const form = /^(e|n)-[0-9a-f-]{36}$/;

/** The id of a new session of a client with these capabilities. */
export function newLegacySession({ clock }: ServerContext, capabilities: Fields): string {
  return `${canFillForms(capabilities) ? 'e' : 'n'}-${uuidv7(clock.now())}`;
}

/** Who sends this request; a session id that this server never gives is unknown. */
export function peerOf(c: RequestContext): Peer {
  const session = headerOf(c, 'mcp-session-id');
  if (session !== undefined && !form.test(session)) {
    throw new McpError(
      codes.refused,
      'There is no such session. Begin a new one with initialize.',
      { httpStatus: 404 },
    );
  }
  return { principal: c.get('caller').principal, session };
}

/** Whether a client can be asked in the middle of a call. */
export function canBeAsked({ session }: Peer): boolean {
  return session?.startsWith('e') ?? false;
}

/** Whether a client shows forms to its user; one that names no mode of elicitation does. */
export function canFillForms({ elicitation }: Fields): boolean {
  if (typeof elicitation !== 'object' || elicitation === null) return false;
  return 'form' in elicitation || !('url' in elicitation);
}
