import { randomBytes, randomUUID } from 'node:crypto';
import type { Client } from 'pg';

/** Bare `pg`, named statements, nothing else. */
export interface PostgresFloor {
  /** One row, one commit. */
  commit(body: string): Promise<void>;
  /** One statement that accepts the turn with its input, one that saves its messages and snapshot. */
  turn(messages: readonly object[]): Promise<void>;
  close(): Promise<void>;
}

// In a schema of its own, and anew for each that is measured.
const schema = `
  DROP SCHEMA IF EXISTS floor CASCADE;
  CREATE SCHEMA floor;
  SET search_path = floor;
  CREATE TABLE rows(no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text NOT NULL);
  CREATE TABLE sessions(no bigint PRIMARY KEY, id text NOT NULL UNIQUE, head uuid, updated_at timestamptz);
  CREATE TABLE runs(id uuid PRIMARY KEY, session bigint NOT NULL UNIQUE, request text NOT NULL, heartbeat timestamptz);
  CREATE TABLE messages(no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text NOT NULL);
  CREATE TABLE snapshots(no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id uuid NOT NULL UNIQUE,
    session bigint NOT NULL, parent uuid, hash bytea NOT NULL, created_at timestamptz NOT NULL);
  CREATE INDEX snapshots_session ON snapshots(session, no);
  INSERT INTO sessions VALUES(1, 'session', NULL, now())`;

const accept = `
  INSERT INTO runs(id, session, request, heartbeat)
  SELECT $1, no, $2, now() FROM sessions WHERE id = $3 RETURNING session`;
const save = `
  WITH held AS (DELETE FROM runs WHERE id = $1 RETURNING session),
    added AS (INSERT INTO messages(body) SELECT unnest($2::text[])),
    made AS (INSERT INTO snapshots(id, session, parent, hash, created_at)
      SELECT $1, z.no, z.head, $3, now() FROM sessions z JOIN held ON held.session = z.no)
  UPDATE sessions SET head = $1, updated_at = now() WHERE no = (SELECT session FROM held)`;

export async function openPostgresFloor(client: Client): Promise<PostgresFloor> {
  await client.connect();
  await client.query(schema);
  const run = async (name: string, text: string, values: unknown[]): Promise<void> => {
    await client.query({ name, text, values });
  };
  return {
    commit: (body) => run('row', 'INSERT INTO rows(body) VALUES($1)', [body]),
    async turn(messages) {
      const id = randomUUID();
      await run('accept', accept, [id, JSON.stringify(messages[0]), 'session']);
      const bodies = messages.map((message) => JSON.stringify(message));
      await run('save', save, [id, bodies, randomBytes(32)]);
    },
    close: () => client.end(),
  };
}
