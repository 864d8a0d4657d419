import { createHash } from 'node:crypto';
import { failedPrecondition, invalid, WaymarkError } from '../core/error.ts';
import type { Json } from '../core/json/json.ts';
import { tool } from '../generate/tool/tool.ts';
import type { ToolContext } from '../generate/tool/tool-context.ts';
import { bytesOf } from './contract/content.ts';
import type { TreeEntry, TreeFile, TreeFolder, WorkspaceFolder } from './contract/contract.ts';
import { entryAt, walkTree } from './contract/tree.ts';

/** The open workspace of the session that calls a tool. */
export function workspaceOf({
  workspace,
}: ToolContext & { readonly workspace?: WorkspaceFolder }): WorkspaceFolder {
  if (workspace !== undefined) return workspace;
  throw failedPrecondition(
    'This tool works on files, and the agent has no `workspace`. Define the agent with one, such as directory("./project").',
  );
}

const maxReadBytes = 64 * 1024;
const maxEditBytes = 4 * 2 ** 20;
const maxEntries = 1_000;

const path = { type: 'string', description: 'Relative to the workspace, such as "src/index.ts".' };

export const readTool = tool(
  {
    name: 'read',
    effect: 'none',
    description:
      'Reads a text file of the workspace, or a part of a long one by line numbers. Returns at most 64 KiB.',
    input: {
      type: 'object',
      properties: {
        path,
        from: { type: 'integer', minimum: 1, description: 'The first line. Default: 1.' },
        lines: { type: 'integer', minimum: 1, description: 'The number of lines. Default: all.' },
      },
      required: ['path'],
      additionalProperties: false,
    },
  },
  async (input, context) => {
    const {
      path: file,
      from = 1,
      lines,
    } = input as {
      readonly path: string;
      readonly from?: number;
      readonly lines?: number;
    };
    const folder = workspaceOf(context);
    return await readLines(folder, plain(file), { from, lines: lines ?? Number.POSITIVE_INFINITY });
  },
);

export const writeTool = tool(
  {
    name: 'write',
    effect: 'workspace',
    description:
      'Writes a text file of the workspace, with the folders above it. Replaces one that exists.',
    input: {
      type: 'object',
      properties: { path, content: { type: 'string' } },
      required: ['path', 'content'],
      additionalProperties: false,
    },
  },
  async (input, context) => {
    const { path: file, content } = input as { readonly path: string; readonly content: string };
    const at = plain(file);
    const folder = workspaceOf(context);
    const before = await entryOf(folder, at, context.signal);
    if (before?.type === 'link' || before?.type === 'folder') throw noFile(at, before);
    await replace(folder, at, { before, text: content, signal: context.signal });
    return { path: at, created: before === undefined };
  },
);

export const editTool = tool(
  {
    name: 'edit',
    effect: 'workspace',
    description:
      'Replaces a text in a file of the workspace. The text must occur exactly once: add lines around it until it does.',
    input: {
      type: 'object',
      properties: {
        path,
        find: { type: 'string', minLength: 1, description: 'The text as it is in the file.' },
        replace: { type: 'string' },
      },
      required: ['path', 'find', 'replace'],
      additionalProperties: false,
    },
  },
  async (input, context) => {
    const {
      path: file,
      find,
      replace: by,
    } = input as {
      readonly path: string;
      readonly find: string;
      readonly replace: string;
    };
    const at = plain(file);
    const folder = workspaceOf(context);
    const before = await entryOf(folder, at, context.signal);
    if (before?.type !== 'file') throw noFile(at, before);
    const bytes = await bytesOf(folder.read(at, { hash: before.hash }), maxEditBytes);
    const text = decode(bytes, at);
    const first = text.indexOf(find);
    if (first < 0) throw invalid(`The text to find does not occur in ${JSON.stringify(at)}.`);
    const count = text.split(find).length - 1;
    if (count > 1 || text.includes(find, first + 1)) {
      throw invalid(
        `The text to find occurs more than once in ${JSON.stringify(at)}. Add lines around it until it occurs once.`,
      );
    }
    const edited = text.slice(0, first) + by + text.slice(first + find.length);
    await replace(folder, at, { before, text: edited, signal: context.signal });
    return { path: at, line: text.slice(0, first).split('\n').length };
  },
);

