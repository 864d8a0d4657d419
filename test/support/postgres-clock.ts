import pg from 'pg';

/** A clock of a database that a test may put forward, for every process that connects through it. */
export interface PostgresClock {
  /** Stores that connect with this string see the moved clock. */
  readonly connectionString: string;
  /** Puts the clock forward. Resolves when the next statement of any connection reads the new time. */
  advance(ms: number): Promise<void>;
  /** Closes the connection of the clock itself. Stores may stay open. */
  close(): Promise<void>;
}

let clocks = 0;

/**
 * Makes a clock for the Postgres store, whose times come from the database. The connection string puts a schema in front of
 * `pg_catalog`, and that schema has a `clock_timestamp()` that adds an offset kept in a table. The store calls
 * `clock_timestamp()` without a schema, in its statements and in its functions, so it needs no option for this. Several clocks
 * of one database are independent.
 */
export async function postgresClock(connectionString: string): Promise<PostgresClock> {
  const schema = `clock_${process.pid}_${++clocks}`;
  const client = new pg.Client({ connectionString });
  // The server may be stopped before the clock is closed.
  client.on('error', () => {});
  await client.connect();
  await client.query(`
    CREATE SCHEMA ${schema};
    CREATE TABLE ${schema}.ahead(ms bigint NOT NULL);
    INSERT INTO ${schema}.ahead VALUES(0);
    CREATE FUNCTION ${schema}.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
      $$ SELECT pg_catalog.clock_timestamp() + (SELECT ms FROM ${schema}.ahead) * interval '1 millisecond' $$;`);
  const options = encodeURIComponent(`-c search_path=${schema},pg_catalog,public`);
  const mark = connectionString.includes('?') ? '&' : '?';
  return {
    connectionString: `${connectionString}${mark}options=${options}`,
    advance: async (ms) => {
      await client.query(`UPDATE ${schema}.ahead SET ms = ms + $1`, [Math.round(ms)]);
    },
    close: () => client.end(),
  };
}
