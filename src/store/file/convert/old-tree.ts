import { isJsonObject, type JsonObject } from '../../../core/json/json.ts';
import { systemClock } from '../../../core/time.ts';
import { emptyState, hashState } from '../../../session/session-state.ts';
import type { RunEvent } from '../../contract/store.ts';
import { packEvents, unpackEvents } from '../../rules/event-body.ts';
import { format, toLine } from '../checked-line.ts';
import type { Disk } from '../disk.ts';
import { requestFile, runFile } from '../layout.ts';
import { snapshotFields } from '../rows.ts';
import { toArtifactLine } from '../session-tree.ts';
import { OldArtifacts } from './old-artifacts.ts';
import type { OldLine } from './old-lines.ts';
import type { OldFile, OldRuns } from './old-runs.ts';

/** The parts of a store of an earlier format that belong to a session tree. */
export interface OldTree {
  readonly disk: Disk;
  readonly folder: string;
  readonly runs: OldRuns;
  /** Writes a pointer to the folder. */
  readonly pointer: (name: string) => void;
  /** Puts saved files where today's format has them. */
  readonly linkFiles: (hashes: readonly string[]) => void;
}

/** The lines of a journal in today's format. */
export function* newLines(
  lines: readonly OldLine[],
  tree: OldTree,
): Generator<Buffer | string, void> {
  const converter = new TreeConverter(tree);
  for (const [number, { bytes, content }] of lines.entries()) {
    if (content === undefined) yield Buffer.concat([bytes, newline]);
    else yield* texts(converter.line(content, number === 0));
  }
  for (const each of converter.rest()) {
    if (Buffer.isBuffer(each)) yield Buffer.concat([each, newline]);
    else yield* texts([each]);
  }
  // The empty line at the end of a journal.
  yield newline;
}

const required = ['index', 'turnIndex', 'event', 'status', 'createdAt', 'updatedAt', 'stateHash'];
const optional = snapshotFields.filter((field) => !required.includes(field));
const removed = Object.fromEntries(optional.map((field) => [field, null]));

const newline = Buffer.from('\n');

function* texts(lines: Iterable<object | string>): Generator<string, void> {
  for (const line of lines) yield `${typeof line === 'string' ? line : toLine(line)}\n`;
}

class TreeConverter {
  readonly #tree: OldTree;
  readonly #artifacts: OldArtifacts;
  readonly #written = new Set<string>();
  readonly #snapshots = new Set<string>();
  /** The last run of each session that ended. */
  readonly #ended = new Map<string, unknown>();
  /** The results of runs. */
  readonly #receipts = new Map<string, JsonObject>();
  #head: JsonObject = {};

  constructor(tree: OldTree) {
    this.#tree = tree;
    this.#artifacts = new OldArtifacts(tree.disk, tree.folder);
  }

