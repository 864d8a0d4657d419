import { chainAfter } from '../../../session/history.ts';
import { first, type Plan } from '../database/query.ts';
import { parseLineage, selectLineage, viewOf } from './lineage.ts';
import { lostMessages, readMessages } from './read-state.ts';
import { cut, messageRowId, rowsPerBranch, type Segment } from './segments.ts';
import type { TreeRow } from './session-states.ts';
import type { StateContext } from './state-rows.ts';

/** Messages that one statement reads: few enough that turns do not wait for long, and fewer when they are long. */
const pages = { first: 16, most: 128, short: 64 * 1024, long: 256 * 1024 };

/** How many lines of history are remembered at a time. */
const remembered = 32;

type Row = Pick<TreeRow, 'row_id' | 'branch' | 'branch_length' | 'view'>;

/** The messages of a branch under a view, also those behind the snapshot that was asked for. */
interface Line {
  readonly segments: readonly Segment[];
  /** How many messages stand before the rows of the branch, and the first of these rows. */
  readonly before: number;
  readonly from: number;
  /** The chain over so many messages, at the beginning of each page that was read. */
  readonly starts: { readonly length: number; readonly chain: string }[];
  /** The chains over the messages of the last page, one for each. */
  page: readonly string[];
}

/** Works out the chains over histories page by page. Snapshots of one line in the order in which they were written read each message once. */
export class ChainReader {
  readonly #context: StateContext;
  readonly #lines = new Map<string, Line>();
  #pageSize = pages.first;

  constructor(context: StateContext) {
    this.#context = context;
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

  /** Reads the next page, or, when it would be behind `total`, one that was read before. */
  *#readPage(line: Line, total: number): Plan<void> {
    const { starts, segments, page } = line;
    const last = starts.at(-1) ?? { length: 0, chain: '' };
    const isBehind = total <= last.length;
    const next = { length: last.length + page.length, chain: page.at(-1) ?? last.chain };
    while (isBehind && (starts.at(-1)?.length ?? 0) >= total) starts.pop();
    const start = isBehind ? (starts.pop() ?? { length: 0, chain: '' }) : next;
    const to = start.length + this.#pageSize;
    const { messages, size } = yield* readMessages(cut(segments, start.length, to), this.#context);
    if (messages.length === 0) throw lostMessages();
    let { chain } = start;
    line.page = messages.map((message) => {
      chain = chainAfter(chain, message);
      return chain;
    });
    starts.push(start);
    this.#resize(size);
  }

  *#lineOf(branch: number, { row_id: rowId, view: viewRowId }: Row): Plan<Line> {
    const key = `${branch} ${viewRowId}`;
    const line = this.#lines.get(key);
    if (line !== undefined) return line;
    const found = yield* first(selectLineage, rowId);
    const view = viewOf(parseLineage(found?.lineage ?? null));
    const before = view?.before ?? [];
    const from = view?.from ?? 0;
    const own: Segment = [messageRowId(branch, from), messageRowId(branch, rowsPerBranch)];
    const made: Line = {
      segments: [...before, own],
      before: before.reduce((sum, [low, high]) => sum + high - low, 0),
      from,
      starts: [],
      page: [],
    };
    for (const oldest of this.#lines.keys()) {
      if (this.#lines.size < remembered) break;
      this.#lines.delete(oldest);
    }
    this.#lines.set(key, made);
    return made;
  }

  #resize(size: number): void {
    if (size > pages.long) this.#pageSize = Math.max(1, this.#pageSize >> 1);
    else if (size < pages.short) this.#pageSize = Math.min(pages.most, this.#pageSize << 1);
  }
}
