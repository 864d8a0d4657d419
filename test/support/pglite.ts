import { PGlite } from '@electric-sql/pglite';
import { pgliteStore } from '../../src/store/pglite/index.ts';
import type { OpenedStore } from '../../src/testing/store-contract/kit.ts';

const emptyTables = `
  DO $$ DECLARE names text; BEGIN
    SELECT string_agg('waymark.' || tablename, ', ') INTO names
    FROM pg_tables WHERE schemaname = 'waymark' AND tablename <> 'meta';
    IF names IS NOT NULL THEN EXECUTE 'TRUNCATE ' || names; END IF;
  END $$`;

/** Opening a database takes seconds and its tables half of one, so the tests of a file share one and empty its tables. */
export async function pgliteSchemas() {
  const db = await PGlite.create();
  // As `postgresClock`: a function in front of Postgres' own, which adds an offset.
  await db.exec(`
    CREATE SCHEMA clock;
    CREATE TABLE clock.ahead(ms bigint NOT NULL);
    INSERT INTO clock.ahead VALUES(0);
    CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
      $$ SELECT pg_catalog.clock_timestamp() + (SELECT ms FROM clock.ahead) * interval '1 millisecond' $$;
    SET search_path = clock, pg_catalog, public;`);
  return {
    db,
    async open(): Promise<OpenedStore> {
      const openStore = () => pgliteStore(db);
      let store = openStore();
      return {
        store,
        async advance(ms) {
          await db.query('UPDATE clock.ahead SET ms = ms + $1', [Math.round(ms)]);
        },
        async reopen() {
          await store.close?.();
          store = openStore();
          await store.open?.();
          return store;
        },
        async close() {
          await store.close?.();
          await db.exec(emptyTables);
        },
      };
    },
    close: () => db.close(),
  };
}
