import type { Client } from '@modelcontextprotocol/client';
import * as v from 'valibot';
import { fromBase64 } from '../core/base64.ts';
import { invalid, messageOf, WaymarkError } from '../core/error.ts';
import { isJsonObject, toJson } from '../core/json/json.ts';
import {
  checkBodySize,
  checkFrontMatter,
  type Skill,
  skillFile,
  skillLimits,
} from '../generate/skill/skill.ts';
import { anyResult } from './client.ts';

/** The extension with which servers offer skills (SEP-2640). */
const extension = 'io.modelcontextprotocol/skills';

/** A server, as its skills use it. */
export interface SkillServer {
  /** The name that the app gave the server. */
  readonly server: string;
  readonly timeout: number;
  ask<T>(
    doing: string,
    signal: AbortSignal | undefined,
    send: (client: Client) => Promise<T>,
  ): Promise<T>;
}

const entry = v.object({
  uri: v.pipe(v.string(), v.maxLength(1_000)),
  frontmatter: v.record(v.string(), v.unknown()),
  resources: v.array(
    v.object({
      uri: v.pipe(v.string(), v.maxLength(2_000)),
      digest: v.pipe(v.string(), v.regex(/^sha256:[0-9a-f]{64}$/)),
      size: v.pipe(v.number(), v.integer(), v.minValue(0)),
    }),
  ),
});

const listing = v.object({
  skills: v.array(v.unknown()),
  nextCursor: v.optional(v.string()),
  ttlMs: v.optional(v.number()),
});

const contents = v.object({
  contents: v.tupleWithRest(
    [v.object({ text: v.optional(v.string()), blob: v.optional(v.string()) })],
    v.unknown(),
  ),
});

/** The skills that a server lists, and for how long the list is valid. One that cannot be used is left out and reported. */
export async function listSkills(
  from: SkillServer,
  report: (error: unknown) => void,
): Promise<{ readonly skills: readonly Skill[]; readonly ttlMs: number | undefined }> {
  return await from.ask('the list of its skills', undefined, async (client) => {
    if (!offersSkills(client)) return { skills: [], ttlMs: undefined };
    const skills = new Map<string, Skill>();
    let ttlMs: number | undefined;
    let seen = 0;
    for (let cursor: string | undefined, page = 0; page < skillLimits.perSource; page++) {
      const params = cursor === undefined ? {} : { cursor };
      const result = v.parse(listing, await send(client, from, { method: 'skills/list', params }));
      ttlMs ??= result.ttlMs;
      for (const each of result.skills) {
        // Also those that cannot be used count: each of them is reported.
        if (seen++ === skillLimits.perSource) {
          report(tooMany(from));
          return { skills: [...skills.values()], ttlMs };
        }
        try {
          const skill = toSkill(each, from);
          skills.set(skill.name, skill);
        } catch (error) {
          report(leftOut(each, from, error));
        }
      }
      cursor = result.nextCursor;
      if (cursor === undefined) break;
    }
    return { skills: [...skills.values()], ttlMs };
  });
}

/** A skill by its path, which need not be in the list; `undefined` if the server has none. */
export async function findSkill(
  from: SkillServer,
  path: string,
  signal: AbortSignal,
): Promise<Skill | undefined> {
  if (!/^[\w.~%@+/-]{1,200}$/.test(path)) return undefined;
  try {
    return await getSkill(from, `skill://${path}/${skillFile}`, signal);
  } catch {
    return undefined;
  }
}

async function getSkill(from: SkillServer, uri: string, signal?: AbortSignal): Promise<Skill> {
  return await from.ask(`the skill "${uri}"`, signal, async (client) => {
    if (!offersSkills(client)) throw new WaymarkError('NOT_FOUND', 'The server has no skills.');
    const result = await send(client, from, { method: 'skills/get', params: { uri } }, signal);
    return toSkill(v.parse(v.object({ skill: v.unknown() }), result).skill, from);
  });
}

function offersSkills(client: Client): boolean {
  const { extensions = {} } = (client.getServerCapabilities() ?? {}) as {
    readonly extensions?: Readonly<Record<string, unknown>>;
  };
  return Object.hasOwn(extensions, extension);
}

