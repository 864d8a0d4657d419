import { Worker } from 'node:worker_threads';
import { throwIfAborted } from '../core/async/signal.ts';
import { hasStatus, invalid, WaymarkError } from '../core/error.ts';
import { tool } from '../generate/tool/tool.ts';
import { bytesOf } from './contract/content.ts';
import type { WorkspaceFolder } from './contract/contract.ts';
import { filesBelow, workspaceOf } from './file-tools.ts';

const maxMatches = 100;
const maxFileBytes = 2 ** 20;
const maxLength = 300;
/** A pattern may take as long as it likes, but not longer than this for one batch of files. */
const batchMs = 5_000;
const batchBytes = 4 * 2 ** 20;

/** A line that matches. */
interface Match {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

interface Batch {
  readonly files: readonly { readonly path: string; readonly text: string }[];
  readonly room: number;
}

export const searchTool = tool(
  {
    name: 'search',
    effect: 'none',
    description: `Searches the text files of the workspace for a JavaScript regular expression, line by line. Returns at most ${maxMatches} lines.`,
    input: {
      type: 'object',
      properties: {
        pattern: { type: 'string', minLength: 1, maxLength: 1_000 },
        path: { type: 'string', description: 'A file or folder. Default: the whole workspace.' },
        ignoreCase: { type: 'boolean' },
      },
      required: ['pattern'],
      additionalProperties: false,
    },
  },
  async (input, { signal, ...context }) => {
    const {
      pattern,
      path,
      ignoreCase = false,
    } = input as {
      readonly pattern: string;
      readonly path?: string;
      readonly ignoreCase?: boolean;
    };
    const folder = workspaceOf({ signal, ...context });
    const { tree } = await folder.scan({ signal });
    const paths = [...filesBelow(tree, path)].flatMap(([at, entry]) =>
      entry.type === 'file' && entry.size <= maxFileBytes ? [at] : [],
    );
    return await search(folder, { paths, pattern, flags: ignoreCase ? 'iu' : 'u', signal });
  },
);

async function search(
  folder: WorkspaceFolder,
  {
    paths,
    pattern,
    flags,
    signal,
  }: {
    readonly paths: readonly string[];
    readonly pattern: string;
    readonly flags: string;
    readonly signal: AbortSignal;
  },
): Promise<{ readonly matches: Match[]; readonly more?: true }> {
  checkPattern(pattern, flags);
  const matcher = startMatcher(pattern, flags);
  const matches: Match[] = [];
  try {
    for await (const files of batches(folder, paths)) {
      throwIfAborted(signal);
      matches.push(...(await matcher.find({ files, room: maxMatches + 1 - matches.length })));
      if (matches.length > maxMatches) return { matches: matches.slice(0, maxMatches), more: true };
    }
    return { matches };
  } finally {
    matcher.end();
  }
}

function checkPattern(pattern: string, flags: string): void {
  try {
    new RegExp(pattern, flags);
  } catch (cause) {
    throw invalid(`${JSON.stringify(pattern)} is no regular expression.`, { cause });
  }
}

/** The texts of files, some at a time. */
async function* batches(
  folder: WorkspaceFolder,
  paths: readonly string[],
): AsyncGenerator<Batch['files']> {
  let files: { path: string; text: string }[] = [];
  let size = 0;
  for (const path of paths) {
    const text = await textOf(folder, path);
    if (text === undefined) continue;
    files.push({ path, text });
    size += text.length;
    if (size < batchBytes) continue;
    yield files;
    files = [];
    size = 0;
  }
  if (files.length > 0) yield files;
}

/** `undefined` for what is no text, or is gone or larger by now. */
async function textOf(folder: WorkspaceFolder, path: string): Promise<string | undefined> {
  try {
    const bytes = await bytesOf(folder.read(path), maxFileBytes);
    return bytes.includes(0) ? undefined : new TextDecoder().decode(bytes);
  } catch (error) {
    if (hasStatus(error, 'NOT_FOUND', 'PERMISSION_DENIED', 'RESOURCE_EXHAUSTED')) return undefined;
    throw error;
  }
}

// Text, because a bundle has no file for a thread to load.
const code = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { pattern, flags, maxLength } = workerData;
  const expression = new RegExp(pattern, flags);
  parentPort.on('message', ({ files, room }) => {
    const matches = [];
    for (const { path, text } of files) {
      let line = 0;
      for (const each of text.split(/\\r?\\n/)) {
        line++;
        if (matches.length < room && expression.test(each)) matches.push({ path, line, text: each.slice(0, maxLength) });
      }
    }
    parentPort.postMessage(matches);
  });
`;

/**
 * A thread that evaluates the pattern: one that takes exponential time holds up nothing else, and is ended. Where there are no
 * threads, nothing is searched.
 */
function startMatcher(
  pattern: string,
  flags: string,
): { find(batch: Batch): Promise<readonly Match[]>; end(): void } {
  const workerData = { pattern, flags, maxLength };
  const limits = { resourceLimits: { maxOldGenerationSizeMb: 256 }, execArgv: [], env: {} };
  const thread = new Worker(code, { eval: true, workerData, ...limits });
  thread.unref();
  const end = (): void => void thread.terminate();
  return {
    end,
    find: (batch) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          end();
          reject(tooSlow(pattern));
        }, batchMs);
        const settle = (action: () => void) => (): void => {
          clearTimeout(timer);
          thread.removeAllListeners();
          action();
        };
        thread.once('message', (found) => settle(() => resolve(found))());
        thread.once('error', (error) => settle(() => reject(error))());
        thread.postMessage(batch);
      }),
  };
}

function tooSlow(pattern: string): WaymarkError {
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `The pattern ${JSON.stringify(pattern)} takes too long. Use a simpler one, without repetitions inside repetitions.`,
  );
}
