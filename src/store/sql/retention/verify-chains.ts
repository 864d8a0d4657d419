import { isWaymarkError } from '../../../core/error.ts';
import type { Message } from '../../../protocol/message.ts';
import { chainAfter } from '../../../session/history.ts';
import { all, first, type Plan, statement } from '../database/query.ts';
import { parseLineage, selectLineage, viewOf } from '../history/lineage.ts';
import { readMessages } from '../history/read-state.ts';
import { cut, messageRowId, rowsPerBranch, type Segment } from '../history/segments.ts';
import type { TreeRow } from '../history/session-states.ts';
import type { StateContext } from '../history/state-rows.ts';

/** Messages that one statement reads: few enough that turns do not wait for long, and fewer when they are long. */
const pages = { first: 16, most: 64, short: 64 * 1024, long: 256 * 1024 };

/** Branches that do not continue another one. */
const selectRoots = statement<{ row_id: number }>(
  'verify_roots',
  (d) => `SELECT row_id FROM @branches WHERE row_id ${d.integers('$1')} AND parent IS NULL`,
);

type Row = Pick<TreeRow, 'row_id' | 'branch' | 'branch_length' | 'view'>;

/** The chain over the first messages of a line. */
interface Mark {
  readonly length: number;
  readonly chain: string;
}

/** The messages of a branch under a view, also those behind the snapshots that were asked for. */
interface Line {
  readonly segments: readonly Segment[];
  /** How many messages stand before the rows of the branch, and the first of these rows. */
  readonly before: number;
  readonly from: number;
  /** The end of each page that was read, in order. */
  readonly marks: Mark[];
}

/** A line while the messages of some of its snapshots are read. */
interface Walk {
  readonly line: Line;
  /** How many messages each snapshot has, by its row. */
  readonly lengths: ReadonlyMap<number, number>;
  /** The chains over that many messages. */
  readonly chains: Map<number, string>;
  at: Mark;
  /** How many messages to read; 0 when one of them cannot be read. */
  end: number;
}

/** A part of a page: the messages of a line up to a place. */
interface Piece {
  readonly walk: Walk;
  readonly to: number;
}

/**
 * Works out the chains over histories page by page. Snapshots of one line in the order in which they were written read each message once,
 * and the messages of several short lines are read together.
 */
export class ChainReader {
  readonly #context: StateContext;
  #lines: ReadonlyMap<string, Line> = new Map();
  #pageSize = pages.first;

  constructor(context: StateContext) {
    this.#context = context;
  }

  /** The chains over the messages of some snapshots, by their rows. Chains that cannot be worked out are missing. */
  *chainsOf(rows: readonly Row[]): Plan<ReadonlyMap<number, string>> {
    const byLine = Map.groupBy(rows, lineKey);
    const branches = rows.filter((row) => !this.#lines.has(lineKey(row))).map((row) => row.branch);
    const list = JSON.stringify([...new Set(branches)].filter((branch) => branch !== null));
    const roots = new Set((yield* all(selectRoots, list)).map((row) => row.row_id));
    const lines = new Map<string, Line>();
    const walks: Walk[] = [];
    for (const [key, some] of byLine) {
      const line = this.#lines.get(key) ?? (yield* lineAmong(some, roots));
      if (line === undefined) continue;
      lines.set(key, line);
      walks.push(walkOn(line, some));
    }
    this.#lines = lines;
    for (let left = walks.filter(isOpen); left.length > 0; left = left.filter(isOpen)) {
      yield* this.#readPage(this.#pageOf(left));
    }
    const found = new Map<number, string>();
    for (const { lengths, chains } of walks) {
      for (const [rowId, length] of lengths) {
        const chain = chains.get(length);
        if (chain !== undefined) found.set(rowId, chain);
      }
    }
    return found;
  }

  #pageOf(walks: readonly Walk[]): readonly Piece[] {
    const page: Piece[] = [];
    let room = this.#pageSize;
    for (const walk of walks) {
      if (room <= 0) break;
      const to = Math.min(walk.end, walk.at.length + room);
      page.push({ walk, to });
      room -= to - walk.at.length;
    }
    return page;
  }

  *#readPage(page: readonly Piece[]): Plan<void> {
    const lists = page.map(({ walk, to }) => cut(walk.line.segments, walk.at.length, to));
    try {
      const { messages, size } = yield* readMessages(lists, this.#context);
      for (const [at, piece] of page.entries()) advance(piece, messages[at] ?? []);
      if (size > pages.long) this.#pageSize = Math.max(1, this.#pageSize >> 1);
      else if (size < pages.short) this.#pageSize = Math.min(pages.most, this.#pageSize << 1);
    } catch (error) {
      if (!isWaymarkError(error)) throw error;
      const [first] = page;
      if (page.length === 1 && first !== undefined) first.walk.end = 0;
      // Something in one of the lines cannot be read: each is read alone.
      else for (const piece of page) yield* this.#readPage([piece]);
    }
  }
}

function lineKey({ branch, view }: Row): string {
  return `${branch} ${view}`;
}

/** The line of some snapshots; `undefined` when it cannot be read. */
function* lineAmong([row]: readonly Row[], roots: ReadonlySet<number>): Plan<Line | undefined> {
  try {
    return row && (yield* lineOf(row, roots));
  } catch (error) {
    if (isWaymarkError(error) || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function* lineOf({ row_id: rowId, branch, view }: Row, roots: ReadonlySet<number>): Plan<Line> {
  if (branch === null) return { segments: [], before: 0, from: 0, marks: [] };
  const isRoot = view === null && roots.has(branch);
  const lineage = isRoot ? null : ((yield* first(selectLineage, rowId))?.lineage ?? null);
  const { before = [], from = 0 } = viewOf(parseLineage(lineage)) ?? {};
  const own: Segment = [messageRowId(branch, from), messageRowId(branch, rowsPerBranch)];
  return {
    segments: [...before, own],
    before: before.reduce((sum, [low, high]) => sum + high - low, 0),
    from,
    marks: [],
  };
}

function walkOn(line: Line, rows: readonly Row[]): Walk {
  const lengthOf = ({ branch, branch_length: length }: Row): number =>
    branch === null ? 0 : line.before + Math.max(0, length - line.from);
  const lengths = new Map(rows.map((row) => [row.row_id, lengthOf(row)]));
  const shortest = Math.min(...lengths.values());
  const at = line.marks.findLast((mark) => mark.length <= shortest) ?? { length: 0, chain: '' };
  const chains = new Map([[at.length, at.chain]]);
  return { line, lengths, chains, at, end: Math.max(...lengths.values()) };
}

function isOpen({ at, end }: Walk): boolean {
  return at.length < end;
}

/** Goes on to the end of a piece, if none of its messages is missing. */
function advance({ walk, to }: Piece, messages: readonly Message[]): void {
  let { length, chain } = walk.at;
  if (length + messages.length < to) {
    walk.end = 0;
    return;
  }
  const asked = new Set(walk.lengths.values());
  for (const message of messages) {
    chain = chainAfter(chain, message);
    length++;
    if (asked.has(length)) walk.chains.set(length, chain);
  }
  walk.at = { length, chain };
  const { marks } = walk.line;
  if (length > (marks.at(-1)?.length ?? 0)) marks.push(walk.at);
}