  /** The lines that take the place of one. */
  *line(line: JsonObject, isHead: boolean): Generator<object | string, void> {
    if (isHead) {
      this.#head = line;
      yield { ...line, waymark: format };
      return;
    }
    if (typeof line.artifact === 'string') {
      this.#written.add(line.artifact);
      this.#tree.linkFiles(listOf(line.files).map(String));
      yield line;
      return;
    }
    const { receipts, ...rest } = line;
    for (const receipt of objectsIn(receipts)) this.#receipts.set(String(receipt.run), receipt);
    const snapshots: JsonObject[] = [];
    for (const snapshot of objectsIn(line.snapshots)) {
      const { id, state } = snapshot;
      // A field that was left out was removed.
      snapshots.push(this.#snapshots.has(String(id)) ? { ...removed, ...snapshot } : snapshot);
      this.#snapshots.add(String(id));
      if (isObject(state)) yield* this.#artifactsOf(listOf(state.artifacts).map(String));
    }
    for (const id of listOf(line.dropped)) this.#snapshots.delete(String(id));
    if (isObject(line.session)) {
      const id = String(line.session.id);
      this.#ended.set(id, line.ended ?? this.#ended.get(id));
    }
    const dead = objectsIn(line.dead).map(({ run, ...letter }) => ({ runId: run, ...letter }));
    yield {
      ...rest,
      ...(snapshots.length > 0 && { snapshots }),
      ...(dead.length > 0 && { dead }),
    };
  }

  /** What was in other files. Damaged lines stay as they are. */
  *rest(): Generator<object | string | Buffer, void> {
    const { runs, pointer } = this.#tree;
    for (const [id, ended] of this.#ended) {
      const session = { id };
      for (const { head } of runs.filesOf('dead', this.#head, id)) {
        const { run, inputsDone, request } = head;
        const since = new Date(Number(head.since)).toISOString();
        yield { session, dead: [{ runId: run, since, inputsDone, request }] };
      }
      const open = runs.filesOf('runs', this.#head, id).filter(({ head }) => head.run !== ended);
      for (const run of open) {
        pointer(runFile(String(run.head.run)));
        yield* this.#run(session, run);
      }
      for (const events of runs.filesOf('events', this.#head, id)) {
        yield* this.#events(
          session,
          events,
          open.some(({ head }) => head.run === events.head.run),
        );
      }
      for (const { id: key, head } of runs.filesOf('requests', this.#head, id)) {
        pointer(requestFile(key));
        const { run, digest } = head;
        const { at = head.at, value } = this.#receipts.get(String(run)) ?? {};
        const receipt = value === undefined ? {} : { receipt: value };
        yield { session, requests: [{ key, runId: run, digest, at, ...receipt }] };
      }
    }
  }

  *#run(session: JsonObject, { head, lines }: OldFile): Generator<object | string | Buffer, void> {
    const id = String(head.run);
    const start = isObject(head.start) ? head.start : undefined;
    const isLost = start !== undefined && !this.#snapshots.has(String(start.id));
    if (isLost) {
      // It was not listed and has been replaced. The run still refers to it.
      const fields = { event: 'turnEnd', status: 'succeeded', stateHash: hashState(emptyState) };
      const { createdAt } = head;
      const row = { ...fields, createdAt, updatedAt: createdAt, ...start, index: -1 };
      yield { session, snapshots: [{ ...row, state: {} }] };
    }
    for (const [number, { bytes, content }] of lines.entries()) {
      if (content === undefined) {
        yield bytes;
        continue;
      }
      const { waymark: _, agent, owner, session: whose, run, ...fields } = content;
      const { base, checkpoint, ...others } = fields;
      // A process died before it wrote the base, so the run continues from the one before.
      const isWritten = base === undefined || this.#snapshots.has(String(base));
      const reached = isWritten && isObject(checkpoint) ? checkpoint : undefined;
      const { artifacts, ...place } = reached ?? {};
      for (const [hash, artifact] of Object.entries(isObject(artifacts) ? artifacts : {})) {
        if (!this.#written.has(hash)) yield toArtifactLine(hash, artifact as never);
        this.#written.add(hash);
      }
      const line = {
        id,
        ...others,
        ...(number === 0 && start !== undefined && { start: start.id }),
        ...(isWritten && base !== undefined && { base }),
        ...(reached && { checkpoint: place }),
      };
      yield { session, run: line };
    }
    if (isLost) yield { session, dropped: [start.id] };
  }

  *#events(
    session: JsonObject,
    { head: { run }, lines }: OldFile,
    isOpen: boolean,
  ): Generator<object | Buffer, void> {
    let endedAt = isOpen ? undefined : new Date(systemClock.now()).toISOString();
    for (const { bytes, content } of lines) {
      if (content === undefined) {
        yield bytes;
        continue;
      }
      const events = objectsIn(content.events).map((event) => ({ run, ...packed(event) }));
      if (events.length > 0) yield { session, events };
      if (typeof content.endedAt === 'string') endedAt = content.endedAt;
    }
    if (endedAt !== undefined) yield { session, ended: run, endedAt };
  }

  *#artifactsOf(hashes: readonly string[]): Generator<string, void> {
    for (const hash of hashes) {
      const artifact = this.#written.has(hash) ? undefined : this.#artifacts.read(hash);
      this.#written.add(hash);
      if (artifact === undefined) continue;
      this.#tree.linkFiles(artifact.files);
      yield toArtifactLine(hash, artifact.content);
    }
  }
}

/** Events as a batch; version 0.1 wrote them one by one. */
function packed(event: JsonObject): object {
  const attempt = Number(event.attempt);
  if (typeof event.body !== 'string') {
    const one = event as unknown as RunEvent;
    return { attempt, last: one.seq, body: packEvents([one]) };
  }
  return { attempt, last: unpackEvents(attempt, event.body).at(-1)?.seq ?? 0, body: event.body };
}

function isObject(value: unknown): value is JsonObject {
  return value !== undefined && isJsonObject(value as JsonObject);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function objectsIn(value: unknown): readonly JsonObject[] {
  return listOf(value).filter(isObject);
}