export const listTool = tool(
  {
    name: 'list',
    effect: 'none',
    description:
      'Lists the files of the workspace, or of a folder of it, with their sizes. Ignored files are left out. Returns at most 1,000.',
    input: {
      type: 'object',
      properties: { path: { ...path, description: 'A folder. Default: the whole workspace.' } },
      additionalProperties: false,
    },
  },
  async (input, context) => {
    const { path: folder } = input as { readonly path?: string };
    const { tree, skipped } = await workspaceOf(context).scan({ signal: context.signal });
    const entries = [...filesBelow(tree, folder)];
    return {
      entries: entries.slice(0, maxEntries).map(([at, entry]): Json => {
        if (entry.type === 'file') return { path: at, size: entry.size };
        return entry.type === 'link' ? { path: at, link: entry.target } : { path: `${at}/` };
      }),
      ...(entries.length > maxEntries && { more: entries.length - maxEntries }),
      ...(skipped.length > 0 && {
        skipped: skipped.slice(0, 20).map(({ path: at, reason }) => ({ path: at, reason })),
      }),
    };
  },
);

/** The files, links and empty folders below a folder; all for the path of the workspace itself. */
export function* filesBelow(
  tree: TreeFolder,
  folder: string | undefined,
): Generator<readonly [path: string, entry: TreeEntry]> {
  const at = folder === undefined || /^(\.|\/|\.\/)?$/.test(folder) ? '' : plain(folder);
  const entry = entryAt(tree, at);
  if (entry === undefined) {
    throw new WaymarkError('NOT_FOUND', `There is no ${JSON.stringify(at)} in the workspace.`);
  }
  if (entry.type !== 'folder') return yield [at, entry];
  for (const each of walkTree(entry, at === '' ? '' : `${at}/`)) {
    if (each[1].type !== 'folder' || each[1].entries.size === 0) yield each;
  }
}

/** A path as models write it: with `./` in front, or `/` at the end. */
function plain(given: string): string {
  return given.replace(/^(\.\/)+/, '').replace(/(?<=[^/])\/$/, '');
}

async function entryOf(
  folder: WorkspaceFolder,
  at: string,
  signal: AbortSignal,
): Promise<TreeEntry | undefined> {
  const { tree } = await folder.scan({ include: [at], signal });
  return entryAt(tree, at);
}

async function replace(
  folder: WorkspaceFolder,
  at: string,
  {
    before,
    text,
    signal,
  }: {
    readonly before: TreeFile | undefined;
    readonly text: string;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const bytes = new TextEncoder().encode(text);
  const after: TreeFile = {
    type: 'file',
    hash: createHash('sha256').update(bytes).digest('hex'),
    size: bytes.length,
    ...(before?.isExecutable && { isExecutable: true }),
  };
  const content = async function* (): AsyncGenerator<Uint8Array> {
    yield bytes;
  };
  await folder.apply([{ path: at, before: before ?? null, after }], { content, signal });
}

function noFile(at: string, entry: TreeEntry | undefined): WaymarkError {
  const name = JSON.stringify(at);
  if (entry === undefined) {
    return new WaymarkError('NOT_FOUND', `There is no file ${name} in the workspace.`);
  }
  return failedPrecondition(
    entry.type === 'link'
      ? `${name} is a link to ${JSON.stringify(entry.target)}. Use the path that it leads to.`
      : `${name} is a folder.`,
  );
}

function decode(bytes: Uint8Array, at: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw failedPrecondition(`${JSON.stringify(at)} is no text in UTF-8.`, { cause });
  }
}

interface Part {
  readonly from: number;
  readonly lines: number;
}

/** Lines of a file, of which only the wanted ones are in memory. */
async function readLines(
  folder: WorkspaceFolder,
  at: string,
  { from, lines }: Part,
): Promise<Json> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let line = 1;
  let text = '';
  let isCut = false as boolean;
  const take = (piece: string): boolean => {
    for (const each of piece.split(/(?<=\n)/)) {
      if (line >= from + lines) return false;
      if (line >= from) {
        const room = maxReadBytes - text.length;
        if (each.length > room) {
          text += each.slice(0, room);
          isCut = true;
          return false;
        }
        text += each;
      }
      if (each.endsWith('\n')) line++;
    }
    return true;
  };
  for await (const piece of folder.read(at)) {
    if (piece.includes(0)) throw failedPrecondition(`${JSON.stringify(at)} is no text.`);
    if (!take(decoder.decode(piece, { stream: true }))) break;
  }
  return { content: text, ...(isCut && { cutAtLine: line }) };
}
