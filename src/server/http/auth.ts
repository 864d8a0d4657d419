import { WaymarkError } from '../../core/error.ts';
import { type JsonObject, toJson } from '../../core/json/json.ts';
import { isName } from '../../protocol/ids.ts';
import type { Operation } from '../../protocol/routes.ts';

/** Who is calling. */
export interface Identity {
  /** The owner of the sessions that the client starts. It cannot see those of other owners. */
  readonly principal: string;
  /** Plain JSON, passed to tools and handlers as the call's context. It is stored with the run, so do not put secrets in it. */
  readonly context?: JsonObject;
}

/**
 * Tells who is calling. `undefined` refuses the request, and so does a `WaymarkError`, with its status. Any other error is a
 * failure of the server: it is reported to `onError`, and the client gets `INTERNAL`.
 */
export type Auth = (request: Request) => Identity | undefined | Promise<Identity | undefined>;

/** A caller; without a principal where the server has no `auth`. */
export interface Caller {
  /** The id of the caller, and the owner of its sessions. */
  readonly principal?: string;
  /** What tools and handlers get as `context`. */
  readonly context?: JsonObject;
}

/** The owner under which a caller's sessions live. */
export function ownerOf({ principal }: Caller): { readonly owner?: string } {
  return principal === undefined ? {} : { owner: principal };
}

/** What a caller is about to do, for `authorize` to judge. */
export interface AuthorizeCall extends Caller {
  /**
   * The operation, under its name in the native protocol: a turn is `runTurn` in every protocol, including each turn over a
   * WebSocket; opening the WebSocket is `connect`. Development tools ask for `runAction`, and then for the operation that the action
   * performs.
   */
  readonly operation: Operation | 'runAction';
  /** The name of the agent. */
  readonly agent?: string;
  /** The session that the call is about, even if the call names only a snapshot. Absent for a new session without an id. */
  readonly sessionId?: string;
  /** The snapshot that the call names. */
  readonly snapshotId?: string;
  /** The key of the action, for `runAction`. */
  readonly action?: string;
  /** The HTTP request. */
  readonly request: Request;
}

/**
 * May refuse a call that `auth` let through: `false` is `PERMISSION_DENIED`, and a `WaymarkError` stands as it is. Any other
 * error is a failure of the server, as in {@link Auth}.
 */
export type Authorize = (call: AuthorizeCall) => boolean | undefined | Promise<boolean | undefined>;

/** Asks the hook who is calling. */
export async function authenticate(auth: Auth | undefined, request: Request): Promise<Caller> {
  if (!auth) return {};
  const identity = await auth(request);
  if (identity !== undefined) return identity;
  throw new WaymarkError(
    'UNAUTHENTICATED',
    'Authentication is required: the credentials are missing or not valid.',
  );
}

/** The identity that `auth` returned; INTERNAL if it is none. */
export function parseIdentity(returned: unknown): Identity | undefined {
  if (returned === undefined || returned === null) return undefined;
  const { principal, context } = returned as Partial<Identity>;
  if (typeof principal !== 'string' || !isName(principal)) {
    throw new WaymarkError('INTERNAL', `${notAnIdentity(returned, principal)} ${identityAdvice}`);
  }
  return context === undefined
    ? { principal }
    : { principal, context: toJson(context, 'The context that `auth` returned') as JsonObject };
}

const identityAdvice =
  'Return { principal }, with the id of the caller, or undefined to refuse the request.';

function notAnIdentity(returned: unknown, principal: unknown): string {
  if (typeof returned !== 'object') return `\`auth\` returned a ${typeof returned}.`;
  if (principal === undefined) return '`auth` returned an object without `principal`.';
  return '`auth` returned a `principal` that is not a valid id.';
}

/** Asks the hook whether this caller may do this. */
export async function checkAuthorized(authorize: Authorize, call: AuthorizeCall): Promise<void> {
  if ((await authorize(call)) !== false) return;
  throw new WaymarkError(
    'PERMISSION_DENIED',
    `You are not allowed to do this (${call.operation}).`,
  );
}
