import { appendFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { KeptSpan, SpanLog } from './span-recorder.ts';

/** Spans in a file, one JSON object per line; the last line of a span counts. */
export interface TraceFile extends SpanLog {
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
    mostLength = 64_000_000,
  }: {
    onProblem(error: unknown): void;
    /** A longer file is rewritten without the lines that no longer count. @default 64000000 */
    readonly mostLength?: number;
  },
): Promise<{ readonly file: TraceFile; readonly restored: readonly KeptSpan[] }> {
  const text = await readFile(path, 'utf8').catch(() => '');
  let length = text.length;
  let isBroken = false;
  // The lines of the write that waits for the disk.
  let batch: string[] | undefined;
  let writing: Promise<void> = Promise.resolve();
  // The spans of the rewrite that waits for the disk, and how many rewrites there were.
  let pending: readonly KeptSpan[] = [];
  let rewrites = 0;
  const queue = (work: () => Promise<unknown>): void => {
    const rewrite = rewrites;
    writing = writing.then(async () => {
      // A later rewrite contains everything.
      if (rewrite !== rewrites) return;
      await work().catch((error: unknown) => {
        if (!isBroken) onProblem(error);
        isBroken = true;
      });
    });
  };
  const write = (work: () => Promise<unknown>): void =>
    queue(async () => {
      if (!isBroken) await work();
    });
  const replace = (all: Iterable<KeptSpan>): void => {
    pending = [...all];
    rewrites += 1;
    batch = undefined;
    const estimate = pending.reduce((sum, { content = '' }) => sum + content.length + 500, 0);
    length = estimate;
    // Also after an error: the spans of deleted sessions must leave the file.
    queue(async () => {
      // The text is made here, so that there is only one at a time.
      const whole = pending.map(toLine).join('');
      pending = [];
      length += whole.length - estimate;
      await makeFolder(dirname(path));
      await rewriteFile(path, whole);
      isBroken = false;
    });
  };
  const append = (kept: KeptSpan, all: Iterable<KeptSpan>): void => {
    const line = toLine(kept);
    length += line.length;
    if (length > mostLength) {
      replace(all);
    } else if (batch) {
      batch.push(line);
    } else {
      const lines = [line];
      batch = lines;
      write(() => {
        if (batch === lines) batch = undefined;
        return appendFile(path, lines.join(''), { mode: 0o600 });
      });
    }
  };
  write(() => makeFolder(dirname(path)));
  // A process that was killed may have left half a line.
  if (text !== '' && !text.endsWith('\n')) write(() => appendFile(path, '\n'));
  return { file: { append, replace, close: () => writing }, restored: readSpans(text) };
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
