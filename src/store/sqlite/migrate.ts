import type { WaymarkError } from '../../core/error.ts';
import type { NewId } from '../../core/id.ts';
import { storeFault } from '../rules/errors.ts';
import type { Cipher } from '../sql/content/cipher.ts';
import { readMeta } from '../sql/database/meta.ts';
import type { Connection } from './connection.ts';
import { steps } from './schema.ts';

interface Options {
  readonly path: string | URL;
  readonly newId: NewId;
  readonly cipher: Cipher;
}

/** Brings the tables to the newest format, one step after the other, and gives the database's name. */
export function migrate(db: Connection, options: Options): string {
  const { newId, cipher } = options;
  const path = String(options.path);
  // Read first: a database that is up to date is opened without writing.
  if (formatOf(db) !== steps.length) upgrade(db, path, newId);
  return db.run(readMeta(cipher));
}

function upgrade(db: Connection, path: string, newId: NewId): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    const format = formatOf(db);
    if (format === undefined) create(db, path, newId);
    const from = format ?? 0;
    if (from > steps.length) throw tooNew(path, from);
    for (const step of steps.slice(from)) db.exec(step);
    db.exec(`UPDATE meta SET format = ${steps.length}`);
    db.exec('COMMIT');
  } catch (error) {
    db.exec('ROLLBACK');
    throw error;
  }
}

// "WYMK", in the file's header.
const applicationId = 1465470283;

/** The format of the tables; `undefined` when there are none of ours. */
function formatOf(db: Connection): number | undefined {
  const known = db.get(
    `SELECT 1 AS found FROM sqlite_schema WHERE type = 'table' AND name = 'meta'`,
  );
  // Another program may have a table of that name.
  const columns = db.all(`SELECT name FROM pragma_table_info('meta')`).map(({ name }) => name);
  if (known === undefined || columns.join() !== 'format,id,sealed') return undefined;
  const mark = db.get('PRAGMA application_id')?.application_id;
  if (mark !== 0 && mark !== applicationId) return undefined;
  const format = db.get('SELECT format FROM meta')?.format;
  return typeof format === 'number' ? format : undefined;
}

function create(db: Connection, path: string, newId: NewId): void {
  const other = db.get(`SELECT name FROM sqlite_schema WHERE type = 'table' LIMIT 1`);
  if (other !== undefined) {
    throw storeFault(
      'FAILED_PRECONDITION',
      `The database "${path}" is of another program: it has a table "${other.name}". Give the store a file of its own.`,
    );
  }
  db.exec('CREATE TABLE meta(format INTEGER NOT NULL, id TEXT NOT NULL, sealed TEXT)');
  db.exec(`INSERT INTO meta VALUES(0, '${newId()}', NULL)`);
}

function tooNew(path: string, format: number): WaymarkError {
  return storeFault(
    'FAILED_PRECONDITION',
    `The database "${path}" has format ${format}, this version of waymark knows ${steps.length}. Update waymark, or give another file.`,
  );
}
