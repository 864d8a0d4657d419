import type { ClientBase, PoolClient } from 'pg';
import { isWaymarkError } from '../../core/error.ts';
import { quoteName } from './dialect.ts';
import { toStoreError } from './errors.ts';

interface IndexRow {
  readonly table: string;
  readonly index: string;
  /** Columns in the order of the index. */
  readonly columns: string;
  /** The rows that a partial index has. */
  readonly predicate: string | null;
}

const selectIndexes = `
  SELECT t.relname AS table, i.relname AS index, pg_get_expr(x.indpred, x.indrelid) AS predicate,
    (SELECT string_agg(pg_get_indexdef(x.indexrelid, k, true), ', ' ORDER BY k)
     FROM generate_series(1, x.indnkeyatts) AS k) AS columns
  FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
  JOIN pg_catalog.pg_class t ON t.oid = x.indrelid JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
  WHERE n.nspname = $1 ORDER BY t.relname, i.relname`;

const scans = ['seqscan', 'indexscan', 'indexonlyscan', 'bitmapscan', 'sort'];

/**
 * Finds damage in the tables of a schema. Reads every row, so that Postgres compares the checksums of all pages, and
 * counts the rows again by each index: a table whose file was cut only has fewer rows.
 */
export async function checkTables(
  pool: { connect(): Promise<PoolClient> },
  schema: string,
): Promise<readonly string[]> {
  const client = await pool.connect();
  let broken = true;
  try {
    const { rows } = await client.query<IndexRow>(selectIndexes, [schema]);
    const found: string[] = [];
    for (const table of new Set(rows.map((row) => row.table))) {
      const indexes = rows.filter((row) => row.table === table);
      found.push(
        ...(await checkTable(client, `${quoteName(schema)}.${quoteName(table)}`, indexes)),
      );
    }
    broken = false;
    return found;
  } finally {
    client.release(broken);
  }
}

async function checkTable(
  client: ClientBase,
  table: string,
  indexes: readonly IndexRow[],
): Promise<readonly string[]> {
  const found: string[] = [];
  // One snapshot for all counts, so that what is written meanwhile does not show.
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
  const count = async (only: readonly string[], query: string): Promise<readonly string[]> => {
    const set = scans.map((scan) => `SET LOCAL enable_${scan} = ${only.includes(scan)}`);
    await client.query([...set, 'SAVEPOINT before'].join(';'));
    try {
      const { rows } = await client.query({ text: query, rowMode: 'array' });
      return (rows[0] as string[]).map(String);
    } catch (thrown) {
      const error = toStoreError(thrown);
      if (!isWaymarkError(error) || error.status !== 'DATA_LOSS') throw error;
      await client.query('ROLLBACK TO before');
      found.push(`The table ${table} is damaged: ${error.message}`);
      return [];
    }
  };
  try {
    await client.query('SET LOCAL max_parallel_workers_per_gather = 0');
    const filters = indexes.map(
      ({ predicate }) => `COUNT(*) FILTER (WHERE ${predicate ?? 'true'})`,
    );
    // The text of a row has all of its columns, also those that are stored apart.
    const rows = `SELECT ${[...filters, 'COUNT(t::text)'].join(', ')} FROM ${table} t`;
    const expected = await count(['seqscan'], rows);
    for (const [at, { index, columns, predicate }] of indexes.entries()) {
      const ordered = `SELECT 1 FROM ${table} WHERE ${predicate ?? 'true'} ORDER BY ${columns}`;
      const [counted] = await count(['indexscan'], `SELECT COUNT(*) FROM (${ordered}) AS o`);
      if (counted === undefined || expected[at] === undefined || counted === expected[at]) continue;
      found.push(
        `The table ${table} is damaged: it has ${expected[at]} rows, its index ${quoteName(index)} ${counted}.`,
      );
    }
  } finally {
    await client.query('ROLLBACK');
  }
  return found;
}
