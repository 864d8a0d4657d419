import * as v from 'valibot';
import type { Agent } from '../../agent/contract/agent.ts';
import { internalsOf } from '../../agent/define/create-agent.ts';
import { toBase64 } from '../../core/base64.ts';
import { hasStatus } from '../../core/error.ts';
import { type Skill, type SkillFile, skillFile, textOf } from '../../generate/skill/skill.ts';
import { parseShape } from '../../protocol/parse.ts';
import { short } from '../http/answer.ts';
import { type Fields, RpcError } from '../http/json-rpc.ts';
import { authorize, openAgentCall } from '../http/server-context.ts';
import type { McpRequest } from './mcp-server.ts';
import { codes } from './messages.ts';
import { textType } from './resources.ts';
import { unknownResource } from './uri.ts';

/** The extension with which agents offer their skills (SEP-2640). */
export const skillsExtension = 'io.modelcontextprotocol/skills';

const pageSize = 50;

const listParams = v.object({ cursor: v.optional(v.string()) });
const getParams = v.object({ uri: v.string() });

interface ServedSkill {
  readonly root: string;
  readonly skill: Skill;
}

/** Whether an agent that is offered may have skills. */
export function hasSkills({ offered, options }: Pick<McpRequest, 'offered' | 'options'>): boolean {
  const agents = [...offered().values()];
  return options.skills !== false && agents.some((agent) => internalsOf(agent).spec.skills);
}

/** The skills of the agents, by their URIs. */
export async function listSkills(request: McpRequest): Promise<Fields> {
  const { cursor = '0' } = parseShape(listParams, request.params, 'request');
  await authorize(request.c, { operation: 'listAgents' });
  const all = await servedSkills(request);
  const from = /^\d{1,6}$/.test(cursor) ? Number(cursor) : all.length;
  const next = from + pageSize;
  return {
    skills: all.slice(from, next).map(entryOf),
    nextCursor: next < all.length ? String(next) : undefined,
  };
}

/** One skill, with the hashes of its files as they are now. */
export async function getSkill(request: McpRequest): Promise<Fields> {
  const { uri } = parseShape(getParams, request.params, 'request');
  const found = await findServed(request, uri);
  if (found?.file.path !== skillFile) {
    throw new RpcError(codes.invalidParams, `There is no skill ${short(uri)} here.`);
  }
  return { skill: entryOf(found) };
}

/** The files of skills with instructions, which clients without the extension see as resources. */
export async function listSkillResources(request: McpRequest): Promise<readonly Fields[]> {
  if (!hasSkills(request)) return [];
  return (await servedSkills(request)).map(({ root, skill: { name, description, files } }) => ({
    uri: `${root}/${skillFile}`,
    name,
    description,
    mimeType: 'text/markdown',
    size: files.find(({ path }) => path === skillFile)?.size,
  }));
}

/** The content of a file of a skill; `undefined` if the URI is not that of a skill. */
export async function readSkillResource(
  request: McpRequest,
  uri: string,
): Promise<Fields | undefined> {
  if (!uri.startsWith('skill://')) return undefined;
  const found = await findServed(request, uri);
  if (found === undefined) throw unknownResource(uri);
  const { skill, file } = found;
  const bytes = await skill.read(file.path, request.c.req.raw.signal);
  const text = textOf(bytes);
  const content =
    text === undefined
      ? { mimeType: 'application/octet-stream', blob: toBase64(bytes) }
      : { mimeType: textType(file.path), text };
  return { contents: [{ uri, ...content }] };
}

/** Every skill that the caller may see, as it is now. Skills of other systems are offered by those. */
async function servedSkills(request: McpRequest): Promise<readonly ServedSkill[]> {
  if (!hasSkills(request)) return [];
  const lists = [...request.offered().values()].map((agent) => skillsOf(request, agent));
  return (await Promise.all(lists)).flat();
}

async function skillsOf(request: McpRequest, agent: Agent): Promise<readonly ServedSkill[]> {
  const { skills } = internalsOf(agent).spec;
  if (skills === undefined) return [];
  try {
    const { caller } = await openAgentCall(request.c, { agent, operation: 'getAgent' });
    const all = await skills(caller.context ?? {});
    return all.flatMap((skill) =>
      skill.origin === undefined ? { root: `skill://${agent.name}/${skill.name}`, skill } : [],
    );
  } catch (error) {
    // The caller may not see this agent.
    if (hasStatus(error, 'PERMISSION_DENIED')) return [];
    throw error;
  }
}

async function findServed(
  request: McpRequest,
  uri: string,
): Promise<(ServedSkill & { readonly file: SkillFile }) | undefined> {
  if (!hasSkills(request)) return undefined;
  const agent = [...request.offered().values()].find(({ name }) =>
    uri.startsWith(`skill://${name}/`),
  );
  const served = agent === undefined ? [] : await skillsOf(request, agent);
  const found = served.find(({ root }) => uri.startsWith(`${root}/`));
  if (found === undefined) return undefined;
  const skill = await found.skill.refresh(request.c.req.raw.signal);
  const file = skill.files.find(({ path }) => uriOf(found.root, path) === uri);
  return file && { ...found, skill, file };
}

function uriOf(root: string, path: string): string {
  return `${root}/${path.split('/').map(encodeURIComponent).join('/')}`;
}

function entryOf({ root, skill }: ServedSkill): Fields {
  return {
    uri: `${root}/${skillFile}`,
    frontmatter: skill.frontMatter,
    resources: skill.files.map(({ path, size, hash }) => ({
      uri: uriOf(root, path),
      digest: `sha256:${hash}`,
      size,
    })),
  };
}