async function send(
  client: Client,
  { timeout }: SkillServer,
  request: { readonly method: string; readonly params: object },
  signal?: AbortSignal,
): Promise<unknown> {
  const limits = { timeout, ...(signal && { signal }) };
  return await client.request(request as Parameters<Client['request']>[0], anyResult, limits);
}

/** A skill from the entry of a server. Its name is its path, behind the name that the app gave the server. */
function toSkill(given: unknown, from: SkillServer): Skill {
  if (isDynamic(given)) {
    throw invalid('its files have no digests (`"dynamic"`), so that their version is not known');
  }
  const { uri, frontmatter, resources } = v.parse(entry, given);
  const [, root = '', path = ''] =
    /^([a-z][a-z0-9+.-]*:\/\/([\w.~%@+-]+(?:\/[\w.~%@+-]+)*))\/SKILL\.md$/.exec(uri) ?? [];
  if (path === '' || path.length > 200) throw invalid('its URI is not that of a SKILL.md');
  const frontMatter = toJson(frontmatter, 'The front matter');
  const what = `the skill "${path}"`;
  const { description } = checkFrontMatter(
    frontMatter,
    path.slice(path.lastIndexOf('/') + 1),
    what,
  );
  const uris = new Map<string, string>();
  const files = resources.map(({ uri: file, digest, size }) => {
    const below = file.startsWith(`${root}/`) ? decoded(file.slice(root.length + 1)) : '';
    if (below === '' || uris.has(below) || below.split('/').includes('..')) {
      throw invalid(`its file ${JSON.stringify(file)} is not in its folder, or listed twice`);
    }
    uris.set(below, file);
    if (below === skillFile) checkBodySize(size, `${skillFile} of ${what}`);
    return { path: below, size, hash: digest.slice('sha256:'.length) };
  });
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  if (!uris.has(skillFile)) throw invalid(`its list of files has no ${skillFile}`);
  if (files.length > skillLimits.files || bytes > skillLimits.bytes) {
    throw invalid(
      `it has ${files.length} files of ${bytes} bytes; the limits are ${skillLimits.files} and ${skillLimits.bytes}`,
    );
  }
  return {
    name: `${from.server}/${path}`,
    description,
    frontMatter: isJsonObject(frontMatter) ? frontMatter : {},
    files: files.sort((a, b) => (a.path < b.path ? -1 : 1)),
    origin: `MCP server "${from.server}"`,
    read: async (file, signal) => await readFile(from, uris.get(file) ?? '', signal),
    refresh: async (signal) => await getSkill(from, uri, signal),
  };
}

async function readFile(
  from: SkillServer,
  uri: string,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  const result = await from.ask(`the resource "${uri}"`, signal, (client) =>
    client.readResource({ uri }, { timeout: from.timeout, ...(signal && { signal }) }),
  );
  const parsed = v.safeParse(contents, result);
  const { text, blob } = parsed.success ? parsed.output.contents[0] : {};
  if (text !== undefined) return new TextEncoder().encode(text);
  const bytes = blob === undefined ? undefined : fromBase64(blob);
  if (bytes !== undefined) return bytes;
  throw new WaymarkError('INTERNAL', `MCP server "${from.server}" sent no content for "${uri}".`);
}

function isDynamic(given: unknown): boolean {
  return v.is(v.object({ resources: v.literal('dynamic') }), given);
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return '';
  }
}

function leftOut(given: unknown, { server }: SkillServer, cause: unknown): WaymarkError {
  const { uri } = (given ?? {}) as { readonly uri?: unknown };
  const which = (JSON.stringify(uri) ?? 'without a URI').slice(0, 200);
  return invalid(`Skill ${which} of MCP server "${server}" is left out: ${messageOf(cause)}`, {
    cause,
  });
}

function tooMany({ server }: SkillServer): WaymarkError {
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `MCP server "${server}" has more than ${skillLimits.perSource} skills. The others are left out.`,
  );
}
