import { appendFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Agent } from '../../agent/contract/agent.ts';
import { settled } from '../../core/async/promises.ts';
import { hasStatus } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { addSpanSink } from '../../core/trace.ts';
import type { HandlerOptions } from '../http/handler-options.ts';
import { describeError } from '../http/log.ts';
import type { ServedApp } from '../http/served-app.ts';
import type { ServerContext } from '../http/server-context.ts';
import type { Rerun } from './actions.ts';
import { readStudioFiles } from './files.ts';
import { type MountStudio, mountStudio } from './mount.ts';
import {
  createSpanRecorder,
  type KeptSpan,
  type SpanLog,
  type SpanRecorder,
} from './span-recorder.ts';

// Loaded with the first rerun: a server that only serves needs none of it.
const rerun: Rerun = async (agent, request, options) =>
  await (await import('../../replay/rerun.ts')).rerun(agent, request, options);

/** Reads the built studio and begins to record spans; `close` ends that. */
export async function openStudio(
  from: string | true,
  {
    app,
    clock,
    auth,
    log,
    data,
  }: Pick<ServerContext, 'app' | 'clock' | 'log'> & {
    readonly auth: HandlerOptions['auth'];
    /** The folder for recorded spans; in memory without it. */
    readonly data: string | undefined;
  },
): Promise<{ readonly studio: MountStudio; close(): Promise<void> }> {
  const files = await readStudioFiles(from);
  // The spans of several principals must not mix.
  if (auth) {
    return { studio: (router) => mountStudio(router, { files }), async close() {} };
  }
  const opened =
    data === undefined || isEncrypted(app)
      ? undefined
      : await openTraceFile(join(data, 'traces.jsonl'), {
          onProblem: (error) =>
            log('warn', 'traces are no longer saved', { error: describeError(error) }),
        });
  const spans = createSpanRecorder({
    clock,
    ...(opened && { log: opened.file, restored: opened.restored }),
  });
  const removeSink = addSpanSink(spans);
  const checked = opened === undefined ? undefined : dropDeleted(app, spans);
  return {
    studio: (router) => mountStudio(router, { files, developer: { spans, rerun } }),
    async close() {
      removeSink();
      await checked;
      await opened?.file.close();
    },
  };
}

// Content that the store encrypts must not be on the disk in plain text.
function isEncrypted({ store = {} }: ServedApp): boolean {
  return 'encrypted' in store && store.encrypted === true;
}

// Another process, such as the CLI, may have deleted sessions meanwhile.
async function dropDeleted(app: ServedApp, spans: SpanRecorder): Promise<void> {
  const agents = new Map(app.agents().map((agent) => [agent.name, agent]));
  const deleted = new Set<string>();
  const existing = new Set<string>();
  for (const { sessionId, agent = '', owner } of spans.sessions()) {
    const isDeleted = await isGone(agents.get(agent), sessionId, owner);
    (isDeleted ? deleted : existing).add(sessionId);
  }
  // All at once, because each time the whole file is written. An id may be in use for several agents and owners.
  spans.dropRestored(new Set([...deleted].filter((sessionId) => !existing.has(sessionId))));
}

/** Whether a session is known not to exist: of an agent that is no longer served, it is not known. */
async function isGone(
  agent: Agent | undefined,
  sessionId: string,
  owner: string | undefined,
): Promise<boolean> {
  try {
    const one = { limit: 1, includeOrphaned: true, ...defined({ owner }) };
    const page = await agent?.listSnapshots(sessionId, one);
    return page?.items.length === 0;
  } catch (error) {
    return hasStatus(error, 'NOT_FOUND');
  }
}

/** Spans in a file, one JSON object per line; the last line of a span counts. */
interface TraceFile extends SpanLog {
  /** Resolves when everything is written. */
  close(): Promise<void>;
}

/**
 * Opens a file of spans. Writing never fails the turn that is recorded: `onProblem` gets the first error. From then on the
 * spans are in memory only, until the whole file could be written again.
 */
