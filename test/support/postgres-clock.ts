import pg from 'pg';
import { eventually } from './eventually.ts';

/** A clock of a database that a test may put forward, for every process that connects through it. */
export interface PostgresClock {
  /** Stores that connect with this string see the moved clock. */
  readonly connectionString: string;
  /** Puts the clock forward. Resolves when the next statement of any connection reads the new time. */
  advance(ms: number): Promise<void>;
  /** Puts the queue that pg-boss has made in this schema on the clock. */
  drive(queueSchema: string): Promise<void>;
  /** Resolves when no connection of this application is left: the server completes what a killed process had sent. */
  settled(application: string): Promise<void>;
  /** Closes the connection of the clock itself. Stores may stay open. */
  close(): Promise<void>;
}

let clocks = 0;

/** The connection of a clock, for tests that end all others. */
export const clockName = 'test clock';

/**
 * Makes a clock for the Postgres store, whose times come from the database. The connection string puts a schema in front of
 * `pg_catalog`, and that schema has a `clock_timestamp()` that adds an offset kept in a table. The store calls
 * `clock_timestamp()` without a schema, in its statements and in its functions, so it needs no option for this. Several clocks
 * of one database are independent.
 */
export async function postgresClock(connectionString: string): Promise<PostgresClock> {
  const schema = `clock_${process.pid}_${++clocks}`;
  // A pool connects again after a test has restarted the server.
  const pool = new pg.Pool({ connectionString, max: 1, application_name: clockName });
  pool.on('error', () => {});
  await pool.query(`
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
      await pool.query(`UPDATE ${schema}.ahead SET ms = ms + $1`, [Math.round(ms)]);
    },
    drive: async (queueSchema) => {
      await pool.query(`
        CREATE OR REPLACE FUNCTION ${queueSchema}.job_now() RETURNS timestamptz LANGUAGE sql STABLE AS
          $$ SELECT pg_catalog.now() + (SELECT ms FROM ${schema}.ahead) * interval '1 millisecond' $$`);
    },
    settled: async (application) => {
      await eventually(async () => {
        const { rows } = await pool.query(
          'SELECT 1 FROM pg_stat_activity WHERE application_name = $1',
          [application],
        );
        return rows.length === 0;
      }, `the end of the connections of ${application}`);
    },
    close: () => pool.end(),
  };
}
