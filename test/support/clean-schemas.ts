import pg from 'pg';

/** Schemas for stores of one database. Emptying a schema is much faster than creating one. */
export interface CleanSchemas {
  /** The name of an empty schema; a store creates its tables when it is opened for the first time. */
  take(): string;
  /** Empties the tables of a schema that no store uses any more, so that it can be taken again. */
  giveBack(schema: string): Promise<void>;
  close(): Promise<void>;
}

export function cleanSchemas(connectionString: string, prefix = 'clean'): CleanSchemas {
  const pool = new pg.Pool({ connectionString, max: 1 });
  const free: string[] = [];
  let count = 0;
  return {
    take: () => free.pop() ?? `${prefix}_${count++}`,
    async giveBack(schema) {
      const { rows } = await pool.query<{ tablename: string }>(
        // `meta` says which format the tables have.
        `SELECT tablename FROM pg_tables WHERE schemaname = $1 AND tablename <> 'meta'`,
        [schema],
      );
      await pool.query(
        rows.map(({ tablename }) => `DELETE FROM "${schema}"."${tablename}";`).join('\n'),
      );
      free.push(schema);
    },
    close: () => pool.end(),
  };
}
