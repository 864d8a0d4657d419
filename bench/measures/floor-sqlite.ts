import { randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';

/** Bare `node:sqlite`, prepared statements, nothing else. */
export interface SqliteFloor {
  /** One row, one commit. */
  commit(body: string): void;
  /** One transaction that accepts the turn with its input, one that saves its messages and snapshot. */
  turn(messages: readonly object[]): void;
  close(): void;
}

// The rows that a turn needs if it is to be found again by its session, by its id and by its time, as Waymark has them.
const schema = `
  CREATE TABLE rows(no INTEGER PRIMARY KEY, body TEXT NOT NULL);
  CREATE TABLE sessions(no INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, id TEXT NOT NULL, head INTEGER,
    updated_at INTEGER NOT NULL);
  CREATE UNIQUE INDEX sessions_id ON sessions(agent, id);
  CREATE INDEX sessions_updated ON sessions(agent, updated_at);
  CREATE TABLE runs(session INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, request TEXT NOT NULL, heartbeat INTEGER);
  CREATE TABLE messages(no INTEGER PRIMARY KEY, body TEXT NOT NULL);
  CREATE TABLE snapshots(no INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL UNIQUE, session INTEGER NOT NULL,
    parent INTEGER, hash BLOB NOT NULL, upto INTEGER NOT NULL, usage TEXT, created_at INTEGER NOT NULL);
  CREATE INDEX snapshots_session ON snapshots(session, upto);
  INSERT INTO sessions VALUES(1, 'bench', 'session', NULL, 0)`;

/** `full` waits for the disk once a turn, when it is saved. */
export function openSqliteFloor(path: string, durability: 'normal' | 'full'): SqliteFloor {
  const db = new DatabaseSync(path);
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; ${schema}`);
  const level = durability === 'full' ? 'FULL' : 'NORMAL';
  const insertRow = db.prepare('INSERT INTO rows(body) VALUES(?)');
  const selectSession = db.prepare(
    `SELECT z.no, z.head, r.id FROM sessions z LEFT JOIN runs r ON r.session = z.no
     WHERE z.agent = 'bench' AND z.id = ?`,
  );
  const insertRun = db.prepare('INSERT INTO runs VALUES(?, ?, ?, ?)');
  const selectRun = db.prepare(
    'SELECT r.session, z.head FROM runs r JOIN sessions z ON z.no = r.session WHERE r.id = ?',
  );
  const insertMessage = db.prepare('INSERT INTO messages(body) VALUES(?)');
  const insertSnapshot = db.prepare(
    'INSERT INTO snapshots(id, session, parent, hash, upto, created_at) VALUES(?, ?, ?, ?, ?, ?)',
  );
  const updateSession = db.prepare('UPDATE sessions SET head = ?, updated_at = ? WHERE no = ?');
  const deleteRun = db.prepare('DELETE FROM runs WHERE id = ?');
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const setSynchronous = (value: string): void => {
    if (durability === 'full') db.exec(`PRAGMA synchronous = ${value}`);
  };
  let upto = 0;
  setSynchronous(level);

  return {
    commit: (body) => void insertRow.run(body),
    turn(messages) {
      const id = randomBytes(16);
      const now = Date.now();
      setSynchronous('NORMAL');
      begin.run();
      selectSession.get('session');
      insertRun.run(1, id, JSON.stringify(messages[0]), now);
      commit.run();
      setSynchronous(level);
      begin.run();
      const head = selectRun.get(id)?.head ?? null;
      for (const message of messages) insertMessage.run(JSON.stringify(message));
      upto += messages.length;
      const { lastInsertRowid } = insertSnapshot.run(id, 1, head, randomBytes(32), upto, now);
      updateSession.run(lastInsertRowid, now, 1);
      deleteRun.run(id);
      commit.run();
    },
    close: () => db.close(),
  };
}
