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

const schema = `
  CREATE TABLE rows(no INTEGER PRIMARY KEY, body TEXT NOT NULL);
  CREATE TABLE sessions(no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, head INTEGER, updated_at INTEGER);
  CREATE TABLE runs(id BLOB PRIMARY KEY, session INTEGER NOT NULL UNIQUE, request TEXT NOT NULL, heartbeat INTEGER);
  CREATE TABLE messages(no INTEGER PRIMARY KEY, body TEXT NOT NULL);
  CREATE TABLE snapshots(no INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, session INTEGER NOT NULL, parent INTEGER,
    hash BLOB NOT NULL, upto INTEGER NOT NULL, created_at INTEGER NOT NULL);
  CREATE INDEX snapshots_session ON snapshots(session, no);
  INSERT INTO sessions VALUES(1, 'session', NULL, 0)`;

export function openSqliteFloor(path: string, synchronous: 'NORMAL' | 'FULL'): SqliteFloor {
  const db = new DatabaseSync(path);
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}; ${schema}`);
  const insertRow = db.prepare('INSERT INTO rows(body) VALUES(?)');
  const selectSession = db.prepare(
    'SELECT z.no, z.head, r.id FROM sessions z LEFT JOIN runs r ON r.session = z.no WHERE z.id = ?',
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

  return {
    commit: (body) => void insertRow.run(body),
    turn(messages) {
      const id = randomBytes(16);
      const now = Date.now();
      db.exec('BEGIN IMMEDIATE');
      selectSession.get('session');
      insertRun.run(id, 1, JSON.stringify(messages[0]), now);
      db.exec('COMMIT');
      db.exec('BEGIN IMMEDIATE');
      const head = selectRun.get(id)?.head ?? null;
      for (const message of messages) insertMessage.run(JSON.stringify(message));
      const { lastInsertRowid } = insertSnapshot.run(id, 1, head, randomBytes(32), 2, now);
      updateSession.run(lastInsertRowid, now, 1);
      deleteRun.run(id);
      db.exec('COMMIT');
    },
    close: () => db.close(),
  };
}