export async function openTraceFile(
  path: string,
  {
    onProblem,
    maxLength = 64_000_000,
  }: {
    onProblem(error: unknown): void;
    /** A longer file is rewritten without the lines that no longer count. @default 64000000 */
    readonly maxLength?: number;
  },
): Promise<{ readonly file: TraceFile; readonly restored: readonly KeptSpan[] }> {
  const text = await readFile(path, 'utf8').catch(() => '');
  let length = text.length;
  let isBroken = false;
  // The next write stores all spans, if they are to be written again, and lines behind them.
  let whole: readonly KeptSpan[] | undefined;
  // A process that was killed may have left half a line.
  let lines = text === '' || text.endsWith('\n') ? [] : ['\n'];
  let writing: Promise<void> | undefined;
  const writeNext = async (): Promise<void> => {
    const all = whole;
    const added = lines.join('');
    whole = undefined;
    lines = [];
    await makeFolder(dirname(path));
    // Also after an error: the spans of deleted sessions must leave the file.
    if (all !== undefined) {
      await rewriteFile(path, all.map(toLine).join('') + added);
      isBroken = false;
    } else if (!isBroken && added !== '') await appendFile(path, added, { mode: 0o600 });
  };
  const writeAll = async (): Promise<void> => {
    do {
      await writeNext().catch((error: unknown) => {
        if (!isBroken) onProblem(error);
        isBroken = true;
      });
    } while (whole !== undefined || lines.length > 0);
    writing = undefined;
  };
  const write = (): void => {
    writing ??= settled.then(writeAll);
  };
  const replace = (all: Iterable<KeptSpan>): void => {
    whole = [...all];
    lines = [];
    // An estimate: the text is made when it is written, so that there is only one at a time.
    length = whole.reduce((sum, { content = '' }) => sum + content.length + 500, 0);
    write();
  };
  const append = (kept: KeptSpan, all: Iterable<KeptSpan>): void => {
    const line = toLine(kept);
    length += line.length;
    lines.push(line);
    if (length > maxLength) replace(all);
    else write();
  };
  write();
  return {
    file: { append, replace, close: async () => await writing },
    restored: readSpans(text),
  };
}

/** Makes the folder, if there is none; a new one is not for version control. */
async function makeFolder(folder: string): Promise<void> {
  if ((await mkdir(folder, { recursive: true })) === undefined) return;
  await writeFile(join(folder, '.gitignore'), '*\n', { flag: 'wx' }).catch(() => {});
}

async function rewriteFile(path: string, text: string): Promise<void> {
  const next = `${path}.new`;
  try {
    await writeFile(next, text, { mode: 0o600 });
    await rename(next, path);
  } catch (error) {
    await rm(next, { force: true }).catch(() => {});
    throw error;
  }
}

function toLine({ content, ...kept }: KeptSpan): string {
  const head = JSON.stringify({ format: 1, ...kept });
  return content === undefined ? `${head}\n` : `${head.slice(0, -1)},"content":${content}}\n`;
}

function readSpans(text: string): readonly KeptSpan[] {
  const latest = new Map<string, KeptSpan>();
  let lastTime = 0;
  for (const line of text.split('\n')) {
    const kept = readLine(line);
    if (!kept) continue;
    latest.set(kept.span.spanId, kept);
    lastTime = Math.max(lastTime, kept.endedAt ?? kept.startedAt);
  }
  return [...latest.values()].map((kept) =>
    kept.endedAt === undefined ? unfinished(kept, lastTime) : kept,
  );
}

function readLine(line: string): KeptSpan | undefined {
  try {
    const { format, content, ...kept } = JSON.parse(line);
    if (format !== 1 || typeof kept.span?.spanId !== 'string') return undefined;
    return { ...kept, ...(content !== undefined && { content: JSON.stringify(content) }) };
  } catch {
    // Half a line, or none.
    return undefined;
  }
}

function unfinished({ span, ...kept }: KeptSpan, lastTime: number): KeptSpan {
  const message = 'The server stopped before this ended.';
  const error = { status: 'UNAVAILABLE', message, text: message } as const;
  return { ...kept, span: { error, ...span }, endedAt: Math.max(lastTime, kept.startedAt) };
}
