import * as v from 'valibot';
import { short } from '../http/answer.ts';
import { headerOf } from '../http/connection.ts';
import { type Fields, RpcError } from '../http/json-rpc.ts';
import type { RequestContext } from '../http/server-context.ts';
import { codes, type RpcRequest } from './messages.ts';

/** The revision without sessions: each request carries its version and its client's capabilities. */
export const modernVersion = '2026-07-28';

/** The revisions that begin with `initialize`, newest first. */
export const legacyVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;

/** The revision of a client that does not name it after `initialize`. */
const unnamedVersion = '2025-03-26';

/** How a request is to be served. */
export interface Era {
  readonly kind: 'modern' | 'legacy';
  readonly version: string;
  /** The capabilities that the client declares with this request; in the legacy era it does so once, see `newLegacySession`. */
  readonly capabilities: Fields;
}

const prefix = 'io.modelcontextprotocol/';
const versionKey = `${prefix}protocolVersion`;
const capabilitiesKey = `${prefix}clientCapabilities`;
/** Where a modern result names the server. */
export const serverInfoKey = `${prefix}serverInfo`;

const object = v.record(v.string(), v.unknown());
const envelope = v.looseObject({ [versionKey]: v.string(), [capabilitiesKey]: object });

/** The field of the params that the header `Mcp-Name` repeats. */
const nameFields: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

/**
 * Tells the two eras apart by the body: a modern request has its version in `_meta`. The headers must say the same, because
 * proxies route and filter by them.
 */
export function eraOf(c: RequestContext, { method, params }: RpcRequest): Era {
  const header = headerOf(c, 'mcp-protocol-version');
  const meta = v.is(object, params._meta) ? params._meta : {};
  if (meta[versionKey] === undefined) return legacyEra(header);
  const parsed = v.safeParse(envelope, meta);
  if (!parsed.success) {
    throw bad(
      codes.invalidParams,
      `Expected a text at _meta["${versionKey}"] and an object at _meta["${capabilitiesKey}"].`,
    );
  }
  const version = String(meta[versionKey]);
  if (version !== modernVersion) throw unsupported(version);
  checkHeader('MCP-Protocol-Version', header, version);
  checkHeader('Mcp-Method', decoded(headerOf(c, 'mcp-method')), method);
  const name = mirroredName(method, params);
  if (name !== undefined) checkHeader('Mcp-Name', decoded(headerOf(c, 'mcp-name')), name);
  return { kind: 'modern', version, capabilities: meta[capabilitiesKey] as Fields };
}

/** The headers that repeat a modern request, for transports without headers; `undefined` for other messages. */
export function modernHeaders(message: Fields): Readonly<Record<string, string>> | undefined {
  const params = v.is(object, message.params) ? message.params : {};
  const meta = v.is(object, params._meta) ? params._meta : {};
  const version = meta[versionKey];
  const { method } = message;
  if (typeof version !== 'string' || typeof method !== 'string') return undefined;
  const name = mirroredName(method, params);
  return {
    'mcp-protocol-version': encoded(version),
    'mcp-method': encoded(method),
    ...(name !== undefined && { 'mcp-name': encoded(name) }),
  };
}

function mirroredName(method: string, params: Fields): string | undefined {
  const field = Object.hasOwn(nameFields, method) ? nameFields[method] : undefined;
  const name = field === undefined ? undefined : params[field];
  return typeof name === 'string' ? name : undefined;
}

function encoded(text: string): string {
  if (/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text)) return text;
  const bytes = new TextEncoder().encode(text.slice(0, 4096));
  return `=?base64?${btoa(String.fromCharCode(...bytes))}?=`;
}

function legacyEra(header: string | undefined): Era {
  const version = header ?? unnamedVersion;
  if (version >= modernVersion && /^\d{4}-\d\d-\d\d$/.test(version)) {
    throw bad(
      codes.invalidParams,
      `A request of revision ${short(version)} needs _meta["${versionKey}"] and _meta["${capabilitiesKey}"].`,
    );
  }
  if (!isLegacyVersion(version)) throw unsupported(version);
  return { kind: 'legacy', version, capabilities: {} };
}

export function isLegacyVersion(version: unknown): version is (typeof legacyVersions)[number] {
  return legacyVersions.some((known) => known === version);
}

function checkHeader(name: string, header: string | undefined, body: string): void {
  if (header === body) return;
  const said = header === undefined ? 'is missing' : `says ${short(header)}`;
  throw bad(codes.headerMismatch, `The header ${name} ${said}; the body says ${short(body)}.`);
}

/** A header holds ASCII only: other text is sent as `=?base64?…?=`. */
function decoded(header: string | undefined): string | undefined {
  const encoded = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/.exec(header?.trim() ?? '')?.[1];
  if (encoded === undefined) return header?.trim();
  try {
    const bytes = Uint8Array.from(atob(encoded), (char) => char.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function unsupported(requested: string): RpcError {
  const supported = [modernVersion, ...legacyVersions];
  return new RpcError(
    codes.unsupportedVersion,
    `Protocol revision ${short(requested)} is not supported. Use one of ${supported.join(', ')}.`,
    { httpStatus: 400, data: { supported, requested: requested.slice(0, 64) } },
  );
}

function bad(code: number, message: string): RpcError {
  return new RpcError(code, message, { httpStatus: 400 });
}
