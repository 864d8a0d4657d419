import { createHash } from 'node:crypto';
import type { Dialect } from '../sql/database/dialect.ts';

/** The current time in milliseconds, by the database's clock. */
export const now = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

/** The key of an advisory lock that belongs to one schema. */
export function lockKey(schema: string, purpose: string): string {
  const digest = createHash('sha256').update(`waymark ${schema} ${purpose}`).digest();
  return String(digest.readBigInt64BE(0));
}

/** Postgres' words, for the tables of one schema. */
export function postgresDialect(schema: string): Dialect {
  const blobs = lockKey(schema, 'blobs');
  const garbage = lockKey(schema, 'garbage');
  const names = lockKey(schema, 'names');
  return {
    name: 'postgres',
    now,
    hasClock: true,
    lock: (alias) => `FOR UPDATE OF ${alias}`,
    lockName: (param) => `SELECT pg_advisory_xact_lock(hashtextextended(${param}::text, ${names}))`,
    lockFree: (alias) => `FOR UPDATE OF ${alias} SKIP LOCKED`,
    shareBlobs: `SELECT pg_advisory_xact_lock_shared(${blobs})`,
    ownBlobs: `SELECT pg_advisory_xact_lock(${blobs})`,
    // A collection that follows a turn uses the pool, whose transactions do not have the settings of maintenance.
    collectAlone: `SELECT pg_advisory_xact_lock(${garbage}), set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)`,
    lookup: (table, alias, condition) => `CROSS JOIN ${oneRow(table, alias, condition)}`,
    lookupOptional: (table, alias, condition) =>
      `LEFT JOIN ${oneRow(table, alias, condition)} ON true`,
    atOnce: { sessions: 15, rows: 100, statements: 40 },
    integers: (param) => isOneOf('value::bigint', param),
    bytes: (param) => isOneOf("decode(value, 'hex')", param),
    texts: (param) => isOneOf('value', param),
    items: (param) => `json_array_elements(${param}::json) AS l(value)`,
    pairs: (param) => `(SELECT (value ->> 0)::bigint AS a, (value ->> 1)::bigint AS b
      FROM json_array_elements(${param}::json) AS l(value))`,
    snapshotsOf: (param) => `json_array_elements_text(${param}::json) AS j(value)
      CROSS JOIN LATERAL (SELECT row_id FROM @snapshots WHERE session = j.value::bigint) s`,
    namedDocuments: (param) => `
      SELECT j.value::bigint AS row_id FROM json_array_elements_text(${param}::json) AS j(value)
      LEFT JOIN ${namedBy('custom')} c ON true LEFT JOIN ${namedBy('artifacts')} a ON true
      WHERE c.row_id IS NOT NULL OR a.row_id IS NOT NULL`,
    messageRanges: (param) => `json_array_elements(${param}::json) AS j(value)
      CROSS JOIN LATERAL (SELECT id, body FROM @messages
        WHERE id >= (j.value ->> 0)::bigint AND id < (j.value ->> 1)::bigint ORDER BY id) m`,
    rowsAsJson: (columns) => `json_agg(json_build_array(${columns.join(', ')}))::text`,
    asJson: (columns) => `json_build_array(${columns.join(', ')})::text`,
    words: (param) => `array_to_tsvector(string_to_array(${param}, ' '))`,
    hasWords: (alias, param) => `${alias}.words @@ (
      SELECT string_agg('''' || value || ''':*', ' & ') FROM json_array_elements_text(${param}::json) AS l(value))::tsquery`,
    hex: (column) => `encode(${column}, 'hex')`,
  };
}

function oneRow(table: string, alias: string, condition: string): string {
  return `LATERAL (SELECT * FROM @${table} ${alias} WHERE ${condition} LIMIT 1) ${alias}`;
}

function namedBy(column: 'custom' | 'artifacts'): string {
  return `LATERAL (SELECT s.row_id FROM @snapshots s WHERE s.${column} = j.value::bigint
    LIMIT 1 FOR KEY SHARE OF s SKIP LOCKED)`;
}

// An array, for which an index is used. Postgres takes a subquery for a hundred rows, and rather reads a table of some ten thousand.
function isOneOf(value: string, param: string): string {
  return `= ANY(ARRAY(SELECT ${value} FROM json_array_elements_text(${param}::json) AS l(value)))`;
}

/** The text of a statement for the tables of a schema. */
export function qualify(text: string, schema: string): string {
  return text.replace(/@(\w+)/g, `${quoteName(schema)}.$1`);
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
