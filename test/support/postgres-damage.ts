import { open, readFile, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { damage } from './damage.ts';
import { eventually } from './eventually.ts';

/** The data files of a schema: tables, indexes, sequences, what is stored apart (TOAST), and the maps of visible rows. */
export interface DataFiles {
  /** Flips a bit of one file, or cuts it; large files are hit more often, as on a disk. Says what it did. */
  damage(random: (below: number) => number): Promise<string>;
  /** The tables that have rows, by name. */
  readonly tables: readonly string[];
  /** Cuts the file of a table to this part of its pages. */
  cut(table: string, part: number): Promise<void>;
  /** Puts everything back. */
  restore(): Promise<void>;
  close(): Promise<void>;
}

interface DataFile {
  readonly name: string;
  readonly isTable: boolean;
  readonly path: string;
  readonly bytes: Buffer;
}

const pageSize = 8192;

const selectRelations = `
  WITH own AS (SELECT c.oid, c.reltoastrelid FROM pg_class c WHERE c.relnamespace = $1::regnamespace),
    wide AS (SELECT oid FROM own UNION SELECT reltoastrelid FROM own WHERE reltoastrelid <> 0),
    every AS (SELECT oid FROM wide UNION SELECT indexrelid FROM pg_index WHERE indrelid IN (SELECT oid FROM wide))
  SELECT c.oid::regclass::text AS name, c.relkind = 'r' AS is_table, pg_relation_filepath(c.oid) AS path
  FROM pg_class c WHERE c.oid IN (SELECT oid FROM every) AND c.relkind IN ('r', 'i', 't', 'S') ORDER BY c.oid`;

/** Takes the data files of a schema as they are now. The server must be at rest, without autovacuum. */
export async function dataFiles(connectionString: string, schema: string): Promise<DataFiles> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query('CREATE EXTENSION IF NOT EXISTS pg_buffercache');
  const folder: string = (await client.query('SHOW data_directory')).rows[0].data_directory;
  /** Writes what the server has changed, and lets it forget what it has read. */
  const evict = async (): Promise<void> => {
    await eventually(async () => {
      const { rows } = await client.query('SELECT * FROM pg_buffercache_evict_all()');
      return rows[0].buffers_skipped === 0;
    }, 'all buffers of the server to be free');
  };
  await evict();
  const relations = await client.query(selectRelations, [schema]);
  const files: DataFile[] = [];
  for (const { name, is_table: isTable, path } of relations.rows) {
    // The map of free space is no more than a hint, and left out: it would be hit more often than everything else.
    for (const fork of ['', '_vm']) {
      const at = join(folder, `${path}${fork}`);
      const bytes = await readFile(at).catch(() => Buffer.alloc(0));
      if (bytes.length > 0)
        files.push({ name: `${name}${fork}`, isTable: isTable && fork === '', path: at, bytes });
    }
  }
  const total = files.reduce((sum, { bytes }) => sum + bytes.length, 0);
  return {
    async damage(random) {
      let at = random(total);
      const file = files.find(({ bytes }) => {
        at -= bytes.length;
        return at < 0;
      });
      if (file === undefined) throw new TypeError('There is no data file.');
      const damaged = damage(file.bytes, random);
      await overwrite(file.path, damaged.bytes);
      return `${file.name}: ${damaged.what}`;
    },
    tables: files.filter(({ isTable }) => isTable).map(({ name }) => name),
    async cut(table, part) {
      const file = files.find(({ name }) => name === table);
      if (file === undefined) throw new TypeError(`There is no table ${table}.`);
      const pages = Math.floor((file.bytes.length / pageSize) * part);
      await truncate(file.path, pages * pageSize);
    },
    async restore() {
      await evict();
      for (const { path, bytes } of files) {
        if (!bytes.equals(await readFile(path))) await overwrite(path, bytes);
      }
    },
    close: () => client.end(),
  };
}

// In place: the server has the file open.
async function overwrite(path: string, bytes: Buffer): Promise<void> {
  const file = await open(path, 'r+');
  await file.write(bytes, 0, bytes.length, 0);
  await file.close();
  await truncate(path, bytes.length);
}
