import { isWaymarkError } from '../../../core/error.ts';
import type { Message } from '../../../protocol/message.ts';
import { chainAfter } from '../../../session/history.ts';
import { all, first, type Plan, statement } from '../database/query.ts';
import { parseLineage, selectLineage, viewOf } from './lineage.ts';
import { lostMessages, readMessages } from './read-state.ts';
import { cut, messageRowId, rowsPerBranch, type Segment, type View } from './segments.ts';
import type { TreeRow } from './session-states.ts';
import type { StateContext } from './state-rows.ts';

/** Messages that one statement reads: few enough that turns do not wait for long, and fewer when they are long. */
const pages = { first: 16, most: 64, short: 64 * 1024, long: 256 * 1024 };

/** How many lines of history are remembered at a time: more than there are snapshots that are asked for together. */
const remembered = 256;

/** Branches that do not continue another one. */
const selectRoots = statement<{ row_id: number }>(
  'verify_roots',
  (d) =>
    `SELECT row_id FROM @branches WHERE row_id ${d.integers('$1')} AND parent IS NULL ORDER BY row_id`,
);

type Row = Pick<TreeRow, 'row_id' | 'branch' | 'branch_length' | 'view'>;

/** The beginning of a page: so many messages stand before it, with this chain. */
interface Start {
  readonly length: number;
  readonly chain: string;
}

const beginning: Start = { length: 0, chain: '' };

/** The messages of a branch under a view, also those behind the snapshot that was asked for. */
interface Line {
  readonly segments: readonly Segment[];
  /** How many messages stand before the rows of the branch, and the first of these rows. */
  readonly before: number;
  readonly from: number;
  /** The beginning of each page that was read. */
  readonly starts: Start[];
  /** The chains over the messages of the last page, one for each. */
  page: readonly string[];
  /** How many messages will be asked for; 0 when that is not known. */
  expected: number;
}

/**
 * Works out the chains over histories page by page. Snapshots of one line in the order in which they were written read each message once,
 * and the messages of several short lines are read together.
 */
export class ChainReader {
  readonly #context: StateContext;
  readonly #lines = new Map<string, Line>();
  #pageSize = pages.first;

  constructor(context: StateContext) {
    this.#context = context;
  }

  /** Takes note of snapshots whose chains will be asked for. */
  *expect(rows: readonly Row[]): Plan<void> {
    const lengths = new Map<number, number>();
    for (const { branch, branch_length: length, view } of rows) {
      if (branch === null || view !== null) continue;
      lengths.set(branch, Math.max(lengths.get(branch) ?? 0, length));
    }
    const unknown = [...lengths.keys()].filter((branch) => !this.#lines.has(keyOf(branch, null)));
    if (unknown.length > 0) {
      const roots = yield* all(selectRoots, JSON.stringify(unknown));
      for (const { row_id: branch } of roots) this.#remember(branch, null, undefined);
    }
    for (const [branch, length] of lengths) {
      const line = this.#lines.get(keyOf(branch, null));
      if (line !== undefined) line.expected = line.before + length;
    }
  }

  /** The chain over the messages of a snapshot. */
  *chainOf(row: Row): Plan<string> {
    if (row.branch === null) return '';
    const line = yield* this.#lineOf(row.branch, row);
    const total = line.before + Math.max(0, row.branch_length - line.from);
    if (total === 0) return '';
    for (;;) {
      const start = line.starts.at(-1);
      const chain = start && line.page[total - start.length - 1];
      if (chain !== undefined) return chain;
      yield* this.#readPage(line, total);
    }
  }

  /** Reads the next page, or, when it would be behind `total`, one that was read before. The first pages of other lines are read with a short one. */
  *#readPage(line: Line, total: number): Plan<void> {
    const { starts, segments, page } = line;
    const last = starts.at(-1) ?? beginning;
    const isBehind = total <= last.length;
    const next = { length: last.length + page.length, chain: page.at(-1) ?? last.chain };
    while (isBehind && (starts.at(-1)?.length ?? 0) >= total) starts.pop();
    const start = isBehind ? (starts.pop() ?? beginning) : next;
    const others = start.length === 0 ? this.#shortLines(line) : [];
    if (others.length > 0 && (yield* this.#readTogether([line, ...others]))) return;
    const to = start.length + this.#pageSize;
    const { messages, size } = yield* readMessages(
      [cut(segments, start.length, to)],
      this.#context,
    );
    const [own = []] = messages;
    if (own.length === 0) throw lostMessages();
    turnTo(line, start, own);
    this.#resize(size);
  }

  /** Reads short lines. Gives whether the first of them has been read. */
  *#readTogether(lines: readonly Line[]): Plan<boolean> {
    try {
      const lists = lines.map((line) => cut(line.segments, 0, line.expected));
      const { messages, size } = yield* readMessages(lists, this.#context);
      for (const [at, line] of lines.entries()) turnTo(line, beginning, messages[at] ?? []);
      this.#resize(size);
      return messages[0]?.length !== 0;
    } catch (error) {
      if (!isWaymarkError(error)) throw error;
      // Something in one of them cannot be read: each is read alone.
      for (const line of lines) line.expected = 0;
      return false;
    }
  }

  /** Lines that fit into one page with another one, and that nothing was read of. */
  #shortLines(line: Line): readonly Line[] {
    let room = this.#pageSize - line.expected;
    if (line.expected === 0 || room <= 0) return [];
    const found: Line[] = [];
    for (const other of this.#lines.values()) {
      if (room <= 0) break;
      const { expected, starts } = other;
      if (other === line || expected === 0 || expected > room || starts.length > 0) continue;
      found.push(other);
      room -= expected;
    }
    return found;
  }

  *#lineOf(branch: number, { row_id: rowId, view: viewRowId }: Row): Plan<Line> {
    const line = this.#lines.get(keyOf(branch, viewRowId));
    if (line !== undefined) return line;
    const found = yield* first(selectLineage, rowId);
    return this.#remember(branch, viewRowId, viewOf(parseLineage(found?.lineage ?? null)));
  }

  #remember(branch: number, viewRowId: number | null, view: View | undefined): Line {
    const before = view?.before ?? [];
    const from = view?.from ?? 0;
    const own: Segment = [messageRowId(branch, from), messageRowId(branch, rowsPerBranch)];
    const made: Line = {
      segments: [...before, own],
      before: before.reduce((sum, [low, high]) => sum + high - low, 0),
      from,
      starts: [],
      page: [],
      expected: 0,
    };
    for (const oldest of this.#lines.keys()) {
      if (this.#lines.size < remembered) break;
      this.#lines.delete(oldest);
    }
    this.#lines.set(keyOf(branch, viewRowId), made);
    return made;
  }

  #resize(size: number): void {
    if (size > pages.long) this.#pageSize = Math.max(1, this.#pageSize >> 1);
    else if (size < pages.short) this.#pageSize = Math.min(pages.most, this.#pageSize << 1);
  }
}

function keyOf(branch: number, viewRowId: number | null): string {
  return `${branch} ${viewRowId}`;
}

/** Makes messages the page of a line. Without any, it stays as it was. */
function turnTo(line: Line, start: Start, messages: readonly Message[]): void {
  if (messages.length === 0) return;
  let { chain } = start;
  line.page = messages.map((message) => {
    chain = chainAfter(chain, message);
    return chain;
  });
  line.starts.push(start);
}
