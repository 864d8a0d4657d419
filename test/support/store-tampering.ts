import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toJson } from '../../src/core/json/json.ts';
import type { Artifact } from '../../src/protocol/state.ts';
import { hashState } from '../../src/session/session-state.ts';
import type { Scope, Store } from '../../src/store/contract/store.ts';
import type { Encryption, SqlStore } from '../../src/store/sqlite/index.ts';
import { exchange } from '../../src/testing/store-contract/kit.ts';
import { must } from './store-life.ts';
import { type Readout, readout } from './store-readout.ts';
import { type Change, createTurns, text } from './store-workload.ts';

/** A database with direct write access, bypassing the store. */
export interface OpenDatabase {
  open(encryption?: Encryption): SqlStore;
  /** Runs statements as an attacker with write access; `@name` is a table. */
  sql(statements: string): Promise<void>;
  /** Another database with the same content; no store has this one open. */
  copy(): Promise<OpenDatabase>;
  close(): Promise<void>;
}

const key = new Uint8Array(32).fill(7);
const ada: Scope = { agent: 'chat', owner: 'ada' };
const eve: Scope = { agent: 'chat', owner: 'eve' };

const said = (words: string): Change => {
  return (state, turn) => {
    const artifact: Artifact = {
      name: 'a',
      parts: [
        { text: `${words} part ${turn} `.repeat(60) },
        { media: { url: `data:;base64,${btoa(`${words} data ${turn} `.repeat(500))}` } },
      ],
    };
    return {
      state: {
        history: state.history.append([text('user', `${words} ${turn}`)]),
        custom: toJson({ note: `${words} note ${turn}`, long: 'x'.repeat(600) }, 'custom'),
        artifacts: toJson([artifact], 'artifacts') as unknown as readonly Artifact[],
      },
    };
  };
};

/** Two owners, each with a session `s` of three turns, a title, a label, a failed turn, and an open run with events. */
async function fill(store: Store): Promise<void> {
  for (const [scope, words] of [
    [ada, 'secret'],
    [eve, 'dull'],
  ] as const) {
    const turns = createTurns(store, scope);
    await turns.take(3, said(words));
    await turns.fail(said(words));
    const { sessionId } = turns;
    const change = { title: `${words} title`, metadata: { about: words } };
    await store.timeline?.updateSession(scope, sessionId, change);
    await store.timeline?.label(scope, must(turns.base()).snapshotId, `${words} label`);
    const run = must(
      await store.runs?.claim(scope, {
        runId: `01900000-0000-7000-8000-00000000000${scope === ada ? 1 : 2}`,
        sessionId,
        from: 'head',
        mode: 'accepted',
        inputs: [{ message: text('user', `${words} input`) }],
        ttl: 1,
        worker: 'w',
      }),
    );
    await store.events?.append(run, [{ attempt: 1, seq: 0, chunk: { status: `${words} event` } }]);
    await store.runs?.saveStep(run, 'fetch', `${words} result`);
  }
}

const adas = "(SELECT row_id FROM @sessions WHERE owner = 'ada')";
const eves = "(SELECT row_id FROM @sessions WHERE owner = 'eve')";
const snapshotOf = (session: string, idx: number): string =>
  `(SELECT row_id FROM @snapshots WHERE session = ${session} AND idx = ${idx})`;
const idOf = (no: string, column: string): string =>
  `(SELECT x.${column} FROM @snapshots x WHERE x.row_id = ${no})`;
const copy = (table: string, column: string, from: string, to: string): string =>
  `UPDATE @${table} SET ${column} = (SELECT x.${column} FROM @${table} x WHERE ${from}) WHERE ${to}`;
const stateColumns = [
  'branch',
  'branch_length',
  'view',
  'length',
  'custom',
  'artifacts',
  'state_hash',
];
const firstRow = (session: string): string =>
  `(SELECT MIN(b.row_id) FROM @branches b WHERE b.session = ${session}) * 4194304`;

