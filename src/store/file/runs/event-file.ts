import * as v from 'valibot';
import type { NewId } from '../../../core/id.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import type { RunEvent } from '../../contract/store.ts';
import { appendTo } from '../../memory/events.ts';
import { KeptEvents } from '../../memory/kept-events.ts';
import type { StoredEvents, Tables } from '../../memory/tables.ts';
import { unpackEvents } from '../../rules/event-body.ts';
import type { Disk } from '../directory/disk.ts';
import { format } from '../directory/format.ts';
import { eventsFile } from '../directory/layout.ts';
import { Journal, type JournalReader } from '../sessions/journal.ts';
import { iso, time } from '../sessions/journal-line.ts';
import type { FindHome } from './run-file.ts';

const eventsHead = v.object({
  waymark: v.number(),
  id: v.string(),
  agent: v.string(),
  owner: v.optional(v.string()),
  session: v.string(),
  run: v.string(),
});

const packedEvents = v.object({ attempt: v.number(), body: v.string() });

const eventsLine = v.object({
  // Packed, or one by one, as they once were.
  events: v.optional(v.array(v.union([packedEvents, v.custom<RunEvent>(isEvent)]))),
  endedAt: v.optional(time),
});

/** What a run has streamed: there until a while after its end. */
export class EventFile implements JournalReader {
  readonly runId: string;
  readonly journal: Journal;
  readonly #tables: Tables;
  readonly #find: FindHome;
  #log: StoredEvents | undefined;
  #saved = 0;
  #endedAt: number | undefined;

  constructor(disk: Disk, tables: Tables, runId: string, find: FindHome) {
    this.runId = runId;
    this.journal = new Journal(disk, eventsFile(runId), this, { isPrivate: true });
    this.#tables = tables;
    this.#find = find;
  }

  /** The events, when there are any and their session is still there. */
  get log(): StoredEvents | undefined {
    return this.#log;
  }

  /** Makes the tables say what the file says. */
  refresh(): void {
    this.journal.refresh();
  }

  /** Writes what is new. */
  save(newId: NewId): void {
    const log = this.#tables.events.get(this.runId);
    if (log === undefined) return;
    const lines: object[] = this.journal.exists ? [] : [this.#newHead(log, newId)];
    const events = log.kept
      .batchesFrom(this.#saved)
      .map(({ attempt, body }) => ({ attempt, body }));
    const endedAt = this.#tables.endedAt.get(this.runId);
    if (events.length > 0 || endedAt !== this.#endedAt) {
      lines.push({
        ...(events.length === 0 ? {} : { events }),
        ...(endedAt === undefined ? {} : { endedAt: iso(endedAt) }),
      });
    }
    if (lines.length === 0) return;
    this.journal.append(lines, { durable: false });
    this.#log = log;
    this.#saved = log.kept.count;
    this.#endedAt = endedAt;
  }

  remove(): void {
    this.journal.remove();
  }

  reset(): void {
    if (this.#log !== undefined && this.#tables.events.get(this.runId) === this.#log) {
      this.#tables.events.delete(this.runId);
      this.#tables.endedAt.delete(this.runId);
    }
    this.#log = undefined;
    this.#saved = 0;
    this.#endedAt = undefined;
  }

  head(line: JsonObject): void {
    const { agent, owner, session, run } = v.parse(eventsHead, line);
    const home = this.#find(owner === undefined ? { agent } : { agent, owner }, session);
    if (home === undefined || run !== this.runId) return;
    this.#log = { session: home.session, kept: new KeptEvents() };
    this.#tables.events.set(run, this.#log);
  }

  line(line: JsonObject): void {
    const { events: given = [], endedAt } = v.parse(eventsLine, line);
    const events = given.flatMap((each) =>
      'body' in each ? unpackEvents(each.attempt, each.body) : [each],
    );
    const log = this.#log;
    if (log === undefined) return;
    const run = this.#tables.runs.get(this.runId);
    if (run === undefined) log.kept.append(events);
    else appendTo(this.#tables, run, events);
    this.#saved = log.kept.count;
    if (endedAt === undefined) return;
    this.#endedAt = endedAt;
    this.#tables.endedAt.set(this.runId, endedAt);
    sortByTime(this.#tables.endedAt);
  }

  #newHead({ session: { scope, id: session } }: StoredEvents, newId: NewId): object {
    return { waymark: format, id: newId(), ...scope, session, run: this.runId };
  }
}

function isEvent(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'seq' in value && 'chunk' in value;
}

// Files are read in any order; the tables want those that ended first at the beginning.
function sortByTime(times: Map<string, number>): void {
  const sorted = [...times].sort(([, a], [, b]) => a - b);
  times.clear();
  for (const [runId, at] of sorted) times.set(runId, at);
}
