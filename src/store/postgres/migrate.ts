import type { ClientBase, PoolClient } from 'pg';
import type { WaymarkError } from '../../core/error.ts';
import { storeFault } from '../rules/errors.ts';
import { lockKey, qualify, quoteName } from './dialect.ts';
import { steps } from './schema.ts';

// Not by `to_regclass`: it answers from a cache that is not renewed within a transaction, and a process that has waited for
// another one to make the tables would make them again.
const findMeta = `
  SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $1 AND c.relname = 'meta'`;

/** Brings the tables of a schema to the newest format. Several processes may start at once: one does it, the others wait. */
export async function migrate(
  client: PoolClient,
  schema: string,
  newId: () => string,
): Promise<void> {
  if ((await formatOf(client, schema)) === steps.length) return;
  await client.query('BEGIN');
  try {
    await client.query(`SELECT pg_advisory_xact_lock(${lockKey(schema, 'migrate')})`);
    await upgrade(client, schema, newId);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}

async function upgrade(client: PoolClient, schema: string, newId: () => string): Promise<void> {
  const format = await formatOf(client, schema);
  if (format === undefined) await create(client, schema, newId);
  const from = format ?? 0;
  if (from > steps.length) throw tooNew(schema, from);
  await upgradeTables(client, schema, from);
}

/** Brings tables of a format to the newest one, in the caller's transaction. */
export async function upgradeTables(
  client: ClientBase,
  schema: string,
  from: number,
): Promise<void> {
  for (const step of steps.slice(from)) await client.query(qualify(step, schema));
  await client.query(qualify(`UPDATE @meta SET format = ${steps.length}`, schema));
}

export const newest: number = steps.length;

/** Makes the tables of a format, which may be an older one, without a row. */
export async function createTables(
  client: ClientBase,
  schema: string,
  format: number,
): Promise<void> {
  await createMeta(client, schema);
  for (const step of steps.slice(0, format)) await client.query(qualify(step, schema));
}

async function createMeta(client: ClientBase, schema: string): Promise<void> {
  await client.query(`CREATE SCHEMA IF NOT EXISTS ${quoteName(schema)}`);
  const table =
    'CREATE TABLE @meta(format integer NOT NULL, id varchar(36) NOT NULL, sealed varchar(200))';
  await client.query(qualify(table, schema));
}

async function create(client: PoolClient, schema: string, newId: () => string): Promise<void> {
  await createMeta(client, schema);
  const insert = qualify('INSERT INTO @meta(format, id) VALUES(0, $1)', schema);
  await client.query(insert, [newId()]);
}

/** The format of the tables; `undefined` when there are none. */
export async function formatOf(client: ClientBase, schema: string): Promise<number | undefined> {
  const { rows } = await client.query(findMeta, [schema]);
  if (rows.length === 0) return undefined;
  const found = await client.query(qualify('SELECT format FROM @meta', schema));
  const [row] = found.rows;
  if (row === undefined) throw emptied(schema);
  return row.format;
}

function emptied(schema: string): WaymarkError {
  return storeFault(
    'DATA_LOSS',
    `The table "meta" in schema "${schema}" has lost its row. Restore the store from a backup.`,
  );
}

function tooNew(schema: string, format: number): WaymarkError {
  return storeFault(
    'FAILED_PRECONDITION',
    `The tables in schema "${schema}" have format ${format}, this version of waymark knows ${steps.length}. Update waymark, or give another schema.`,
  );
}
