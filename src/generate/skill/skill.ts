import * as v from 'valibot';
import { invalid, messageOf, type WaymarkError } from '../../core/error.ts';
import { sha256 } from '../../core/json/hash.ts';
import { isJsonObject, type JsonObject, toJson } from '../../core/json/json.ts';
import { createSha256 } from '../../core/platform.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { ToolSourceScope } from '../tool/tool-source.ts';

/** A file of a skill. */
export interface SkillFile {
  /** Relative to the folder of the skill, with `/` between folders. */
  readonly path: string;
  /** Number of bytes. */
  readonly size: number;
  /** SHA-256 of the content, in lower-case hex. */
  readonly hash: string;
}

/** Instructions for one kind of task, with the files that they refer to. */
export interface Skill {
  /** The name under which a model loads it. A skill of another system has the name of its source before it: `docs/refunds`. */
  readonly name: string;
  /** What the skill does, and when to use it. */
  readonly description: string;
  /** The front matter of `SKILL.md`. */
  readonly frontMatter: JsonObject;
  /** All of its files, `SKILL.md` included. */
  readonly files: readonly SkillFile[];
  /** The system that serves it, such as an MCP server. Its scripts are never run. @default your own */
  readonly origin?: string;
  /** The absolute path of its folder, if it is on this machine. */
  readonly folder?: string;
  /** The content of one of its files. */
  read(path: string, signal?: AbortSignal): Promise<Uint8Array>;
  /** The skill as it is now. */
  refresh(signal?: AbortSignal): Promise<Skill>;
}

/** Skills that are not known when an agent is defined, such as those of an MCP server. */
export interface SkillSource {
  /** The name, for errors and logs. */
  readonly name: string;
  /**
   * The skills of one request. Called for each turn, and by `ready()`: keep what takes long to find. To reject with INVALID_ARGUMENT fails
   * the turn. After any other failure, the turn continues without these skills, and `onError` is called.
   */
  listSkills(scope: ToolSourceScope): Promise<readonly Skill[]>;
  /** A skill that is not in the list; `undefined` if there is none. */
  findSkill?(name: string, scope: ToolSourceScope): Promise<Skill | undefined>;
}

/** The limits of a skill, which are those of the MCP extension where it has some, and the number of skills of one source. */
export const skillLimits = {
  files: 512,
  bytes: 16 * 2 ** 20,
  bodyBytes: 256 * 1024,
  frontMatterLength: 16_384,
  perSource: 256,
} as const;

/** The file with the front matter and the instructions. */
export const skillFile = 'SKILL.md';

/** The content of a `SKILL.md`. */
export interface SkillText {
  readonly frontMatter: JsonObject;
  readonly instructions: string;
}

const text = v.pipe(v.string(), v.trim(), v.minLength(1, 'Expected a text'));

const frontMatterShape = v.looseObject({
  name: v.pipe(
    v.string(),
    v.maxLength(64, 'Expected at most 64 characters'),
    v.regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'Expected lower-case letters, digits and single hyphens'),
  ),
  description: v.pipe(text, v.maxLength(1024, 'Expected at most 1,024 characters')),
  license: v.optional(v.string()),
  compatibility: v.optional(v.pipe(text, v.maxLength(500, 'Expected at most 500 characters'))),
  metadata: v.optional(v.record(v.string(), v.unknown())),
  'allowed-tools': v.optional(v.union([v.string(), v.array(v.string())])),
});

/** Checks the front matter of a skill, whose folder must be called like it; `what` names it in errors. */
export function checkFrontMatter(
  frontMatter: unknown,
  folder: string,
  what: string,
): { readonly name: string; readonly description: string } {
  const { name, description } = parseShape(
    frontMatterShape,
    frontMatter,
    `front matter of ${what}`,
  );
  if (name === folder) return { name, description: description.replaceAll(/\s+/g, ' ') };
  throw invalid(
    `The front matter of ${what} has the name "${name}", and its folder is called "${folder}". Give both the same name.`,
  );
}

/** Reads a `SKILL.md`: front matter as YAML, then the instructions. */
export async function parseSkillText(bytes: Uint8Array, what: string): Promise<SkillText> {
  checkBodySize(bytes.length, `${skillFile} of ${what}`);
  const source = textOf(bytes);
  if (source === undefined) throw invalid(`${skillFile} of ${what} is not UTF-8 text.`);
  const match = /^---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|$)/ms.exec(source);
  if (match === null || match.index > 0) {
    throw invalid(
      `${skillFile} of ${what} has no front matter. Begin the file with "---", the fields \`name\` and \`description\`, and "---".`,
    );
  }
  const [whole, yaml = ''] = match;
  if (yaml.length > skillLimits.frontMatterLength) {
    throw invalid(
      `The front matter of ${what} has ${yaml.length} characters; the limit is ${skillLimits.frontMatterLength}. Move text into the body.`,
    );
  }
  const frontMatter = await parseYaml(yaml, what);
  return { frontMatter, instructions: source.slice(whole.length).trim() };
}

/** Refuses a `SKILL.md` that no model should get. */
export function checkBodySize(size: number, what: string): void {
  if (size <= skillLimits.bodyBytes) return;
  throw invalid(
    `${what} has ${size} bytes; the limit is ${skillLimits.bodyBytes}. Move parts of it into other files, which are loaded one by one.`,
  );
}

// Loaded with the first skill: it is larger than everything else that reads skills.
async function parseYaml(source: string, what: string): Promise<JsonObject> {
  const { parseDocument } = await import('yaml');
  const document = parseDocument(source, { schema: 'core', logLevel: 'silent', stringKeys: true });
  const [error] = document.errors;
  if (error !== undefined) throw badYaml(error, what);
  try {
    const value = toJson(document.toJS({ maxAliasCount: 100 }), 'The front matter');
    if (isJsonObject(value)) return value;
  } catch (cause) {
    throw badYaml(cause, what);
  }
  throw invalid(`The front matter of ${what} must have fields, such as \`name: my-skill\`.`);
}

function badYaml(cause: unknown, what: string): WaymarkError {
  const [reason = ''] = messageOf(cause).split('\n');
  return invalid(
    `The front matter of ${what} is not valid YAML: ${reason.replace(/[.:]$/, '')}. Quote texts that contain ": ".`,
    { cause },
  );
}

/** The text of bytes; `undefined` if they are none. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** SHA-256 of bytes, in lower-case hex. */
export function hashOf(bytes: Uint8Array): string {
  const hash = createSha256();
  hash.update(bytes);
  return hash.hex();
}

/** The content hash of a skill: the same for the same files, wherever they come from. */
export function versionOf({ files }: Pick<Skill, 'files'>): string {
  const facts = files.map(({ path, hash }) => [path, hash] as const);
  return sha256(JSON.stringify(facts.toSorted(([a], [b]) => (a < b ? -1 : 1))));
}

/** The content of a file as the skill lists it; `undefined` if it is another one by now. */
export async function readListed(
  skill: Skill,
  file: SkillFile,
  signal?: AbortSignal,
): Promise<Uint8Array | undefined> {
  const bytes = await skill.read(file.path, signal);
  return bytes.length === file.size && hashOf(bytes) === file.hash ? bytes : undefined;
}