const data = (which: 'MIN' | 'MAX'): string =>
  `(SELECT ${which}(b.row_id) FROM @blobs b WHERE b.bytes IS NOT NULL)`;

/** Attacks with write access. Every value that can still be read must be as it was written, or be rejected. */
const attacks: Readonly<Record<string, string>> = {
  'a message of another session': copy(
    'messages',
    'body',
    `x.id = ${firstRow(adas)}`,
    `id = ${firstRow(eves)}`,
  ),
  'two messages that change places': `
    UPDATE @messages SET id = -1 WHERE id = ${firstRow(eves)};
    UPDATE @messages SET id = ${firstRow(eves)} WHERE id = ${firstRow(eves)} + 1;
    UPDATE @messages SET id = ${firstRow(eves)} + 1 WHERE id = -1`,
  'a document of another session': `
    UPDATE @snapshots SET custom = ${idOf(snapshotOf(adas, 1), 'custom')} WHERE row_id = ${snapshotOf(eves, 1)}`,
  'the state of another session': stateColumns
    .map(
      (column) =>
        `UPDATE @snapshots SET ${column} = ${idOf(snapshotOf(adas, 2), column)} WHERE row_id = ${snapshotOf(eves, 2)}`,
    )
    .join(';'),
  'an older state under a newer id': stateColumns
    .map(
      (column) =>
        `UPDATE @snapshots SET ${column} = ${idOf(snapshotOf(eves, 0), column)} WHERE row_id = ${snapshotOf(eves, 2)}`,
    )
    .join(';'),
  'a snapshot that moves to another session': `
    UPDATE @sessions SET head = ${snapshotOf(adas, 2)} WHERE row_id = ${eves};
    UPDATE @snapshots SET session = ${eves}, idx = 9 WHERE row_id = ${snapshotOf(adas, 2)}`,
  'a session under another owner': `
    UPDATE @sessions SET owner = 'nobody' WHERE owner = 'eve';
    UPDATE @sessions SET owner = 'eve' WHERE owner = 'ada'`,
  'the title of another session': copy('sessions', 'title', "x.owner = 'ada'", "owner = 'eve'"),
  'metadata as a title': "UPDATE @sessions SET title = metadata WHERE owner = 'eve'",
  'the label of another snapshot': `
    UPDATE @snapshots SET label = ${idOf(snapshotOf(adas, 2), 'label')} WHERE row_id = ${snapshotOf(eves, 1)}`,
  'the error of another snapshot': `
    UPDATE @snapshots SET error = ${idOf(snapshotOf(adas, 2), 'label')} WHERE row_id = ${snapshotOf(eves, 3)}`,
  'the request of another run': copy('runs', 'request', `x.session = ${adas}`, `session = ${eves}`),
  'the events of another run': copy(
    'journal',
    'body',
    `x.session = ${adas} AND x.attempt = 1`,
    `session = ${eves} AND attempt = 1`,
  ),
  'events under another number': `UPDATE @journal SET seq = 5, last = 5 WHERE session = ${eves} AND attempt = 1`,
  'a step as events': `
    UPDATE @journal SET attempt = 2, seq = 0, last = 0 WHERE session = ${eves} AND attempt = -1`,
  'data of another session': copy(
    'blobs',
    'bytes',
    `x.row_id = ${data('MIN')}`,
    `row_id = ${data('MAX')}`,
  ),
  'data as a document': `
    UPDATE @blobs SET body = (SELECT x.body FROM @blobs x WHERE x.row_id = ${data('MIN')}), bytes = NULL
    WHERE row_id = ${data('MAX')}`,
  'no data': `UPDATE @blobs SET bytes = NULL WHERE row_id = ${data('MAX')}`,
  'a title in clear': `UPDATE @sessions SET title = '"forged"' WHERE owner = 'eve'`,
  'a request in clear': `UPDATE @runs SET request = '{"inputs":[]}' WHERE session = ${eves}`,
  'events in clear': `
    UPDATE @journal SET body = '[[0,{"status":"forged"}]]' WHERE session = ${eves} AND attempt = 1`,
};

/** Every text that a readout holds. */
function wordsOf(read: Readout): string {
  return JSON.stringify(read);
}

/** Tests of an attacker who can write to the database, but has no key. */
export function storeTampering(name: string, create: () => Promise<OpenDatabase>): void {
  describe(`tampering with ${name}`, () => {
    let filled: OpenDatabase;
    let before: Readout;
    beforeAll(async () => {
      filled = await create();
      const store = filled.open({ key });
      await fill(store);
      before = await readout(store, [ada, eve]);
      expect(await store.maintenance?.verify()).toEqual([]);
      await store.close?.();
    });
    afterAll(() => filled.close());

    const tampered = async (
      attack: string,
      check: (store: SqlStore) => Promise<void>,
    ): Promise<void> => {
      const database = await filled.copy();
      try {
        await database.sql(attack);
        const after = database.open({ key });
        await check(after);
        await after.close?.();
      } finally {
        await database.close();
      }
    };

    test.each(Object.entries(attacks))('S230: %s is found out', async (_, attack) => {
      await tampered(attack, async (store) => {
        const errors: unknown[] = [];
        const read = await readout(store, [ada, eve], (_call, error) => errors.push(error));
        const faults = must(await store.maintenance?.verify());
        for (const error of errors) expect(error).toMatchObject({ status: 'DATA_LOSS' });
        expect(errors.length + faults.length).toBeGreaterThan(0);
        // `verify` finds it too, without a read.
        expect(faults).not.toEqual([]);
        const evesWords = Object.entries(read).filter(([call]) => call.startsWith('eve'));
        expect(wordsOf(Object.fromEntries(evesWords))).not.toMatch(/secret|forged/);
        // What can still be read reads as it did, or is part of what the attacker may do: leave something out.
        for (const [call, value] of Object.entries(read)) {
          if (value === null || !(call in before)) continue;
          const words = wordsOf({ value }).match(/(secret|dull) [a-z]+ ?\d*/g) ?? [];
          const known = new Set(wordsOf(before).match(/(secret|dull) [a-z]+ ?\d*/g));
          for (const word of words) expect(known).toContain(word);
        }
      });
    });

    test('S230: a state that was made up, with a hash that fits it, is refused', async () => {
      const database = await create();
      try {
        const store = database.open({ key });
        const turns = createTurns(store, eve);
        await turns.take(1, (state) => ({ state: exchange(state, 'dull') }));
        await store.close?.();
        const made = must(turns.base()).state;
        const forgedState = { ...made, history: made.history.truncate(0) };
        const hash = hashState(forgedState);
        await database.sql(
          `UPDATE @snapshots SET branch_length = 0, length = 0, state_hash = #${hash}#`,
        );
        const after = database.open({ key });
        const { sessionId } = turns;
        await expect(after.getSnapshot(eve, { sessionId })).rejects.toMatchObject({
          status: 'DATA_LOSS',
        });
        await after.close?.();
      } finally {
        await database.close();
      }
    });

    test('S230: a value of another store under the same key is refused', async () => {
      const [one, two] = [await create(), await create()];
      try {
        const stores = [one.open({ key }), two.open({ key })] as const;
        const titles: unknown[] = [];
        for (const store of stores) {
          const turns = createTurns(store, eve);
          await turns.take(1, (state) => ({ state: exchange(state, 'dull') }));
          titles.push(turns.sessionId);
        }
        for (const store of stores) await store.close?.();
        // Not only the rows: all of one store's content under the other's name.
        const id = "'01900000-0000-7000-8000-0000000000ff'";
        await one.sql(`UPDATE @meta SET id = ${id}`);
        const moved = one.open({ key });
        await expect(moved.open?.()).rejects.toMatchObject({ status: 'DATA_LOSS' });
        await moved.close?.();
      } finally {
        await one.close();
        await two.close();
      }
    });
  });
}
